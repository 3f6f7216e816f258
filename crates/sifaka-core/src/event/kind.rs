//! The kinds of events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::body::Body;
use crate::document::Document;
use crate::failure::Failure;
use crate::feedback::CriticFeedback;
use crate::model::{Completion, Delta, Message, Provider, Response, Sampling};
use crate::policy::Decision;
use crate::retriever::Stage;
use crate::usage::Usage;
use crate::validation::{Score, ValidationResult};
use crate::{Id, Thought};

/// A duration: nanoseconds inside, seconds as a float in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub u64);

impl Nanos {
    /// In seconds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "exact below 26 days")]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Self {
        Self::from_nanos(nanos.0)
    }
}

impl Serialize for Nanos {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.seconds())
    }
}

impl<'de> Deserialize<'de> for Nanos {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float cast saturates"
        )]
        let nanos = (seconds * 1e9).round() as u64;
        Ok(Self(nanos))
    }
}

/// Everything that can happen in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    expecting = "neither a whole event of a known type nor one of a type that is not known"
)]
#[non_exhaustive]
pub enum EventKind {
    /// A run begins. Always the first event.
    RunStarted {
        /// The first Thought's id, which is also the run's.
        thought_id: Id,
        /// The chain's name and fingerprint.
        chain_id: Arc<str>,
        /// What was asked.
        prompt: Arc<str>,
        /// Under which standing instructions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system_prompt: Option<Arc<str>>,
        /// The user's labels.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        tags: BTreeMap<String, String>,
        /// Whatever else the user wants kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Map<String, Value>>,
    },
    /// A Thought that was made elsewhere enters the journal, whole. Takes the place of
    /// [`RunStarted`](Self::RunStarted).
    Imported {
        /// The Thought with its history.
        thought: Box<Thought>,
    },
    /// A run that was left goes on.
    RunResumed {
        /// The chain that goes on with it.
        chain_id: Arc<str>,
        /// Whether that chain's configuration differs from the one that began.
        changed: bool,
    },
    /// A further iteration begins.
    IterationStarted {
        /// Its Thought.
        thought_id: Id,
        /// How its text is to come about.
        decision: Decision,
    },
    /// A retriever answered.
    Retrieved {
        /// Before or after writing.
        stage: Stage,
        /// Its place among the stage's retrievers.
        index: u32,
        /// Its name.
        retriever: Arc<str>,
        /// What it was asked.
        query: Body,
        /// What it found.
        documents: Vec<Document>,
        /// How long it took.
        seconds: Nanos,
    },
    /// A model is about to be asked, with exactly this.
    Prompted(Box<Prompted>),
    /// The model wrote one or more candidates for the iteration.
    Generated {
        /// Which model.
        model: Arc<str>,
        /// What it wrote.
        completions: Vec<Completion>,
        /// What it consumed.
        usage: Usage,
        /// What the provider said besides.
        #[serde(default)]
        provider: Provider,
        /// The bytes that came, as they came.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<Body>,
        /// How long it took.
        seconds: Nanos,
    },
    /// A critic, validator or other component asked a model.
    Called {
        /// Who asked.
        component: Arc<str>,
        /// Which model.
        model: Arc<str>,
        /// Exactly what.
        prompt: Box<Prompted>,
        /// Hash of the request: a resumed run that asks the same gets this answer.
        request: crate::Hash,
        /// What it answered.
        response: Box<Response>,
        /// How long it took.
        seconds: Nanos,
    },
    /// What guided the generation, in one compact report.
    Guided {
        /// Which candidate.
        candidate: u32,
        /// What was forced or refused, and which check asked for it.
        report: Value,
    },
    /// Validators answered about a candidate.
    Validated {
        /// Which candidate.
        candidate: u32,
        /// What they said.
        results: Vec<Checked>,
    },
    /// The iteration's text was chosen among its candidates.
    Chosen {
        /// Which candidate.
        candidate: u32,
        /// How good it is.
        score: Score,
    },
    /// A critic answered. A text it proposes becomes one more candidate.
    Critiqued {
        /// Its place among the critics.
        index: u32,
        /// What it said.
        feedback: CriticFeedback,
        /// How long it took.
        seconds: Nanos,
    },
    /// A component failed without ending the run.
    Failed {
        /// Which step of the iteration.
        step: Step,
        /// What went wrong.
        failure: Failure,
        /// How long it took.
        seconds: Nanos,
    },
    /// A step was left out.
    Skipped {
        /// Which step of the iteration.
        step: Step,
        /// The component.
        component: Arc<str>,
        /// Why.
        reason: Arc<str>,
    },
    /// Retries, breakers, limits, fallbacks.
    Resilience {
        /// Of which component.
        component: Arc<str>,
        /// What happened.
        transition: Transition,
    },
    /// Something a component or the user wants on record.
    Noted {
        /// What it is.
        name: Arc<str>,
        /// The note.
        data: Value,
    },
    /// The run ended with an answer.
    RunFinished {
        /// Why it ended.
        reason: EndReason,
        /// The Thought it gave.
        best: Id,
        /// How good that is.
        score: Score,
        /// What the whole run consumed.
        usage: Usage,
        /// How long this process worked on it.
        seconds: Nanos,
    },
    /// The run ended without an answer. It can be resumed.
    RunFailed {
        /// Why.
        failure: Failure,
        /// How long this process worked on it.
        seconds: Nanos,
    },
    /// A piece of text as it comes. Transient: streamed, never stored or hashed.
    Delta(Delta),
    /// An event of a newer version, kept as it is.
    #[serde(untagged, deserialize_with = "unknown")]
    Unknown(Map<String, Value>),
}

