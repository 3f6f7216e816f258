//! Timings of many runs, shared.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::performance::Performance;
use crate::timings::Timings;

/// The timings of all runs of a chain. Clones share them.
///
/// A run keeps its own [`Timings`] and merges them here once, at its end, so that runs do not wait
/// for each other while they work.
#[derive(Clone, Default)]
pub struct Aggregator {
    timings: Arc<Mutex<Timings>>,
}

impl Aggregator {
    /// An aggregator with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a run's timings.
    pub fn merge(&self, run: &Timings) {
        self.lock().merge(run);
    }

    /// Everything so far, as a copy.
    #[must_use]
    pub fn timings(&self) -> Timings {
        self.lock().clone()
    }

    /// Where the time went so far.
    #[must_use]
    pub fn performance(&self) -> Performance {
        // Figured out from a copy, so that runs do not wait for the percentiles.
        self.timings().performance()
    }

    fn lock(&self) -> MutexGuard<'_, Timings> {
        // Timings are sums; one that a panic left half added is still good to read.
        self.timings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Aggregator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aggregator").finish_non_exhaustive()
    }
}
