//! One chain of the file.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use sifaka_chain::{CriticsWhen, Guide};
use sifaka_core::model::Sampling;
use sifaka_resilience::Resilience;

use super::component::Component;
use super::limits::{BudgetConfig, StopConfig};

/// A chain: a model, what its texts must pass, who advises, and within which limits.
///
/// Paths inside a component's options are relative to the working folder; `templates` is relative
/// to the file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChainConfig {
    /// The model that writes: `"mock"`, or a table with `name` and options.
    pub model: Option<Component>,
    /// Models that stand in, in this order, when the ones before them fail.
    pub fallbacks: Vec<Component>,
    /// Standing instructions for the model.
    pub system: Option<String>,
    /// Checks the text must pass: `"length:words=50..200"`, or a table with `check` and options.
    pub checks: Vec<Component>,
    /// Critics: `"scripted:issue=too dry"`, or a table with `critic` and options.
    pub critics: Vec<Component>,
    /// When critics are asked.
    pub critics_when: Option<CriticsWhenConfig>,
    /// Retrievers for the model before it writes and for critics afterwards, as names or tables
    /// with `retriever` and options.
    pub retrievers: Vec<Component>,
    /// Retrievers for the model alone.
    pub model_retrievers: Vec<Component>,
    /// Retrievers for critics and checks alone.
    pub critic_retrievers: Vec<Component>,
    /// Whether what is retrieved goes into the model's prompt: true, unless this says no.
    pub use_retrieval_for_generation: Option<bool>,
    /// Retrieve before every iteration, with the feedback in the query, instead of once a run.
    pub retrieve_every_iteration: Option<bool>,
    /// The most documents each retriever gives: 5, unless this says otherwise.
    pub retrieve_limit: Option<usize>,
    /// How many improvements may follow the first text: 3, unless this says otherwise.
    pub max_iterations: Option<u32>,
    /// How many candidates the first iteration has: 1, unless this says otherwise.
    pub samples: Option<u32>,
    /// What comes after a text that could be better: `repair` it (the default), or ask afresh with
    /// `fresh` or, for several candidates, `fresh:3`.
    #[schemars(regex(pattern = "^(repair|fresh(:[1-9][0-9]*)?)$"))]
    pub policy: Option<String>,
    /// Whether the checks guide the decoding of a model that can be driven.
    pub guide: Option<GuideConfig>,
    /// A folder whose `NAME.md` take the place of our templates; `sifaka prompts` prints ours.
    pub templates: Option<PathBuf>,
    /// Regular expressions; what they match is replaced by `[redacted]` before it is recorded.
    pub redact: Vec<String>,
    /// Fixes the model's randomness, where it can be.
    pub seed: Option<u64>,
    /// Whether timings are kept: true, unless this says no.
    pub timings: Option<bool>,
    /// Texts at which the model stops.
    pub stop_texts: Vec<String>,
    /// How the model chooses its words.
    #[schemars(with = "SamplingShape")]
    pub sampling: Sampling,
    /// What a run may spend.
    pub budget: BudgetConfig,
    /// Rules that end a run early.
    pub stop: StopConfig,
    /// Retries, breakers, rate limits and timeouts.
    #[schemars(with = "ResilienceShape")]
    pub resilience: Resilience,
}

/// When critics are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CriticsWhenConfig {
    /// When the text did not pass: the default.
    OnFailure,
    /// After every text; a passing one goes on being improved, and the best is kept.
    Always,
    /// Never.
    Never,
}

impl From<CriticsWhenConfig> for CriticsWhen {
    fn from(when: CriticsWhenConfig) -> Self {
        match when {
            CriticsWhenConfig::OnFailure => Self::OnFailure,
            CriticsWhenConfig::Always => Self::Always,
            CriticsWhenConfig::Never => Self::Never,
        }
    }
}

/// Whether the checks guide the decoding of a model that can be driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GuideConfig {
    /// Whenever the model can: the default.
    Auto,
    /// Never; texts are only checked afterwards.
    Off,
}

