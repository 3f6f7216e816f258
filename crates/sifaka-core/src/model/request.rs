//! What is asked of a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::message::Message;
use crate::constraint::Constraint;
use crate::tool::ToolSpec;

/// A request to a model. Everything but the messages has a sensible absence.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Request {
    /// Standing instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<Arc<str>>,
    /// The conversation so far; the last message is what to answer.
    pub messages: Vec<Message>,
    /// How the next token is chosen.
    #[serde(skip_serializing_if = "Sampling::is_default")]
    pub sampling: Sampling,
    /// Texts at which to stop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Fixes the model's randomness, where it can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The form of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// Tools the model may call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpec>,
    /// Whether it may, must or must not call one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Rules that guide the decoding, each with the name of the check that asked for it.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub constraints: Arc<[(Arc<str>, Constraint)]>,
    /// How many completions.
    pub candidates: u32,
    /// How many alternatives to give log-probabilities of, for each token; 0 gives the chosen
    /// token's alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<u32>,
    /// What the provider may keep between calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheHint>,
    /// Headers of the user's own. Their values never appear in a record.
    #[serde(skip)]
    pub extra_headers: BTreeMap<String, String>,
    /// Fields of the body that we do not know but the provider does.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
}

impl Request {
    /// Asks for one answer to one message.
    pub fn new(message: Message) -> Self {
        Self { messages: vec![message], candidates: 1, ..Self::default() }
    }

    /// Asks for one answer to one text.
    pub fn text(prompt: impl Into<crate::Body>) -> Self {
        Self::new(Message::user(prompt))
    }

    /// Adds standing instructions.
    #[must_use]
    pub fn with_system(mut self, system: impl Into<Arc<str>>) -> Self {
        self.system = Some(system.into());
        self
    }

    /// Asks for so many completions.
    #[must_use]
    pub fn with_candidates(mut self, candidates: u32) -> Self {
        self.candidates = candidates;
        self
    }

    /// The text of the last message.
    #[must_use]
    pub fn last_text(&self) -> std::borrow::Cow<'_, str> {
        self.messages.last().map(Message::text).unwrap_or_default()
    }
}

/// How the next token is chosen. What is not given is the model's own default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sampling {
    /// 0 always takes the likeliest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Only from the likeliest that together have this probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Only from so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// Only those at least this fraction as likely as the likeliest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_p: Option<f64>,
    /// Above 1 makes what was said before less likely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition_penalty: Option<f64>,
    /// The most tokens of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
}

impl Sampling {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// These options, and `other`'s where these have none.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            temperature: self.temperature.or(other.temperature),
            top_p: self.top_p.or(other.top_p),
            top_k: self.top_k.or(other.top_k),
            min_p: self.min_p.or(other.min_p),
            repetition_penalty: self.repetition_penalty.or(other.repetition_penalty),
            max_tokens: self.max_tokens.or(other.max_tokens),
        }
    }
}

/// The form of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResponseFormat {
    /// Any JSON.
    Json,
    /// JSON that fits a schema.
    JsonSchema {
        /// What the schema is called.
        name: String,
        /// The schema.
        schema: Value,
    },
}

/// Whether the model calls tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// It must not.
    None,
    /// It must call some tool.
    Required,
    /// It must call this one.
    Tool(String),
}

/// What a provider may keep between calls to save work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CacheHint {
    /// The system prompt and tools stay the same.
    System,
    /// Everything but the last message stays the same.
    Prefix,
}
