//! The configuration: which layers, and how each behaves.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sifaka_core::Problem;

use crate::switch::{option, seconds, seconds_or_off};

/// How calls to a component are protected. On by default; a layer that is `None` is off.
///
/// In a file, times are seconds, and `false` switches a layer off:
///
/// ```
/// use sifaka_resilience::Resilience;
/// use std::time::Duration;
///
/// let options: Resilience = toml::from_str(r#"
///     timeout = 20.0
///     breaker = false
///     retry = { max_attempts = 3 }
///     rate_limit = { requests = 60, per = 60.0, burst = 5 }
/// "#)?;
/// assert_eq!(options.timeout, Some(Duration::from_secs(20)));
/// assert_eq!(options.breaker, None);
/// assert_eq!(options.retry.unwrap().factor, 2.0);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Resilience {
    /// Tries again what may succeed a little later.
    #[serde(with = "option")]
    pub retry: Option<Retry>,
    /// Keeps calls away from a component that keeps failing.
    #[serde(with = "option")]
    pub breaker: Option<Breaker>,
    /// Holds calls back to a given rate. Off by default: no rate fits every component.
    #[serde(with = "option")]
    pub rate_limit: Option<RateLimit>,
    /// The longest a single call may take; 60 s by default.
    #[serde(with = "seconds_or_off")]
    pub timeout: Option<Duration>,
    /// The longest a streamed answer may pause, before its first delta and between two; 30 s by
    /// default. Takes the place of `timeout` when streaming.
    #[serde(with = "seconds_or_off")]
    pub idle_timeout: Option<Duration>,
}

/// When and how often to try again.
///
/// Only errors whose [kind is retryable](sifaka_core::ErrorKind::is_retryable) are. Between two
/// tries goes a delay that begins with `base_delay` and grows by `factor`, up to `max_delay`: 1, 2,
/// 4 and 8 s by default. A provider that says when to come back is not asked earlier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// How many tries there are at most, the first among them; 5 by default.
    pub max_attempts: u32,
    /// The delay after the first try; 1 s by default.
    #[serde(with = "seconds")]
    pub base_delay: Duration,
    /// How much longer each delay is than the one before; 2 by default.
    pub factor: f64,
    /// The longest delay; 60 s by default. A provider may ask for a longer one.
    #[serde(with = "seconds")]
    pub max_delay: Duration,
    /// Which part of a delay is left to chance, from 0 to 1; 0.2 by default.
    ///
    /// A delay of `d` becomes one between `d · (1 − jitter)` and `d`, evenly spread: 0 waits
    /// exactly as stated, 1 anything up to that. A wait the provider asked for becomes longer by
    /// the same amount instead of shorter. So callers that failed together do not come back
    /// together.
    pub jitter: f64,
    /// How many retries there may be over many calls.
    #[serde(with = "option")]
    pub budget: Option<RetryBudget>,
}

/// A purse for retries that all calls through a guard share, so that a component that fails for
/// everybody is not hammered with everybody's retries.
///
/// Every retry takes one token out, and without one there is no retry. Every call that succeeds
/// puts `refund` of a token back, up to `tokens`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryBudget {
    /// How many tokens there are at first and at most; 10 by default.
    pub tokens: f64,
    /// What a success puts back; 0.1 by default, so in the long run one retry in ten calls.
    pub refund: f64,
}

/// When to keep calls away from a component, and for how long.
///
/// What counts as a failure is told by [`health`](crate::health).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Breaker {
    /// So many failures open the circuit; 5 by default.
    pub failures: u32,
    /// If they came within this time; 30 s by default.
    #[serde(with = "seconds")]
    pub within: Duration,
    /// How long it stays open before a probe is let through; 30 s by default.
    #[serde(with = "seconds")]
    pub open_for: Duration,
    /// How many probes are let through then, and must succeed to close it; 1 by default.
    pub half_open_probes: u32,
}

/// How many calls may be made in a given time. Those beyond it wait for their turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RateLimit {
    /// How many calls; 1 by default.
    pub requests: u32,
    /// In how much time; 1 s by default.
    #[serde(with = "seconds")]
    pub per: Duration,
    /// How many of them may come at once after a quiet time; 1 by default, which spaces them
    /// evenly.
    pub burst: u32,
}

