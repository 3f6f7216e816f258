//! Time, as something a test can set.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use jiff::Timestamp;

/// A source of time.
///
/// Everything that reads the time or waits does so through the [`Context`](crate::Context)'s
/// clock: tests put in their own and nothing sleeps for real.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The wall clock, in UTC.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment; never goes backward.
    fn monotonic(&self) -> Duration;

    /// Completes after `duration`.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The machine's own clock; waits on tokio's timer, and so honours a paused tokio clock.
#[derive(Debug)]
pub struct SystemClock {
    origin: tokio::time::Instant,
}

impl SystemClock {
    /// A clock whose monotonic time begins now.
    #[must_use]
    pub fn new() -> Self {
        Self { origin: tokio::time::Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock the ban points to")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}
