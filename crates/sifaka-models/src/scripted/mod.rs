//! A model that replies by script.

mod demo;
mod file;
mod fit;
mod options;
mod pieces;
mod reply;
mod rule;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{TryStreamExt, stream};
use sifaka_core::model::{
    Capabilities, Completion, DeltaStream, FinishReason, Message, Price, Request, Response,
    TokenCount,
};
use sifaka_core::{Context, Error, ErrorKind, Model, Result, Usage, text};

use crate::script::{Exhausted, Sequence};
use rule::Rule;

pub(crate) use options::from_spec;
pub use reply::Reply;

/// How many of the newest calls are kept unless [`ScriptedModel::keep_calls`] says otherwise.
pub const KEPT_CALLS: usize = 10_000;

/// A model that replies by script, for tests and demonstrations.
///
/// Rules are tried first, in the order they were added; then the next reply of the sequence has
/// its turn. A request for several candidates takes as many replies. What the request says of
/// sampling and seed changes nothing, since nothing is sampled; stop texts and `max_tokens` are
/// kept to, and a request for something outside its [`capabilities`](Model::capabilities) is an
/// error. Tokens are estimated unless the script gives them.
///
/// A script in a file, here TOML; JSON and JSON lines have the same fields:
///
/// ```toml
/// exhausted = "error"       # or "repeat" the last reply, which is the default
///
/// [[reply]]                 # a rule: for prompts with this in them
/// when = "weather"          # between slashes it is a pattern: "/rain|snow/"
/// error = "rate_limited"
/// retry_after = 1.5
/// times = 2                 # twice; after that the rule is spent
///
/// [[reply]]                 # without `when`: next in the sequence
/// text = "It rains."
/// delay = 0.2
/// tokens = 3
/// ```
#[derive(Debug)]
pub struct ScriptedModel {
    name: Arc<str>,
    rules: Vec<Rule>,
    rest: Rest,
    delay: Duration,
    chunk_delay: Duration,
    price: Option<Price>,
    capabilities: Capabilities,
    keep: usize,
    calls: Mutex<VecDeque<Request>>,
    count: AtomicU64,
}

/// What answers when no rule does.
#[derive(Debug)]
enum Rest {
    Sequence(Sequence<Reply>),
    BuiltIn,
}

/// An answer before it is sent.
struct Prepared {
    response: Response,
    /// What the answer ends with instead, when the script says so.
    fault: Option<Error>,
}

impl ScriptedModel {
    fn with_rest(rest: Rest) -> Self {
        Self {
            name: Arc::from("mock"),
            rules: Vec::new(),
            rest,
            delay: Duration::ZERO,
            chunk_delay: Duration::ZERO,
            price: None,
            capabilities: Capabilities {
                streaming: true,
                tools: true,
                seed: true,
                max_candidates: u32::MAX,
                ..Capabilities::default()
            },
            keep: KEPT_CALLS,
            calls: Mutex::new(VecDeque::new()),
            count: AtomicU64::new(0),
        }
    }

    /// Gives these replies one after the other, and the last one again and again.
    pub fn new<R: Into<Reply>>(replies: impl IntoIterator<Item = R>) -> Self {
        let replies = replies.into_iter().map(Into::into);
        let sequence = Sequence::new(replies.map(|reply: Reply| {
            let times = reply.times.unwrap_or(1);
            (reply, times)
        }));
        let logprobs = sequence.items().iter().any(|reply| reply.logprobs.is_some());
        let mut model = Self::with_rest(Rest::Sequence(sequence));
        model.capabilities.logprobs = logprobs;
        model
    }

    /// Writes plain sentences that say they are scripted: few at first, and on an improvement
    /// prompt as many as the length checks ask for. The same prompt always has the same answer.
    #[must_use]
    pub fn built_in() -> Self {
        Self::with_rest(Rest::BuiltIn)
    }

    /// Replies as the script in a `.toml`, `.json` or `.jsonl` file says.
    ///
    /// Blocks; meant for building a chain.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] with the place of everything that is wrong.
    pub fn from_file(path: &Path) -> Result<Self> {
        file::read(path)
    }

    /// Sets its name; `mock` if not set.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Gives `reply` to prompts that have `text` in their last message.
    #[must_use]
    pub fn when_contains(mut self, text: impl Into<String>, reply: impl Into<Reply>) -> Self {
        self.add_rule(Rule::contains(text.into(), reply.into()));
        self
    }

    /// Gives `reply` to prompts whose last message matches `pattern`.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when the pattern is malformed, with the place.
    pub fn when_matches(mut self, pattern: &str, reply: impl Into<Reply>) -> Result<Self> {
        self.add_rule(Rule::matches(pattern, reply.into())?);
        Ok(self)
    }

    fn add_rule(&mut self, rule: Rule) {
        self.capabilities.logprobs |= rule.reply.logprobs.is_some();
        self.rules.push(rule);
    }

    /// Sets what happens when the sequence is at its end; the last reply is repeated if not set.
    #[must_use]
    pub fn when_exhausted(mut self, exhausted: Exhausted) -> Self {
        if let Rest::Sequence(sequence) = &mut self.rest {
            sequence.when_exhausted(exhausted);
        }
        self
    }

    /// Waits this long before every answer whose reply has no delay of its own.
    #[must_use]
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Waits this long before every piece of a stream.
    #[must_use]
    pub fn with_chunk_delay(mut self, delay: Duration) -> Self {
        self.chunk_delay = delay;
        self
    }