impl From<GuideConfig> for Guide {
    fn from(guide: GuideConfig) -> Self {
        match guide {
            GuideConfig::Auto => Self::Auto,
            GuideConfig::Off => Self::Off,
        }
    }
}

// The types behind these tables belong to crates that do not know schemas; a test holds the
// shapes to them.

/// How the model chooses its words. What is not given is the model's own default.
#[derive(JsonSchema)]
#[schemars(rename = "Sampling", deny_unknown_fields)]
#[expect(dead_code, reason = "read by the schema alone")]
struct SamplingShape {
    /// 0 always takes the likeliest.
    temperature: Option<f64>,
    /// Only from the likeliest that together have this probability.
    top_p: Option<f64>,
    /// Only from so many.
    top_k: Option<u32>,
    /// Only those at least this fraction as likely as the likeliest.
    min_p: Option<f64>,
    /// Above 1 makes what was said before less likely.
    repetition_penalty: Option<f64>,
    /// The most tokens of the answer.
    max_tokens: Option<u64>,
}

/// A layer, or `false` to switch it off.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "read by the schema alone")]
enum OrOff<T> {
    Off(bool),
    On(T),
}

/// How calls are protected. Times are seconds; `false` switches a layer off.
#[derive(JsonSchema)]
#[schemars(rename = "Resilience", deny_unknown_fields)]
#[expect(dead_code, reason = "read by the schema alone")]
struct ResilienceShape {
    /// Tries again what may succeed a little later.
    retry: Option<OrOff<RetryShape>>,
    /// Keeps calls away from a component that keeps failing.
    breaker: Option<OrOff<BreakerShape>>,
    /// Holds calls back to a given rate; off by default.
    rate_limit: Option<OrOff<RateLimitShape>>,
    /// The longest a single call may take; 60 by default.
    timeout: Option<OrOff<f64>>,
    /// The longest a streamed answer may pause; 30 by default.
    idle_timeout: Option<OrOff<f64>>,
}

/// When and how often to try again.
#[derive(JsonSchema)]
#[schemars(rename = "Retry", deny_unknown_fields)]
#[expect(dead_code, reason = "read by the schema alone")]
struct RetryShape {
    /// How many tries there are at most, the first among them; 5 by default.
    max_attempts: Option<u32>,
    /// The delay after the first try; 1 by default.
    base_delay: Option<f64>,
    /// How much longer each delay is than the one before; 2 by default.
    factor: Option<f64>,
    /// The longest delay; 60 by default.
    max_delay: Option<f64>,
    /// Which part of a delay is left to chance, from 0 to 1; 0.2 by default.
    jitter: Option<f64>,
    /// How many retries there may be over many calls.
    budget: Option<OrOff<RetryBudgetShape>>,
}

/// A purse for retries that all calls to a component share.
#[derive(JsonSchema)]
#[schemars(rename = "RetryBudget", deny_unknown_fields)]
#[expect(dead_code, reason = "read by the schema alone")]
struct RetryBudgetShape {
    /// How many tokens there are at first and at most; 10 by default.
    tokens: Option<f64>,
    /// What a success puts back; 0.1 by default.
    refund: Option<f64>,
}

/// When to keep calls away, and for how long.
#[derive(JsonSchema)]
#[schemars(rename = "Breaker", deny_unknown_fields)]
#[expect(dead_code, reason = "read by the schema alone")]
struct BreakerShape {
    /// So many failures open the circuit; 5 by default.
    failures: Option<u32>,
    /// If they came within this time; 30 by default.
    within: Option<f64>,
    /// How long it stays open; 30 by default.
    open_for: Option<f64>,
    /// How many probes are let through then; 1 by default.
    half_open_probes: Option<u32>,
}

/// How many calls may be made in a given time.
#[derive(JsonSchema)]
#[schemars(rename = "RateLimit", deny_unknown_fields)]
#[expect(dead_code, reason = "read by the schema alone")]
struct RateLimitShape {
    /// How many calls; 1 by default.
    requests: Option<u32>,
    /// In how much time; 1 by default.
    per: Option<f64>,
    /// How many may come at once after a quiet time; 1 by default.
    burst: Option<u32>,
}
