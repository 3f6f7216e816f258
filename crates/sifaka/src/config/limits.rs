//! What a chain may spend, and when it stops.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use sifaka_chain::Stop;
use sifaka_core::{Budget, Cost, Problem};

/// What a run may spend. An absent cap is no cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetConfig {
    /// The most calls to models.
    pub calls: Option<u64>,
    /// The most tokens, in and out together.
    pub tokens: Option<u64>,
    /// The most money, in US dollars. Needs a model with a known price.
    pub cost: Option<f64>,
    /// The longest a run may take, in seconds.
    pub time: Option<f64>,
}

impl BudgetConfig {
    /// As the chain takes it; what makes no sense is left out and goes to `problems`.
    pub(super) fn read(&self, problems: &mut Vec<Problem>) -> Budget {
        let cost = self.cost.and_then(|dollars| {
            if dollars.is_finite() && dollars >= 0.0 {
                return Some(Cost::from_dollars(dollars));
            }
            let message = format!("{dollars} is not an amount of money");
            problems.push(Problem::new("budget.cost", message, "give dollars, such as 0.5"));
            None
        });
        Budget {
            calls: self.calls,
            tokens: self.tokens,
            cost,
            time: self.time.and_then(|time| seconds("budget.time", time, problems)),
        }
    }
}

/// Rules that end a run before its iterations are used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StopConfig {
    /// After so many iterations in a row that did not raise the best score.
    pub plateau: Option<u32>,
    /// How much a score must rise to count as risen.
    pub plateau_epsilon: Option<f64>,
    /// When a text comes back that had been there before: true, unless this says no.
    pub oscillation: Option<bool>,
    /// After so many seconds.
    pub deadline: Option<f64>,
}

impl StopConfig {
    pub(super) fn read(&self, problems: &mut Vec<Problem>) -> Stop {
        let usual = Stop::default();
        Stop {
            plateau: self.plateau,
            plateau_epsilon: self.plateau_epsilon.unwrap_or(usual.plateau_epsilon),
            oscillation: self.oscillation.unwrap_or(usual.oscillation),
            deadline: self.deadline.and_then(|time| seconds("stop.deadline", time, problems)),
        }
    }
}

fn seconds(place: &str, seconds: f64, problems: &mut Vec<Problem>) -> Option<Duration> {
    let time = Duration::try_from_secs_f64(seconds);
    if time.is_err() {
        let message = format!("{seconds} is not a time");
        problems.push(Problem::new(place, message, "give seconds, such as 90"));
    }
    time.ok()
}
