//! Scripts in files.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use sifaka_core::model::{FinishReason, TokenLogprob, ToolCall};
use sifaka_core::{Error, ErrorKind, Problem, Result, Usage};

use super::ScriptedModel;
use super::options::Settings;
use super::reply::Reply;
use super::rule::Rule;
use crate::script::{self, Exhausted, Fault, Seconds};

/// A whole script.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Script {
    reply: Vec<Entry>,
    exhausted: Exhausted,
    delay: Seconds,
    chunk_delay: Seconds,
    price_in: Option<f64>,
    price_out: Option<f64>,
    context_window: Option<u64>,
}

impl From<Vec<Entry>> for Script {
    fn from(reply: Vec<Entry>) -> Self {
        Self { reply, ..Self::default() }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Entry {
    when: Option<String>,
    text: Option<Arc<str>>,
    delay: Option<Seconds>,
    error: Option<ErrorKind>,
    message: Option<Arc<str>>,
    retry_after: Option<Seconds>,
    times: Option<u64>,
    tokens: Option<u64>,
    usage: Option<Usage>,
    tool_calls: Vec<CallEntry>,
    reasoning: Option<Arc<str>>,
    finish_reason: Option<FinishReason>,
    logprobs: Option<Vec<TokenLogprob>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallEntry {
    id: Option<Arc<str>>,
    name: Arc<str>,
    #[serde(default)]
    arguments: Value,
}

impl Entry {
    /// What makes no sense about it.
    fn problem(&self) -> Option<&'static str> {
        if self.error.is_none() && (self.retry_after.is_some() || self.message.is_some()) {
            Some("retry_after and message belong to an error, and there is none")
        } else if self.text.is_none() && self.error.is_none() && self.tool_calls.is_empty() {
            Some("there is neither text nor error nor tool_calls")
        } else if self.tokens.is_some() && self.usage.is_some() {
            Some("tokens and usage say the same thing twice")
        } else {
            None
        }
    }

    fn reply(self) -> Reply {
        let mut reply = Reply::text(self.text.unwrap_or_default());
        if let Some(kind) = self.error {
            let retry_after = self.retry_after.map(|wait| wait.0);
            reply.fault = Some(Fault { kind, message: self.message, retry_after });
        }
        reply.delay = self.delay.map(|delay| delay.0);
        reply.times = self.times;
        reply.reasoning = self.reasoning;
        reply.finish_reason = self.finish_reason;
        reply.logprobs = self.logprobs.map(Arc::from);
        reply.tool_calls = self
            .tool_calls
            .into_iter()
            .zip(1..)
            .map(|(call, number)| ToolCall {
                id: call.id.unwrap_or_else(|| Arc::from(format!("call-{number}"))),
                name: call.name,
                arguments: call.arguments,
            })
            .collect();
        if let Some(usage) = self.usage {
            reply = reply.with_usage(usage);
        }
        if let Some(tokens) = self.tokens {
            reply = reply.with_tokens(tokens);
        }
        reply
    }
}

/// The model that the script at `path` describes.
pub(super) fn read(path: &Path) -> Result<ScriptedModel> {
    let component = "model mock";
    let script: Script = script::load(path, component)?;
    let (mut rules, mut sequence, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for (entry, number) in script.reply.into_iter().zip(1..) {
        let place = format!("{}, reply {number}", path.display());
        if let Some(problem) = entry.problem() {
            problems.push(Problem::new(place, problem, "see the script's other replies"));
            continue;
        }
        let when = entry.when.clone();
        let reply = entry.reply();
        match when.map(|when| Rule::parse(&when, reply.clone())) {
            None => sequence.push(reply),
            Some(Ok(rule)) => rules.push(rule),
            Some(Err(error)) => {
                let hint = error.suggestions().join("; ");
                problems.push(Problem::new(place, error.message(), hint));
            }
        }
    }
    if !problems.is_empty() {
        return Err(Error::problems(component, problems));
    }
    if rules.is_empty() && sequence.is_empty() {
        let message = format!("{} has no replies", path.display());
        return Err(Error::configuration(component, message)
            .suggest("add [[reply]] and below it text = \"…\""));
    }
    let settings = Settings {
        exhausted: Some(script.exhausted),
        delay: Some(script.delay.0),
        chunk_delay: Some(script.chunk_delay.0),
        price_in: script.price_in,
        price_out: script.price_out,
        context_window: script.context_window,
    };
    let mut model = ScriptedModel::new(sequence).named(format!("mock:{}", path.display()));
    model.rules = rules;
    settings.apply(model).map_err(|problem| {
        Error::configuration(component, format!("{}: {problem}", path.display()))
            .suggest("give both prices, in dollars for a million tokens")
    })
}
