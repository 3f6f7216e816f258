//! One reply of a script.

use std::sync::Arc;
use std::time::Duration;

use sifaka_core::model::{FinishReason, TokenLogprob, ToolCall};
use sifaka_core::{ErrorKind, Usage};

use crate::script::Fault;

/// What a scripted model answers: a text, tool calls, or an error. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    pub(super) text: Arc<str>,
    pub(super) tool_calls: Vec<ToolCall>,
    pub(super) reasoning: Option<Arc<str>>,
    pub(super) finish_reason: Option<FinishReason>,
    pub(super) logprobs: Option<Arc<[TokenLogprob]>>,
    pub(super) fault: Option<Fault>,
    pub(super) delay: Option<Duration>,
    pub(super) times: Option<u64>,
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cached_tokens: u64,
    pub(super) reasoning_tokens: u64,
}

impl Reply {
    /// A text.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// An error. With a text as well, a stream gives the text first and then breaks.
    pub fn error(fault: impl Into<Fault>) -> Self {
        Self { fault: Some(fault.into()), ..Self::default() }
    }

    /// Fails after the text, as a connection that breaks does.
    #[must_use]
    pub fn then_error(mut self, fault: impl Into<Fault>) -> Self {
        self.fault = Some(fault.into());
        self
    }

    /// Comes after a while, in place of the model's own delay.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// Is given so many times: in a sequence before the next one's turn, as a rule before the
    /// rule is spent. In a sequence 1 if not set; a rule holds for ever.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Also wants a tool called.
    #[must_use]
    pub fn with_tool_call(mut self, call: ToolCall) -> Self {
        self.tool_calls.push(call);
        self
    }

    /// Thinks this before it writes.
    #[must_use]
    pub fn with_reasoning(mut self, reasoning: impl Into<Arc<str>>) -> Self {
        self.reasoning = Some(reasoning.into());
        self
    }

    /// Ends for this reason. If not set it is `stop`, or `tool_calls` when there are any.
    #[must_use]
    pub fn with_finish_reason(mut self, reason: FinishReason) -> Self {
        self.finish_reason = Some(reason);
        self
    }

    /// Has these log-probabilities, given to whoever asks for them.
    #[must_use]
    pub fn with_logprobs(mut self, logprobs: impl Into<Arc<[TokenLogprob]>>) -> Self {
        self.logprobs = Some(logprobs.into());
        self
    }

    /// Has so many tokens, in place of an estimate.
    #[must_use]
    pub fn with_tokens(mut self, output: u64) -> Self {
        self.output_tokens = Some(output);
        self
    }

    /// Consumes this, in place of an estimate. Calls and cost are the model's to say.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.input_tokens = Some(usage.input_tokens);
        self.output_tokens = Some(usage.output_tokens);
        self.cached_tokens = usage.cached_tokens;
        self.reasoning_tokens = usage.reasoning_tokens;
        self
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<Arc<str>> for Reply {
    fn from(text: Arc<str>) -> Self {
        Self::text(text)
    }
}

impl From<Fault> for Reply {
    fn from(fault: Fault) -> Self {
        Self::error(fault)
    }
}

impl From<ErrorKind> for Reply {
    fn from(kind: ErrorKind) -> Self {
        Self::error(kind)
    }
}
