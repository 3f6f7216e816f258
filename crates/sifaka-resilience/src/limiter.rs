//! The rate limit: one number, and no queue of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::options::RateLimit;

/// Gives out turns (the "generic cell rate algorithm"): it keeps the time at which a further call
/// would be due if calls came at an even pace, and lets a call be early by the burst.
#[derive(Debug)]
pub(crate) struct Limiter {
    /// Nanoseconds between calls at an even pace.
    interval: u64,
    /// How much earlier than due a call may come.
    slack: u64,
    due: AtomicU64,
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Limiter {
    pub(crate) fn new(limit: &RateLimit) -> Self {
        let interval = nanos(limit.per / limit.requests.max(1)).max(1);
        let slack = interval.saturating_mul(u64::from(limit.burst.max(1) - 1));
        Self { interval, slack, due: AtomicU64::new(0) }
    }

    /// Takes the next turn and says how long it is until then; takes none, and gives the wait as
    /// an error, when that is longer than `most`.
    pub(crate) fn take(&self, now: Duration, most: Option<Duration>) -> Result<Duration, Duration> {
        let now = nanos(now);
        let mut due = self.due.load(Ordering::Relaxed);
        loop {
            let wait = Duration::from_nanos(due.saturating_sub(self.slack).saturating_sub(now));
            if most.is_some_and(|most| wait > most) {
                return Err(wait);
            }
            let next = due.max(now).saturating_add(self.interval);
            match self.due.compare_exchange_weak(due, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(wait),
                Err(seen) => due = seen,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn turns_are_spaced_after_the_burst() {
        let limiter = Limiter::new(&RateLimit::per_second(10).with_burst(3));
        let waits: Vec<_> = (0..6).map(|_| limiter.take(ms(0), None).unwrap()).collect();
        assert_eq!(waits, [ms(0), ms(0), ms(0), ms(100), ms(200), ms(300)]);
        assert_eq!(limiter.take(ms(1_000), None).unwrap(), ms(0));
    }

    #[test]
    fn a_quiet_time_earns_no_more_than_the_burst() {
        let limiter = Limiter::new(&RateLimit::per_second(10).with_burst(2));
        let waits: Vec<_> = (0..4).map(|_| limiter.take(ms(60_000), None).unwrap()).collect();
        assert_eq!(waits, [ms(0), ms(0), ms(100), ms(200)]);
    }

    #[test]
    fn a_turn_that_is_too_far_off_is_not_taken() {
        let limiter = Limiter::new(&RateLimit::per_second(1));
        assert_eq!(limiter.take(ms(0), None).unwrap(), ms(0));
        assert_eq!(limiter.take(ms(0), Some(ms(500))), Err(ms(1_000)));
        assert_eq!(limiter.take(ms(0), Some(ms(1_500))), Ok(ms(1_000)));
    }
}