/// The types this version knows. One of them that does not read as what it is is damaged, not new.
const KNOWN: &[&str] = &[
    "run_started",
    "imported",
    "run_resumed",
    "iteration_started",
    "retrieved",
    "prompted",
    "generated",
    "called",
    "guided",
    "validated",
    "chosen",
    "critiqued",
    "failed",
    "skipped",
    "resilience",
    "noted",
    "run_finished",
    "run_failed",
    "delta",
];

fn unknown<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    let fields = Map::deserialize(deserializer)?;
    match fields.get("type").and_then(Value::as_str) {
        Some(name) if !KNOWN.contains(&name) => Ok(fields),
        _ => Err(serde::de::Error::custom("the event is damaged")),
    }
}

impl EventKind {
    /// Its name in JSON.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::RunStarted { .. } => "run_started",
            Self::Imported { .. } => "imported",
            Self::RunResumed { .. } => "run_resumed",
            Self::IterationStarted { .. } => "iteration_started",
            Self::Retrieved { .. } => "retrieved",
            Self::Prompted(_) => "prompted",
            Self::Generated { .. } => "generated",
            Self::Called { .. } => "called",
            Self::Guided { .. } => "guided",
            Self::Validated { .. } => "validated",
            Self::Chosen { .. } => "chosen",
            Self::Critiqued { .. } => "critiqued",
            Self::Failed { .. } => "failed",
            Self::Skipped { .. } => "skipped",
            Self::Resilience { .. } => "resilience",
            Self::Noted { .. } => "noted",
            Self::RunFinished { .. } => "run_finished",
            Self::RunFailed { .. } => "run_failed",
            Self::Delta(_) => "delta",
            Self::Unknown(fields) => {
                fields.get("type").and_then(Value::as_str).unwrap_or("unknown")
            }
        }
    }

    /// Whether it is streamed only, and never stored.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Delta(_))
    }

    /// Whether a caller is told of it only once it is safe: what was paid for, and the beginning,
    /// whose id is what a run that was left is taken up by.
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        let begins = matches!(
            self,
            Self::RunStarted { .. } | Self::Imported { .. } | Self::RunResumed { .. }
        );
        begins || self.is_paid_for()
    }

    /// Whether it is the result of something that must not be done twice, and so has to be safe
    /// on disk before the run goes on.
    #[must_use]
    pub fn is_paid_for(&self) -> bool {
        matches!(
            self,
            Self::Generated { .. }
                | Self::Called { .. }
                | Self::Critiqued { .. }
                | Self::RunFinished { .. }
                | Self::RunFailed { .. }
        )
    }
}

