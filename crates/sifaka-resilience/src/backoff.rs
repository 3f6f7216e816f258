//! How long to wait between tries, and whether there may be another one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::options::{Retry, RetryBudget};

/// The delay after the try `attempt`, counted from 1. `chance` is a random number in `0.0..1.0`,
/// `after` what the other side asked for.
pub(crate) fn delay(retry: &Retry, attempt: u32, chance: f64, after: Option<Duration>) -> Duration {
    let most = retry.max_delay.as_secs_f64();
    let steps = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
    // `max` and `min` give the other operand for a NaN, so odd options end up in range.
    let grown = retry.base_delay.as_secs_f64() * retry.factor.max(1.0).powi(steps);
    let full = grown.min(most).max(0.0);
    let jitter = if retry.jitter.is_nan() { 0.0 } else { retry.jitter.clamp(0.0, 1.0) };
    let spread = full * jitter * chance;
    let own = seconds(full - spread);
    after.map_or(own, |after| own.max(after.saturating_add(seconds(spread))))
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// The purse all retries through a guard are paid from, in millionths of a token.
#[derive(Debug)]
pub(crate) struct Purse {
    held: AtomicU64,
    most: u64,
    refund: u64,
}

const TOKEN: u64 = 1_000_000;

impl Purse {
    pub(crate) fn new(budget: &RetryBudget) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float cast saturates, and takes NaN for 0"
        )]
        let part = |tokens: f64| (tokens * 1e6).round() as u64;
        let most = part(budget.tokens);
        Self { held: AtomicU64::new(most), most, refund: part(budget.refund) }
    }

    /// Pays for a retry; false when there is not enough left.
    pub(crate) fn pay(&self) -> bool {
        let paid = |held: u64| held.checked_sub(TOKEN);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, paid).is_ok()
    }

    /// A call succeeded. Costs one load while the purse is full, which it nearly always is.
    pub(crate) fn refund(&self) {
        if self.held.load(Ordering::Relaxed) >= self.most {
            return;
        }
        let filled =
            |held: u64| (held < self.most).then(|| held.saturating_add(self.refund).min(self.most));
        // `Err` says that it is full already, which is just as well.
        let _ = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, filled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn delays_double_up_to_the_longest() {
        let retry = Retry { jitter: 0.0, ..Retry::default() };
        let delays: Vec<_> = (1..=8).map(|n| delay(&retry, n, 0.5, None).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn the_other_side_may_ask_for_more_but_not_for_less() {
        let retry = Retry { jitter: 0.0, ..Retry::default() };
        let ask = |after| delay(&retry, 3, 0.0, Some(Duration::from_secs(after))).as_secs();
        assert_eq!((ask(1), ask(90)), (4, 90));
    }

    #[test]
    fn a_purse_never_holds_more_than_it_was_given() {
        let purse = Purse::new(&RetryBudget { tokens: 2.0, refund: 0.5 });
        purse.refund();
        assert!(purse.pay() && purse.pay());
        assert!(!purse.pay());
        purse.refund();
        assert!(!purse.pay());
        purse.refund();
        assert!(purse.pay());
    }

    proptest! {
        #[test]
        fn jitter_stays_within_its_bounds(
            attempt in 1_u32..40,
            jitter in 0.0..=1.0_f64,
            chance in 0.0..1.0_f64,
            after in proptest::option::of(0_u64..100),
        ) {
            let retry = Retry { jitter, ..Retry::default() };
            let exact = Retry { jitter: 0.0, ..Retry::default() };
            let full = delay(&exact, attempt, 0.0, None).as_secs_f64();
            let after = after.map(Duration::from_secs);
            let got = delay(&retry, attempt, chance, after);
            if let Some(after) = after {
                prop_assert!(got >= after);
            } else {
                prop_assert!(got.as_secs_f64() <= full + 1e-9);
            }
            prop_assert!(got.as_secs_f64() >= full * (1.0 - jitter) - 1e-9);
        }

        #[test]
        fn odd_options_do_not_panic(
            attempt: u32, factor: f64, jitter: f64, base in 0.0..1e15_f64, chance in 0.0..1.0_f64,
        ) {
            let base_delay = Duration::from_secs_f64(base);
            let retry = Retry { factor, jitter, base_delay, ..Retry::default() };
            prop_assert!(delay(&retry, attempt, chance, None) <= retry.max_delay);
        }
    }
}