    /// Costs this.
    #[must_use]
    pub fn with_price(mut self, price: Price) -> Self {
        self.price = Some(price);
        self
    }

    /// Takes prompts of at most so many tokens; longer ones are
    /// [`ContextTooLong`](ErrorKind::ContextTooLong) errors.
    #[must_use]
    pub fn with_context_window(mut self, tokens: u64) -> Self {
        self.capabilities.context_window = Some(tokens);
        self
    }

    /// Says that it can do this, whatever its script can.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Keeps so many of the newest calls for [`calls`](Self::calls); [`KEPT_CALLS`] if not set.
    #[must_use]
    pub fn keep_calls(mut self, calls: usize) -> Self {
        self.keep = calls;
        self
    }

    /// The newest requests it received, oldest first.
    #[must_use]
    pub fn calls(&self) -> Vec<Request> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.iter().cloned().collect()
    }

    /// How many requests it received.
    #[must_use]
    pub fn call_count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    fn record(&self, request: &Request) -> u64 {
        if self.keep > 0 {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            if calls.len() >= self.keep {
                calls.pop_front();
            }
            calls.push_back(request.clone());
        }
        self.count.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    fn choose(&self, prompt: &str, sample: u32, call: u64) -> Result<Reply> {
        if let Some(reply) = self.rules.iter().find_map(|rule| rule.answer(prompt)) {
            return Ok(reply.clone());
        }
        match &self.rest {
            Rest::BuiltIn => Ok(Reply::text(demo::write(prompt, sample))),
            Rest::Sequence(sequence) => sequence.take().cloned().ok_or_else(|| {
                let prompt = text::summarise(prompt, 60);
                let message = format!("the script has no reply to call {call}: {prompt:?}");
                Error::new(ErrorKind::NotFound, &*self.name, "generate", message)
                    .suggest("add a reply, or a rule that fits this prompt")
                    .suggest("with exhausted = \"repeat\" the last reply is given again")
            }),
        }
    }

    async fn prepare(&self, ctx: &Context, request: &Request) -> Result<Prepared> {
        ctx.check()?;
        let call = self.record(request);
        let input = input_tokens(request);
        fit::check(&self.name, &self.capabilities, request, input)?;
        let prompt = request.last_text();
        let wanted = request.candidates.max(1);
        // The number is the caller's; memory is taken as replies come.
        let mut completions = Vec::with_capacity(wanted.min(64) as usize);
        let mut usage = Usage { calls: 1, input_tokens: input, ..Usage::default() };
        let (mut fault, mut delay, mut counted) = (None, Duration::ZERO, true);
        for sample in 0..wanted {
            let reply = self.choose(&prompt, sample, call)?;
            delay = delay.max(reply.delay.unwrap_or(self.delay));
            if fault.is_none() {
                fault = reply.fault.as_ref().map(|fault| fault.error(&self.name, "generate"));
            }
            counted &= reply.input_tokens.is_some() && reply.output_tokens.is_some();
            usage.input_tokens = reply.input_tokens.unwrap_or(usage.input_tokens);
            usage.cached_tokens = usage.cached_tokens.max(reply.cached_tokens);
            usage.reasoning_tokens = usage.reasoning_tokens.saturating_add(reply.reasoning_tokens);
            let given = reply.output_tokens;
            let completion = complete(reply, request);
            let output = given.unwrap_or_else(|| output_tokens(&completion));
            usage.output_tokens = usage.output_tokens.saturating_add(output);
            completions.push(completion);
        }
        usage.estimated = !counted;
        usage.cost = self.price.map(|price| price.of(&usage));
        if !delay.is_zero() {
            ctx.sleep(delay).await?;
        }
        Ok(Prepared { response: Response { completions, usage, ..Response::default() }, fault })
    }
}

fn estimate(text: &str) -> u64 {
    TokenCount::estimate(text).tokens
}

fn input_tokens(request: &Request) -> u64 {
    let messages: u64 = request.messages.iter().map(Message::text).map(|t| estimate(&t)).sum();
    messages + request.system.as_deref().map_or(0, estimate)
}

fn output_tokens(completion: &Completion) -> u64 {
    estimate(&completion.text) + completion.reasoning.as_deref().map_or(0, estimate)
}

fn complete(reply: Reply, request: &Request) -> Completion {
    let (text, cut) = fit::cut(reply.text, request);
    let by_itself = || match reply.tool_calls.is_empty() {
        true => FinishReason::Stop,
        false => FinishReason::ToolCalls,
    };
    Completion {
        finish_reason: cut.or(reply.finish_reason).unwrap_or_else(by_itself),
        text,
        tool_calls: reply.tool_calls,
        reasoning: reply.reasoning,
        logprobs: request.logprobs.and_then(|_| reply.logprobs.map(|all| all.to_vec())),
    }
}

#[async_trait]
impl Model for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    async fn generate(&self, ctx: &Context, request: &Request) -> Result<Response> {
        let Prepared { response, fault } = self.prepare(ctx, request).await?;
        match fault {
            Some(error) => Err(error),
            None => Ok(response),
        }
    }

    fn stream<'a>(&'a self, ctx: &'a Context, request: &'a Request) -> DeltaStream<'a> {
        let pieces = stream::once(self.prepare(ctx, request))
            .map_ok(|prepared| pieces::stream(ctx, prepared, self.chunk_delay))
            .try_flatten();
        Box::pin(pieces)
    }

    fn price(&self) -> Option<Price> {
        self.price
    }
}