/// Exactly what a model was asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Prompted {
    /// Which model.
    pub model: Arc<str>,
    /// What for.
    pub purpose: CallPurpose,
    /// The standing instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<Arc<str>>,
    /// The messages.
    pub messages: Vec<Message>,
    /// How the next token is chosen.
    pub sampling: Sampling,
    /// How many candidates.
    pub candidates: u32,
    /// Rules handed to the model, each with the check that asked for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<(Arc<str>, Value)>,
    /// Everything else of the request that was set: seed, stop texts, tools and so on.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
    /// What was left out so that the prompt fits the model's window.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<Cut>,
}

/// What a model is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallPurpose {
    /// The iteration's text.
    #[default]
    Generate,
    /// Advice or a judgement.
    Advise,
}

/// Something that was left out of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// What: a document's origin, a critic's name.
    pub what: String,
    /// How many tokens it would have taken.
    pub tokens: u64,
}

/// One validator's answer about a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// Its place among the validators.
    pub index: u32,
    /// Its unique name.
    pub name: Arc<str>,
    /// What it said.
    pub result: ValidationResult,
    /// Why it could not tell, when it broke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// How long it took.
    pub seconds: Nanos,
}

/// A step of an iteration that may fail or be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Step {
    /// The retriever at this place.
    Retriever(Stage, u32),
    /// The validator at this place.
    Validator(u32),
    /// The critic at this place.
    Critic(u32),
    /// Something else.
    Other,
}

/// A change in how a component is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Transition {
    /// A try failed and another will be made.
    Retrying {
        /// Which try failed, from 1.
        attempt: u32,
        /// How long until the next.
        delay: Nanos,
        /// Why it failed.
        failure: Failure,
    },
    /// Every try failed.
    RetriesExhausted {
        /// How many there were.
        attempts: u32,
    },
    /// Too many failures: calls are kept away.
    CircuitOpened {
        /// For how long.
        #[serde(rename = "for")]
        for_: Nanos,
    },
    /// One call is let through to see.
    CircuitHalfOpened,
    /// It works again.
    CircuitClosed,
    /// A call was turned away.
    CircuitRejected,
    /// A call waited for its turn.
    RateLimited {
        /// How long.
        waited: Nanos,
    },
    /// A call took too long.
    TimedOut {
        /// The limit.
        after: Nanos,
    },
    /// Another component took over.
    FellBack {
        /// To which.
        to: Arc<str>,
        /// Why.
        failure: Failure,
    },
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndReason {
    /// The text passed.
    Passed,
    /// The allowed improvements are used up.
    MaxIterations,
    /// The score stopped rising.
    Plateau {
        /// Over how many iterations.
        rounds: u32,
    },
    /// A text came back that had been there before.
    Oscillation,
    /// The budget does not allow the next call.
    Budget {
        /// Which cap, with the figures.
        message: String,
    },
    /// The time is up.
    Deadline,
    /// Somebody asked to stop.
    Cancelled,
    /// The policy saw no point in going on.
    Policy {
        /// Why.
        message: Arc<str>,
    },
    /// A call failed after there was a text already; the best so far is given.
    Degraded {
        /// What failed.
        failure: Failure,
    },
}

impl std::fmt::Display for EndReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Passed => f.write_str("the text passed every check"),
            Self::MaxIterations => f.write_str("the allowed improvements are used up"),
            Self::Plateau { rounds } => {
                write!(f, "the score did not rise over {rounds} iterations")
            }
            Self::Oscillation => f.write_str("the model came back to an earlier text"),
            Self::Budget { message } => write!(f, "the budget is spent: {message}"),
            Self::Deadline => f.write_str("the time is up"),
            Self::Cancelled => f.write_str("it was cancelled"),
            Self::Policy { message } => write!(f, "the policy stopped: {message}"),
            Self::Degraded { failure } => write!(f, "a call failed: {failure}"),
        }
    }
}
