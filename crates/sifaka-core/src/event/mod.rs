//! What happens in a run. A run is a log of events; a Thought is that log folded up.

mod bodies;
mod fold;
mod kind;
mod seal;
mod texts;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Id;

pub use fold::{Call, Fold, REDACTED, Round};
pub use kind::{
    CallPurpose, Checked, Cut, EndReason, EventKind, Nanos, Prompted, Step, Transition,
};
pub use seal::{Header, Sealed, header_hash};

/// Something that happened in a run, with its place in the order of things.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Which run.
    pub run_id: Id,
    /// Its place in the run, from 0 and without gaps. Transient events have none of their own and
    /// carry the number of the event that will come next.
    pub seq: u64,
    /// When.
    pub time: Timestamp,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
}
