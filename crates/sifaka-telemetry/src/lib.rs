//! Events become timings, bottlenecks and exports.
//!
//! [`Timings`] is the fold of a run's events into durations: feed it every event with
//! [`Timings::observe`], and [`Timings::performance`] says where the time went. Timings of many
//! runs are merged; an [`Aggregator`] is what a chain's clones share for that.
//!
//! There is no global state, and nothing grows with the number of runs: a component has one record
//! of fixed size, and there are at most [`MAX_COMPONENTS`] of them. Names beyond that are counted
//! together as `other`.
//!
//! # What is measured, and what overlaps
//!
//! | Field | Sum over | Taken from |
//! |---|---|---|
//! | `model_time` | every call to a model, for the text itself and for advice | `generated`, `called` |
//! | `validation_time` | every answer of a validator | `validated` |
//! | `critic_time` | every answer of a critic, with the model calls it made | `critiqued`, `failed` |
//! | `retrieval_time` | every answer of a retriever | `retrieved`, `failed` |
//! | `storage_time` | every wait for the journal | [`Timings::add_storage`] |
//! | `total_time` | runs, as wall time | `run_finished`, `run_failed`, [`Timings::add_total`] |
//!
//! These are not slices of one cake. A critic that asks a model is inside its own `critic_time`
//! *and* its model call is inside `model_time`; the same holds for a validator that asks one.
//! Components that work side by side each count in full. So the parts may add up to more than
//! `total_time`, and less than it when the chain itself takes its time. Tokens and money are
//! counted once, with the model that took them.
//!
//! A validator that broke is counted as a failure when that is told, and its time with the "could
//! not tell" it answers, so that the time is not counted twice.
//!
//! ```
//! use sifaka_core::{Event, EventKind};
//! use sifaka_core::event::Nanos;
//! use sifaka_telemetry::{Aggregator, Timings};
//! use std::time::Duration;
//!
//! let mut run = Timings::default();
//! run.observe(&EventKind::Generated {
//!     model: "mock".into(),
//!     completions: Vec::new(),
//!     usage: Default::default(),
//!     provider: Default::default(),
//!     raw: None,
//!     seconds: Nanos(1_500_000_000),
//! });
//! run.add_total(Duration::from_secs(2));
//!
//! let chain = Aggregator::default();
//! chain.merge(&run);
//! let performance = chain.performance();
//! assert_eq!(performance.to_json()["model_time"], 1.5);
//! assert_eq!(performance.bottlenecks()[0].0, "model:mock");
//! ```

mod aggregator;
mod histogram;
mod performance;
mod timings;

pub use aggregator::Aggregator;
pub use performance::{ComponentKind, ComponentPerformance, Performance};
pub use timings::{MAX_COMPONENTS, Timings};
