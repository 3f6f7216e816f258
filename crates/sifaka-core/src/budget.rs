//! Limits on what a run may spend: reserve before a call, settle after it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::usage::{Cost, Usage};
use crate::{Error, ErrorKind, Result};

/// Caps on calls, tokens, money and wall time. An absent cap is no cap; zero allows nothing.
///
/// ```
/// use sifaka_core::{Budget, Cost};
/// use std::time::Duration;
///
/// let budget = Budget::tokens(60_000).with_calls(12).with_time(Duration::from_secs(90));
/// assert_eq!(budget.tokens, Some(60_000));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// The most calls to models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// The most tokens, in and out together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The most money. Needs a model with a known price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The longest a run may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
}

impl Budget {
    /// No limits.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::default()
    }

    /// At most so many calls.
    #[must_use]
    pub fn calls(calls: u64) -> Self {
        Self::default().with_calls(calls)
    }

    /// At most so many tokens, in and out together.
    #[must_use]
    pub fn tokens(tokens: u64) -> Self {
        Self::default().with_tokens(tokens)
    }

    /// At most so much money.
    #[must_use]
    pub fn cost(cost: Cost) -> Self {
        Self::default().with_cost(cost)
    }

    /// At most so much wall time.
    #[must_use]
    pub fn time(time: Duration) -> Self {
        Self::default().with_time(time)
    }

    /// Also caps calls.
    #[must_use]
    pub fn with_calls(mut self, calls: u64) -> Self {
        self.calls = Some(calls);
        self
    }

    /// Also caps tokens.
    #[must_use]
    pub fn with_tokens(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Also caps money.
    #[must_use]
    pub fn with_cost(mut self, cost: Cost) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Also caps wall time.
    #[must_use]
    pub fn with_time(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }
}

/// Keeps what was spent under a [`Budget`], for as many concurrent calls as there are.
#[derive(Debug)]
pub struct Ledger {
    limits: Budget,
    state: Mutex<State>,
}

#[derive(Debug, Default, Clone, Copy)]
struct State {
    spent: Usage,
    reserved: Estimate,
}

/// What a call is expected to take at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Calls.
    pub calls: u64,
    /// Tokens, in and out together.
    pub tokens: u64,
    /// Money.
    pub cost: Cost,
}

impl Ledger {
    /// A ledger with nothing spent.
    #[must_use]
    pub fn new(limits: Budget) -> Self {
        Self { limits, state: Mutex::new(State::default()) }
    }

    /// A ledger of a run that goes on: `spent` counts against the limits.
    #[must_use]
    pub fn resumed(limits: Budget, spent: Usage) -> Self {
        Self { limits, state: Mutex::new(State { spent, reserved: Estimate::default() }) }
    }

    /// The caps.
    #[must_use]
    pub fn limits(&self) -> &Budget {
        &self.limits
    }

    /// What was spent, without what is reserved.
    #[must_use]
    pub fn spent(&self) -> Usage {
        self.lock().spent
    }

    /// How many more tokens may be reserved; `None` without a cap.
    #[must_use]
    pub fn tokens_left(&self) -> Option<u64> {
        let state = self.lock();
        self.limits.tokens.map(|cap| {
            cap.saturating_sub(state.spent.tokens().saturating_add(state.reserved.tokens))
        })
    }

