//! The contract of a language model.

mod function;
mod message;
mod request;
mod response;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures_core::Stream;
use serde::{Deserialize, Serialize};

use crate::usage::{Cost, Usage};
use crate::{Context, Result};

pub use function::{FunctionModel, IntoCompletion, model_fn};
pub use message::{Message, Part, Role};
pub use request::{CacheHint, Request, ResponseFormat, Sampling, ToolChoice};
pub use response::{
    Completion, Delta, FinishReason, Provider, Response, TokenLogprob, ToolCall, TopLogprob,
};

/// A stream of deltas that ends with [`Delta::Done`], or with an error.
pub type DeltaStream<'a> = Pin<Box<dyn Stream<Item = Result<Delta>> + Send + 'a>>;

/// Something that writes text.
///
/// **Contract.** A model never truncates silently, never answers for another model, and never
/// retries by itself: retries, limits and timeouts are the chain's. It stops when the context is
/// cancelled or the future or stream is dropped, and then no further tokens are paid for. It
/// ignores no part of a request without saying so: what it cannot do is in
/// [`capabilities`](Self::capabilities), and a request that needs it is an
/// [`Unsupported`](crate::ErrorKind::Unsupported) error. Usage is the provider's own figure where
/// there is one, and marked as an estimate where not.
#[async_trait]
pub trait Model: Send + Sync {
    /// The name under which it is asked for and recorded, such as `openai:gpt-4o-mini`.
    fn name(&self) -> &str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Writes one or more completions.
    async fn generate(&self, ctx: &Context, request: &Request) -> Result<Response>;

    /// Writes, telling of the text as it comes. A model that cannot stream gives its whole text in
    /// one delta, which is what this does unless it is overridden.
    ///
    /// The last item of a stream that went well is [`Delta::Done`] with the whole response. A
    /// stream that ends without one was cut off, and whoever reads it treats that as an error.
    fn stream<'a>(&'a self, ctx: &'a Context, request: &'a Request) -> DeltaStream<'a> {
        response::stream_of_one(self.generate(ctx, request))
    }

    /// How many tokens a text has for this model.
    fn count_tokens(&self, text: &str) -> TokenCount {
        TokenCount::estimate(text)
    }

    /// What its tokens cost, if that is known.
    fn price(&self) -> Option<Price> {
        None
    }
}

#[async_trait]
impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }
    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }
    async fn generate(&self, ctx: &Context, request: &Request) -> Result<Response> {
        (**self).generate(ctx, request).await
    }
    fn stream<'a>(&'a self, ctx: &'a Context, request: &'a Request) -> DeltaStream<'a> {
        (**self).stream(ctx, request)
    }
    fn count_tokens(&self, text: &str) -> TokenCount {
        (**self).count_tokens(text)
    }
    fn price(&self) -> Option<Price> {
        (**self).price()
    }
}

impl fmt::Debug for dyn Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Model({})", self.name())
    }
}

/// What a model can do; asked, not guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// Gives deltas while it writes.
    pub streaming: bool,
    /// Calls tools.
    pub tools: bool,
    /// Takes a system prompt apart from the messages.
    pub system_prompt: bool,
    /// Keeps to a JSON schema.
    pub json_schema: bool,
    /// Keeps to a regular expression.
    pub regex: bool,
    /// Keeps to a grammar.
    pub grammar: bool,
    /// Can be driven token by token, so that every kind of constraint guides it.
    pub guided: bool,
    /// Gives log-probabilities.
    pub logprobs: bool,
    /// Gives the same text for the same seed.
    pub seed: bool,
    /// Takes images.
    pub images: bool,
    /// The most completions it gives for one request; more are asked for one by one.
    pub max_candidates: u32,
    /// How many tokens prompt and text may have together, if it is known.
    pub context_window: Option<u64>,
    /// How many tokens a text may have, if it is known.
    pub max_output_tokens: Option<u64>,
}

impl Default for Capabilities {
    /// Text in, text out, and nothing else.
    fn default() -> Self {
        Self {
            streaming: false,
            tools: false,
            system_prompt: true,
            json_schema: false,
            regex: false,
            grammar: false,
            guided: false,
            logprobs: false,
            seed: false,
            images: false,
            max_candidates: 1,
            context_window: None,
            max_output_tokens: None,
        }
    }
}

/// A count of tokens, and whether it is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCount {
    /// How many.
    pub tokens: u64,
    /// Whether the model's own tokenizer counted them.
    pub exact: bool,
}

impl TokenCount {
    /// Counted by the model's own tokenizer.
    #[must_use]
    pub const fn exact(tokens: u64) -> Self {
        Self { tokens, exact: true }
    }

    /// A guess that rather errs upward: a token for every three bytes begun.
    #[must_use]
    pub const fn estimate(text: &str) -> Self {
        Self { tokens: (text.len() as u64).div_ceil(3), exact: false }
    }
}

/// What a model's tokens cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// For a million tokens in.
    pub input_per_million: Cost,
    /// For a million tokens out.
    pub output_per_million: Cost,
    /// For a million tokens in that were cached; as uncached ones if not given.
    #[serde(default)]
    pub cached_per_million: Option<Cost>,
}

impl Price {
    /// What `usage` costs.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> Cost {
        let part = |tokens: u64, price: Cost| {
            let nanos = u128::from(tokens) * u128::from(price.nanos()) / 1_000_000;
            Cost::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        };
        let cached = usage.cached_tokens.min(usage.input_tokens);
        part(usage.input_tokens - cached, self.input_per_million)
            .saturating_add(part(cached, self.cached_per_million.unwrap_or(self.input_per_million)))
            .saturating_add(part(usage.output_tokens, self.output_per_million))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_add_up() {
        let price = Price {
            input_per_million: Cost::from_dollars(0.15),
            output_per_million: Cost::from_dollars(0.6),
            cached_per_million: Some(Cost::from_dollars(0.075)),
        };
        let usage = Usage {
            input_tokens: 1_000_000,
            cached_tokens: 500_000,
            output_tokens: 1_000_000,
            ..Usage::default()
        };
        assert_eq!(price.of(&usage), Cost::from_dollars(0.7125));
    }
}
