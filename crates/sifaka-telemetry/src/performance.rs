//! Where the time went, as figures to read and to export.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use sifaka_core::Cost;
use sifaka_core::event::Nanos;

/// Where the time went, for one run or many. In JSON every time is in seconds.
///
/// What overlaps, and why the parts need not add up to the total, is told at the top of this
/// crate.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Performance {
    /// How many runs have ended.
    pub runs: u64,
    /// Wall time of the runs.
    pub total_time: Nanos,
    /// Calls to models, for the text and for advice.
    pub model_time: Nanos,
    /// Answers of validators.
    pub validation_time: Nanos,
    /// Answers of critics, with the model calls they made.
    pub critic_time: Nanos,
    /// Answers of retrievers.
    pub retrieval_time: Nanos,
    /// Waits for the journal.
    pub storage_time: Nanos,
    /// Each component, the one that took longest first.
    pub components: Vec<ComponentPerformance>,
}

/// What one component took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComponentPerformance {
    /// Its kind and name, such as `validator:length`.
    pub component: String,
    /// What it is.
    pub kind: ComponentKind,
    /// How many answers were timed.
    pub count: u64,
    /// How long they took together.
    pub total: Nanos,
    /// And on average.
    pub mean: Nanos,
    /// Half of them took no longer. Exact for up to 32 answers, else within 3.2 %.
    pub p50: Nanos,
    /// 99 of 100 took no longer; as exact as `p50`.
    pub p99: Nanos,
    /// The longest.
    pub max: Nanos,
    /// How often it failed.
    pub failures: u64,
    /// Tokens in and out, for models.
    pub tokens: u64,
    /// Money, for models whose price is known.
    pub cost: Option<Cost>,
}

/// What a component is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ComponentKind {
    /// A model.
    Model,
    /// A validator.
    Validator,
    /// A critic.
    Critic,
    /// A retriever.
    Retriever,
    /// The journal.
    Storage,
    /// Something else that failed.
    Other,
}

impl fmt::Display for ComponentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model => "model",
            Self::Validator => "validator",
            Self::Critic => "critic",
            Self::Retriever => "retriever",
            Self::Storage => "storage",
            Self::Other => "other",
        })
    }
}

impl Performance {
    /// Components and the time they took, the longest first.
    #[must_use]
    pub fn bottlenecks(&self) -> Vec<(String, Duration)> {
        let time = |part: &ComponentPerformance| (part.component.clone(), part.total.into());
        self.components.iter().map(time).collect()
    }

    /// As JSON, with times in seconds.
    #[must_use]
    pub fn to_json(&self) -> Value {
        // Only maps with odd keys and failing serializers make this fail, and there are none here.
        serde_json::to_value(self).unwrap_or_default()
    }
}