impl Default for Resilience {
    fn default() -> Self {
        Self {
            retry: Some(Retry::default()),
            breaker: Some(Breaker::default()),
            rate_limit: None,
            timeout: Some(Duration::from_secs(60)),
            idle_timeout: Some(Duration::from_secs(30)),
        }
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_attempts: 5,
            base_delay: Duration::from_secs(1),
            factor: 2.0,
            max_delay: Duration::from_secs(60),
            jitter: 0.2,
            budget: Some(RetryBudget::default()),
        }
    }
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self { tokens: 10.0, refund: 0.1 }
    }
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            failures: 5,
            within: Duration::from_secs(30),
            open_for: Duration::from_secs(30),
            half_open_probes: 1,
        }
    }
}

impl Default for RateLimit {
    fn default() -> Self {
        Self::per_second(1)
    }
}

impl RateLimit {
    /// So many calls a second, evenly spaced.
    #[must_use]
    pub const fn per_second(requests: u32) -> Self {
        Self { requests, per: Duration::from_secs(1), burst: 1 }
    }

    /// So many calls a minute, evenly spaced.
    #[must_use]
    pub const fn per_minute(requests: u32) -> Self {
        Self { requests, per: Duration::from_secs(60), burst: 1 }
    }

    /// Lets so many come at once after a quiet time.
    #[must_use]
    pub const fn with_burst(mut self, burst: u32) -> Self {
        self.burst = burst;
        self
    }
}

impl Resilience {
    /// Every layer off.
    #[must_use]
    pub const fn none() -> Self {
        Self { retry: None, breaker: None, rate_limit: None, timeout: None, idle_timeout: None }
    }

    /// With these retries, or none.
    #[must_use]
    pub fn with_retry(mut self, retry: impl Into<Option<Retry>>) -> Self {
        self.retry = retry.into();
        self
    }

    /// With this breaker, or none.
    #[must_use]
    pub fn with_breaker(mut self, breaker: impl Into<Option<Breaker>>) -> Self {
        self.breaker = breaker.into();
        self
    }

    /// With this rate limit, or none.
    #[must_use]
    pub fn with_rate_limit(mut self, limit: impl Into<Option<RateLimit>>) -> Self {
        self.rate_limit = limit.into();
        self
    }

    /// With this timeout for a call, or none.
    #[must_use]
    pub fn with_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// With this timeout for a pause in a stream, or none.
    #[must_use]
    pub fn with_idle_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.idle_timeout = timeout.into();
        self
    }

    /// Everything that makes no sense, for a builder to report. A [`Guard`](crate::Guard) made of
    /// it all the same takes the nearest value that does.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut wrong = |bad: bool, place: &str, message: &str, suggestion: &str| {
            if bad {
                problems.push(Problem::new(format!("resilience.{place}"), message, suggestion));
            }
        };
        if let Some(retry) = &self.retry {
            let off = "give at least 1, or `retry = false` for no retries";
            wrong(retry.max_attempts == 0, "retry.max_attempts", "is 0", off);
            let grow = !(retry.factor >= 1.0 && retry.factor.is_finite());
            wrong(grow, "retry.factor", "is below 1", "give 1 for even delays, 2 to double them");
            let part = !(0.0..=1.0).contains(&retry.jitter);
            wrong(part, "retry.jitter", "is not between 0 and 1", "give a fraction such as 0.2");
            if let Some(budget) = &retry.budget {
                let few = !(budget.tokens >= 1.0 && budget.tokens.is_finite());
                let off = "give at least 1, or `budget = false` for no budget";
                wrong(few, "retry.budget.tokens", "is below 1", off);
                let odd = !(budget.refund >= 0.0 && budget.refund.is_finite());
                let fix = "give 0 or a fraction such as 0.1";
                wrong(odd, "retry.budget.refund", "is negative", fix);
            }
        }
        if let Some(breaker) = &self.breaker {
            let off = "give at least 1, or `breaker = false` for no breaker";
            wrong(breaker.failures == 0, "breaker.failures", "is 0", off);
            wrong(breaker.half_open_probes == 0, "breaker.half_open_probes", "is 0", "give 1");
        }
        if let Some(limit) = &self.rate_limit {
            let off = "give at least 1, or `rate_limit = false` for no limit";
            wrong(limit.requests == 0, "rate_limit.requests", "is 0", off);
            wrong(limit.per.is_zero(), "rate_limit.per", "is 0", "give 1.0 or 60.0 seconds");
            wrong(limit.burst == 0, "rate_limit.burst", "is 0", "give 1 for even spacing");
        }
        let off = "give a time, or `false` for no limit";
        wrong(self.timeout.is_some_and(|t| t.is_zero()), "timeout", "is 0", off);
        wrong(self.idle_timeout.is_some_and(|t| t.is_zero()), "idle_timeout", "is 0", off);
        problems
    }
}
