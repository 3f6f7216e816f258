//! A clock that a test sets.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use jiff::Timestamp;
use sifaka_core::Clock;
use tokio::sync::watch;

/// The first day of 2026, in UTC.
const START: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// A clock that stands still until a test moves it.
///
/// A sleep ends when [`advance`](Self::advance) takes the clock to its end. A clock made by
/// [`auto_advance`](Self::auto_advance) moves by itself: the first poll of a sleep takes it there.
/// A timeout is a sleep too, so beside work that is not ready at once it fires; tests of timeouts
/// advance the clock by hand.
///
/// ```
/// use std::time::Duration;
/// use sifaka_core::Clock;
/// use sifaka_testkit::clock::ManualClock;
///
/// let clock = ManualClock::new();
/// clock.advance(Duration::from_secs(3));
/// assert_eq!(clock.monotonic(), Duration::from_secs(3));
/// ```
#[derive(Debug)]
pub struct ManualClock {
    start: Timestamp,
    elapsed: watch::Sender<Duration>,
    auto: bool,
}

impl ManualClock {
    /// A clock at the first day of 2026.
    #[must_use]
    pub fn new() -> Self {
        Self::starting_at(START)
    }

    /// A clock at `start`.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, elapsed: watch::Sender::new(Duration::ZERO), auto: false }
    }

    /// A clock that a sleep moves to its end at once.
    #[must_use]
    pub fn auto_advance() -> Self {
        Self { auto: true, ..Self::new() }
    }

    /// Moves the clock and wakes whoever has slept long enough.
    pub fn advance(&self, by: Duration) {
        self.elapsed.send_modify(|elapsed| *elapsed = elapsed.saturating_add(by));
    }

    /// How many sleeps wait for the clock to move.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.elapsed.receiver_count()
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.start.checked_add(self.monotonic()).unwrap_or(Timestamp::MAX)
    }

    fn monotonic(&self) -> Duration {
        *self.elapsed.borrow()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let end = self.monotonic().saturating_add(duration);
        let mut elapsed = self.elapsed.subscribe();
        let mover = self.auto.then(|| self.elapsed.clone());
        Box::pin(async move {
            if let Some(mover) = mover {
                // Two sleeps that began together end at the later of the two, not at their sum.
                mover.send_modify(|now| *now = end.max(*now));
                return;
            }
            if elapsed.wait_for(|now| *now >= end).await.is_err() {
                // The clock is gone: time has stopped.
                std::future::pending::<()>().await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn a_sleep_ends_when_the_clock_gets_there_and_not_before() {
        let clock = Arc::new(ManualClock::new());
        let sleep = tokio::spawn(clock.sleep(Duration::from_secs(5)));
        clock.advance(Duration::from_secs(4));
        tokio::task::yield_now().await;
        assert!(!sleep.is_finished());
        assert_eq!(clock.sleepers(), 1);
        clock.advance(Duration::from_secs(1));
        sleep.await.unwrap();
        assert_eq!(clock.sleepers(), 0);
        assert_eq!(clock.now().to_string(), "2026-01-01T00:00:05Z");
    }

    #[tokio::test]
    async fn a_sleep_of_nothing_is_over() {
        ManualClock::new().sleep(Duration::ZERO).await;
    }

    #[tokio::test]
    async fn an_automatic_clock_moves_with_its_sleeps() {
        let clock = ManualClock::auto_advance();
        let (long, short) =
            (clock.sleep(Duration::from_secs(5)), clock.sleep(Duration::from_secs(3)));
        tokio::join!(short, long);
        assert_eq!(clock.monotonic(), Duration::from_secs(5));
        drop(clock.sleep(Duration::from_secs(9)));
        assert_eq!(
            clock.monotonic(),
            Duration::from_secs(5),
            "a sleep nobody awaits moves nothing"
        );
        clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(clock.monotonic(), Duration::from_secs(6));
    }

    #[tokio::test]
    async fn a_contexts_deadline_follows_it() {
        let clock = Arc::new(ManualClock::new());
        let ctx = sifaka_core::Context::builder().clock(clock.clone()).build();
        let ctx = ctx.with_timeout(Duration::from_secs(2));
        assert!(ctx.check().is_ok());
        clock.advance(Duration::from_secs(2));
        assert_eq!(ctx.check().unwrap_err().kind(), sifaka_core::ErrorKind::DeadlineExceeded);
    }
}
