//! How a chain decides when to ask critics and when to stop.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sifaka_core::model::Sampling;
use sifaka_core::{Budget, Thought};
use sifaka_resilience::Resilience;

/// When critics are asked.
#[derive(Clone, Default)]
pub enum CriticsWhen {
    /// When the text did not pass: the default.
    #[default]
    OnFailure,
    /// After every text. A passing one goes on being improved, and the best is kept.
    Always,
    /// Never.
    Never,
    /// When this says so of the iteration. A passing text it says yes to goes on being improved.
    If(Arc<dyn Fn(&Thought) -> bool + Send + Sync>),
}

impl CriticsWhen {
    /// Whether critics are to be asked about this iteration.
    pub(crate) fn asks(&self, thought: &Thought, passed: bool) -> bool {
        match self {
            Self::OnFailure => !passed,
            Self::Always => true,
            Self::Never => false,
            Self::If(predicate) => predicate(thought),
        }
    }

    /// Whether a text that passed goes on being improved.
    pub(crate) fn improves_passing(&self, thought: &Thought) -> bool {
        match self {
            Self::OnFailure | Self::Never => false,
            Self::Always => true,
            Self::If(predicate) => predicate(thought),
        }
    }
}

impl fmt::Debug for CriticsWhen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OnFailure => "OnFailure",
            Self::Always => "Always",
            Self::Never => "Never",
            Self::If(_) => "If",
        })
    }
}

/// Rules that end a run before its iterations are used up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stop {
    /// After so many iterations in a row that did not raise the best score.
    pub plateau: Option<u32>,
    /// How much a score must rise to count as risen.
    pub plateau_epsilon: f64,
    /// When a text comes back that had been there before.
    pub oscillation: bool,
    /// After so much time.
    pub deadline: Option<Duration>,
}

impl Default for Stop {
    /// When a text comes back; no plateau rule and no deadline.
    fn default() -> Self {
        Self { plateau: None, plateau_epsilon: 1e-9, oscillation: true, deadline: None }
    }
}

/// Whether the checks guide the decoding of a model that can be driven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guide {
    /// Whenever the model can: the default.
    #[default]
    Auto,
    /// Never; texts are only checked afterwards.
    Off,
}

/// Everything about a chain that is not a component.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) name: Arc<str>,
    pub(crate) system: Option<Arc<str>>,
    pub(crate) max_iterations: u32,
    pub(crate) samples: u32,
    pub(crate) critics_when: CriticsWhen,
    pub(crate) use_retrieval_for_generation: bool,
    pub(crate) retrieve_every_iteration: bool,
    pub(crate) retrieve_limit: usize,
    pub(crate) stop: Stop,
    pub(crate) guide: Guide,
    pub(crate) budget: Budget,
    pub(crate) sampling: Sampling,
    pub(crate) stop_texts: Vec<String>,
    pub(crate) seed: Option<u64>,
    pub(crate) timings: bool,
    pub(crate) resilience: Resilience,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: Arc::from("chain"),
            system: None,
            max_iterations: 3,
            samples: 1,
            critics_when: CriticsWhen::default(),
            use_retrieval_for_generation: true,
            retrieve_every_iteration: false,
            retrieve_limit: 5,
            stop: Stop::default(),
            guide: Guide::default(),
            budget: Budget::default(),
            sampling: Sampling::default(),
            stop_texts: Vec::new(),
            seed: None,
            timings: true,
            resilience: Resilience::default(),
        }
    }
}
