//! What a model answers.

use std::future::Future;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::DeltaStream;
use crate::Result;
use crate::body::Body;
use crate::usage::Usage;

/// A model's whole answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The completions, at least one.
    pub completions: Vec<Completion>,
    /// What it consumed.
    pub usage: Usage,
    /// What the provider calls it.
    #[serde(default, skip_serializing_if = "Provider::is_empty")]
    pub provider: Provider,
    /// The bytes that came, as they came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Body>,
}

impl Response {
    /// An answer of this text alone.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self { completions: vec![Completion::new(text)], ..Self::default() }
    }
}

/// One completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// The text.
    #[serde(deserialize_with = "crate::text::arc_str")]
    pub text: Arc<str>,
    /// Tools it wants called, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// What it thought before it wrote, kept apart from the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Arc<str>>,
    /// Why it stopped.
    pub finish_reason: FinishReason,
    /// Log-probabilities of its tokens, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<Vec<TokenLogprob>>,
}

impl Completion {
    /// A text that ended by itself.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self {
            text: text.into(),
            tool_calls: Vec::new(),
            reasoning: None,
            finish_reason: FinishReason::Stop,
            logprobs: None,
        }
    }
}

/// Why a completion ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model was done, or met a stop text.
    Stop,
    /// It reached the token limit.
    Length,
    /// It wants tools called.
    ToolCalls,
    /// The provider's filter ended it.
    ContentFilter,
    /// A check saw that the text could no longer pass, and stopped it.
    StoppedBy(Arc<str>),
    /// Something else, in the provider's words.
    Other(String),
}

/// A tool the model wants called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Names the call.
    pub id: Arc<str>,
    /// Which tool.
    pub name: Arc<str>,
    /// With what. Malformed arguments are kept as the text they were.
    pub arguments: Value,
}

/// A token and how likely it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenLogprob {
    /// The token's text.
    pub token: String,
    /// Its log-probability.
    #[serde(deserialize_with = "null_is_impossible")]
    pub logprob: f64,
    /// The likeliest tokens in its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub top: Vec<TopLogprob>,
}

/// A token that could have stood there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopLogprob {
    /// The token's text.
    pub token: String,
    /// Its log-probability.
    #[serde(deserialize_with = "null_is_impossible")]
    pub logprob: f64,
}

/// JSON has no infinity and writes null for the log-probability of what cannot be.
fn null_is_impossible<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NEG_INFINITY))
}

/// What the provider said of a call besides the text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provider {
    /// Its id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Its id of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The model that really answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its rate-limit headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_limits: Vec<(String, String)>,
}

impl Provider {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A piece of an answer as it comes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delta {
    /// More text of a completion.
    Text {
        /// Which completion.
        index: u32,
        /// What was added.
        text: Arc<str>,
    },
    /// More of what it thinks before it writes.
    Reasoning {
        /// Which completion.
        index: u32,
        /// What was added.
        text: Arc<str>,
    },
    /// The text of a completion so far does not count any more; it starts again.
    Restart {
        /// Which completion.
        index: u32,
    },
    /// The whole answer: always the last item.
    Done(Box<Response>),
}

/// A stream of one delta for each completion of a response that comes at once.
pub(super) fn stream_of_one<'a>(
    response: impl Future<Output = Result<Response>> + Send + 'a,
) -> DeltaStream<'a> {
    Box::pin(stream::once(response).flat_map(|result| {
        let items: Vec<Result<Delta>> = match result {
            Err(error) => vec![Err(error)],
            Ok(response) => {
                let texts = response.completions.iter().zip(0_u32..).map(|(completion, index)| {
                    Ok(Delta::Text { index, text: Arc::clone(&completion.text) })
                });
                let mut items: Vec<_> = texts.collect();
                items.push(Ok(Delta::Done(Box::new(response))));
                items
            }
        };
        stream::iter(items)
    }))
}