    /// Sets aside what a call may take. Dropping the reservation gives it back.
    ///
    /// # Errors
    /// [`ErrorKind::BudgetExhausted`], with the figures, when it would pass a cap.
    pub fn reserve(self: &Arc<Self>, estimate: Estimate) -> Result<Reservation> {
        let mut state = self.lock();
        let (spent, held) = (state.spent, state.reserved);
        let over = |what: &str, used: String, asked: String, cap: String| {
            Error::new(
                ErrorKind::BudgetExhausted,
                "budget",
                "reserve",
                format!("{used} {what} used and {asked} more needed, {cap} allowed"),
            )
            .suggest("raise the budget, or accept the best text so far")
        };
        if let Some(cap) = self.limits.calls {
            let used = spent.calls.saturating_add(held.calls);
            if used.saturating_add(estimate.calls) > cap {
                return Err(over(
                    "calls",
                    used.to_string(),
                    estimate.calls.to_string(),
                    cap.to_string(),
                ));
            }
        }
        if let Some(cap) = self.limits.tokens {
            let used = spent.tokens().saturating_add(held.tokens);
            if used.saturating_add(estimate.tokens) > cap {
                return Err(over(
                    "tokens",
                    used.to_string(),
                    estimate.tokens.to_string(),
                    cap.to_string(),
                ));
            }
        }
        if let Some(cap) = self.limits.cost {
            let used = spent.cost.unwrap_or_default().saturating_add(held.cost);
            if used.saturating_add(estimate.cost) > cap {
                return Err(over(
                    "of money",
                    used.to_string(),
                    estimate.cost.to_string(),
                    cap.to_string(),
                ));
            }
        }
        state.reserved.calls = held.calls.saturating_add(estimate.calls);
        state.reserved.tokens = held.tokens.saturating_add(estimate.tokens);
        state.reserved.cost = held.cost.saturating_add(estimate.cost);
        drop(state);
        Ok(Reservation { ledger: Arc::clone(self), estimate })
    }

    fn release(&self, estimate: Estimate, usage: Option<Usage>) {
        let mut state = self.lock();
        state.reserved.calls = state.reserved.calls.saturating_sub(estimate.calls);
        state.reserved.tokens = state.reserved.tokens.saturating_sub(estimate.tokens);
        state.reserved.cost =
            Cost::from_nanos(state.reserved.cost.nanos().saturating_sub(estimate.cost.nanos()));
        if let Some(usage) = usage {
            state.spent += usage;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Every update leaves the state whole, so a poisoned lock is still good.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something set aside in a [`Ledger`]; given back when dropped unsettled.
#[derive(Debug)]
#[must_use = "a reservation that is dropped at once reserves nothing"]
pub struct Reservation {
    ledger: Arc<Ledger>,
    estimate: Estimate,
}

impl Reservation {
    /// Replaces what was set aside by what the call really took.
    pub fn settle(mut self, usage: Usage) {
        let estimate = std::mem::take(&mut self.estimate);
        self.ledger.release(estimate, Some(usage));
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.ledger.release(self.estimate, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(tokens: u64) -> Estimate {
        Estimate { calls: 1, tokens, cost: Cost::ZERO }
    }

    #[test]
    fn reserve_then_settle_counts_what_was_used() {
        let ledger = Arc::new(Ledger::new(Budget::tokens(100).with_calls(3)));
        let held = ledger.reserve(estimate(90)).unwrap();
        assert_eq!(ledger.reserve(estimate(20)).unwrap_err().kind(), ErrorKind::BudgetExhausted);
        held.settle(Usage { calls: 1, input_tokens: 10, output_tokens: 20, ..Usage::default() });
        assert_eq!(ledger.tokens_left(), Some(70));
        drop(ledger.reserve(estimate(70)).unwrap());
        assert_eq!(ledger.tokens_left(), Some(70));
    }

    #[test]
    fn a_cap_of_zero_allows_nothing() {
        for budget in [Budget::calls(0), Budget::tokens(0)] {
            let ledger = Arc::new(Ledger::new(budget));
            assert!(ledger.reserve(estimate(1)).is_err());
        }
    }

    #[test]
    fn the_error_has_the_figures() {
        let ledger = Arc::new(Ledger::new(Budget::calls(1)));
        ledger.reserve(estimate(0)).unwrap().settle(Usage { calls: 1, ..Usage::default() });
        let message = ledger.reserve(estimate(0)).unwrap_err().to_string();
        assert!(message.contains("1 calls used and 1 more needed, 1 allowed"), "{message}");
    }
}
