//! What the thread that writes is asked to do.

use std::sync::Arc;

use jiff::Timestamp;
use sifaka_core::{Body, Hash, Id, Result};
use tokio::sync::oneshot;

use super::lease::Lease;
use crate::summary::Summary;

/// Who waits for an answer.
pub(super) type Reply<T> = oneshot::Sender<Result<T>>;

/// One thing to do. Nothing is answered before it is safe on disk.
pub(super) enum Request {
    /// Let somebody write to a run.
    Acquire { run: Id, reply: Reply<Grant> },
    /// Store events.
    Append { batch: Arc<Batch>, reply: Reply<()> },
    /// End a log.
    Close { end: End, reply: Reply<Hash> },
    /// Let others write to a run.
    Release { run: Id, log: i64 },
    /// Erase a run.
    Erase { run: Id, time: Timestamp, reason: String, reply: Reply<bool> },
    /// Give back the space of erased runs.
    Compact { reply: Reply<()> },
    /// Say when everything before this is done.
    Settle { reply: Reply<()> },
}

impl Request {
    /// Whether it has to be on disk before it is answered. A lease need not outlive the machine.
    pub(super) fn is_durable(&self) -> bool {
        matches!(self, Self::Append { .. } | Self::Close { .. } | Self::Erase { .. })
    }
}

/// What somebody who may write to a run has to know.
pub(super) struct Grant {
    pub(super) lease: Lease,
    pub(super) stored: Stored,
}

/// How far a run is stored.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    /// How many events.
    pub(super) events: u64,
    /// Hash of the last.
    pub(super) last_hash: Hash,
    /// `None` for a run without events.
    pub(super) summary: Option<Summary>,
}

/// Events of one run that follow one another, hashed, with all that is stored along with them.
pub(super) struct Batch {
    pub(super) run: Id,
    pub(super) log: i64,
    /// Number of the first event.
    pub(super) first: u64,
    /// Hash of the event before it.
    pub(super) previous: Hash,
    pub(super) rows: Vec<Row>,
    /// Bodies to store apart.
    pub(super) bodies: Vec<(Hash, Body)>,
    /// Bodies that the events point at, and that were stored apart before.
    pub(super) pointers: Vec<Hash>,
    pub(super) thoughts: Vec<Id>,
    pub(super) tags: Vec<i64>,
    /// What was asked, cut to a line, if the first event is among these.
    pub(super) prompt: Option<String>,
    /// The run, with these events.
    pub(super) summary: Summary,
    /// About how much memory it takes.
    pub(super) bytes: usize,
}

impl Batch {
    /// Number of the event after these.
    pub(super) fn next(&self) -> u64 {
        self.first + self.rows.len() as u64
    }

    /// Hash of the last event.
    pub(super) fn last_hash(&self) -> Hash {
        self.rows.last().map_or(self.previous, |row| row.hash)
    }
}

/// An event as it is stored; run and number follow from its place.
pub(super) struct Row {
    pub(super) time: i64,
    pub(super) kind: Arc<str>,
    pub(super) payload_hash: Hash,
    pub(super) hash: Hash,
    pub(super) payload: Vec<u8>,
}

/// How a log ends.
pub(super) struct End {
    pub(super) run: Id,
    pub(super) log: i64,
    pub(super) events: u64,
    pub(super) last_hash: Hash,
    pub(super) time: Timestamp,
}
