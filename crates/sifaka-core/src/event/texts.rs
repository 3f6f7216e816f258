//! The texts inside an event, so that what must not be on record can be taken out.
//!
//! Walked by type: a kind or field that is added has to say here whether it is content. Names,
//! ids, hashes, times and counts hold the record together and are never touched.

pub(super) mod history;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{EndReason, EventKind, Prompted, Transition};
use crate::body::Body;
use crate::document::Document;
use crate::failure::Failure;
use crate::feedback::CriticFeedback;
use crate::model::{Completion, Delta, FinishReason, Message, Part, Provider, Response};
use crate::policy::Decision;
use crate::validation::ValidationResult;

/// Gives the text that takes another's place, or `None` where it may stay.
pub(super) type Rule<'a> = dyn FnMut(&str) -> Option<String> + 'a;

/// What stands for a token of a text that was changed: a token alone may say too little to match.
const TOKEN: &str = "[redacted]";

impl EventKind {
    /// Calls `rule` on every text that somebody wrote: prompts, answers, documents, verdicts,
    /// advice, messages, labels, and the strings, numbers and keys of free JSON. Where it gives a
    /// text, that one takes the old one's place; a number becomes a string.
    ///
    /// Names, ids, hashes and times stay, so the event still folds as it did. Bytes that are not
    /// text cannot be searched, and are replaced by their count. So is what a provider sent as it
    /// sent it, where the answer in it was changed: there it may stand in pieces. What was stored
    /// apart before is only pointed at, and stays.
    pub fn rewrite_texts(&mut self, rule: &mut dyn FnMut(&str) -> Option<String>) {
        match self {
            Self::RunStarted {
                thought_id: _,
                chain_id: _,
                prompt,
                system_prompt,
                tags,
                metadata,
            } => {
                shared(prompt, rule);
                system_prompt.iter_mut().for_each(|text| shared(text, rule));
                labels(tags, rule);
                metadata.iter_mut().for_each(|fields| object(fields, rule));
            }
            Self::Imported { thought } => history::rewrite(thought, rule),
            Self::IterationStarted { thought_id: _, decision } => match decision {
                Decision::Stop { reason } => shared(reason, rule),
                Decision::Repair | Decision::Fresh { .. } | Decision::Constrained { .. } => {}
            },
            Self::Retrieved { stage: _, index: _, retriever: _, query, documents, seconds: _ } => {
                body(query, rule);
                documents.iter_mut().for_each(|found| document(found, rule));
            }
            Self::Prompted(prompt) => prompted(prompt, rule),
            Self::Generated { model: _, completions, usage: _, provider, raw, seconds: _ } => {
                answer(completions, provider, raw.as_mut(), rule);
            }
            Self::Called { component: _, model: _, prompt, request: _, response, seconds: _ } => {
                prompted(prompt, rule);
                respond(response, rule);
            }
            Self::Guided { candidate: _, report } => json(report, rule),
            Self::Validated { candidate: _, results } => {
                for checked in results {
                    validation(&mut checked.result, rule);
                    if let Some(failure) = &mut checked.failure {
                        failed(failure, rule);
                    }
                }
            }
            Self::Critiqued { index: _, feedback, seconds: _ } => critique(feedback, rule),
            Self::Failed { step: _, failure, seconds: _ }
            | Self::RunFailed { failure, seconds: _ } => failed(failure, rule),
            Self::Skipped { step: _, component: _, reason } => shared(reason, rule),
            Self::Resilience { component: _, transition } => changed(transition, rule),
            Self::Noted { name: _, data } => json(data, rule),
            Self::RunFinished { reason, best: _, score: _, usage: _, seconds: _ } => {
                ended(reason, rule);
            }
            Self::Delta(delta) => match delta {
                Delta::Text { index: _, text } | Delta::Reasoning { index: _, text } => {
                    shared(text, rule);
                }
                Delta::Restart { index: _ } => {}
                Delta::Done(response) => respond(response, rule),
            },
            Self::Unknown(fields) => {
                let name = fields.shift_remove("type");
                unknown_fields(fields, rule);
                fields.extend(name.map(|name| ("type".to_owned(), name)));
            }
            Self::RunResumed { chain_id: _, changed: _ }
            | Self::Chosen { candidate: _, score: _ } => {}
        }
    }
}

pub(super) fn string(text: &mut String, rule: &mut Rule<'_>) {
    if let Some(new) = rule(text) {
        *text = new;
    }
}

pub(super) fn shared(text: &mut Arc<str>, rule: &mut Rule<'_>) {
    if let Some(new) = rule(text) {
        *text = Arc::from(new);
    }
}

fn strings(texts: &mut [String], rule: &mut Rule<'_>) {
    texts.iter_mut().for_each(|text| string(text, rule));
}

pub(super) fn body(body: &mut Body, rule: &mut Rule<'_>) {
    match body {
        Body::Text(text) => shared(text, rule),
        Body::Bytes(bytes) => {
            *body = format!("[redacted: {} bytes that are not text]", bytes.len()).into();
        }
        Body::Blob(_) => {}
    }
}

/// Any JSON: strings, numbers by their digits, and keys.
fn json(value: &mut Value, rule: &mut Rule<'_>) {
    match value {
        Value::String(text) => string(text, rule),
        Value::Number(number) => {
            if let Some(new) = rule(&number.to_string()) {
                *value = Value::String(new);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| json(item, rule)),
        Value::Object(fields) => object(fields, rule),
        Value::Null | Value::Bool(_) => {}
    }
}

pub(super) fn object(fields: &mut Map<String, Value>, rule: &mut Rule<'_>) {
    rebuild(fields, rule, |_| false);
}

/// Fields that stand beside ours: a new key must not be taken for one of them.
pub(super) fn unknown_fields(fields: &mut Map<String, Value>, rule: &mut Rule<'_>) {
    if !fields.is_empty() {
        rebuild(fields, rule, |key| key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
    }
}

fn rebuild(fields: &mut Map<String, Value>, rule: &mut Rule<'_>, is_ours: fn(&str) -> bool) {
    // Keys that stay come first, so that a changed one never takes the place of one of them.
    let (mut kept, mut renamed) = (Map::new(), Vec::new());
    for (key, mut value) in std::mem::take(fields) {
        json(&mut value, rule);
        match rule(&key) {
            None => {
                kept.insert(key, value);
            }
            Some(new) => renamed.push((new, value)),
        }
    }
    for (mut key, value) in renamed {
        while is_ours(&key) || kept.contains_key(&key) {
            key.push('+');
        }
        kept.insert(key, value);
    }
    *fields = kept;
}

pub(super) fn labels(tags: &mut BTreeMap<String, String>, rule: &mut Rule<'_>) {
    let mut renamed = Vec::new();
    let mut kept = BTreeMap::new();
    for (key, mut value) in std::mem::take(tags) {
        string(&mut value, rule);
        match rule(&key) {
            None => {
                kept.insert(key, value);
            }
            Some(new) => renamed.push((new, value)),
        }
    }
    for (mut key, value) in renamed {
        while kept.contains_key(&key) {
            key.push('+');
        }
        kept.insert(key, value);
    }
    *tags = kept;
}

pub(super) fn document(document: &mut Document, rule: &mut Rule<'_>) {
    let Document { id, text, metadata, score: _, source, position: _, extra } = document;
    id.iter_mut().for_each(|id| shared(id, rule));
    body(text, rule);
    metadata.iter_mut().for_each(|fields| object(fields, rule));
    source.iter_mut().for_each(|source| shared(source, rule));
    unknown(extra, rule);
}

/// Without this an empty set of fields would be given memory of its own.
fn unknown(extra: &mut crate::Extra, rule: &mut Rule<'_>) {
    if !extra.is_empty() {
        unknown_fields(extra, rule);
    }
}

fn prompted(prompt: &mut Prompted, rule: &mut Rule<'_>) {
    let Prompted {
        model: _,
        purpose: _,
        system,
        messages,
        sampling: _,
        candidates: _,
        constraints,
        options,
        cut,
    } = prompt;
    system.iter_mut().for_each(|text| shared(text, rule));
    for Message { role: _, parts } in messages {
        parts.iter_mut().for_each(|said| part(said, rule));
    }
    constraints.iter_mut().for_each(|(_, constraint)| json(constraint, rule));
    // The keys are the names of the request's options.
    options.values_mut().for_each(|option| json(option, rule));
    cut.iter_mut().for_each(|cut| string(&mut cut.what, rule));
}

fn part(part: &mut Part, rule: &mut Rule<'_>) {
    match part {
        Part::Text(text) => body(text, rule),
        Part::Image { media_type: _, data } => body(data, rule),
        Part::ToolCall(call) => json(&mut call.arguments, rule),
        Part::ToolResult { call_id: _, content, is_error: _ } => body(content, rule),
    }
}

fn respond(response: &mut Response, rule: &mut Rule<'_>) {
    let Response { completions, usage: _, provider, raw } = response;
    answer(completions, provider, raw.as_mut(), rule);
}

fn answer(
    completions: &mut [Completion],
    provider: &mut Provider,
    raw: Option<&mut Body>,
    rule: &mut Rule<'_>,
) {
    let mut any = false;
    let mut noting = |text: &str| rule(text).inspect(|_| any = true);
    completions.iter_mut().for_each(|written| completion(written, &mut noting));
    let Provider { request_id: _, response_id: _, model: _, rate_limits } = provider;
    rate_limits.iter_mut().for_each(|(_, value)| string(value, rule));
    match raw {
        // A stream holds the text in pieces, and JSON escapes it: no rule finds all of it.
        Some(raw @ (Body::Text(_) | Body::Bytes(_))) if any => {
            *raw = format!("[redacted: {} bytes as they came]", raw.len()).into();
        }
        Some(raw) => body(raw, rule),
        None => {}
    }
}

fn completion(completion: &mut Completion, rule: &mut Rule<'_>) {
    let Completion { text, tool_calls, reasoning, finish_reason, logprobs } = completion;
    shared(text, rule);
    tool_calls.iter_mut().for_each(|call| json(&mut call.arguments, rule));
    reasoning.iter_mut().for_each(|text| shared(text, rule));
    match finish_reason {
        FinishReason::Other(words) => string(words, rule),
        FinishReason::Stop
        | FinishReason::Length
        | FinishReason::ToolCalls
        | FinishReason::ContentFilter
        | FinishReason::StoppedBy(_) => {}
    }
    let Some(tokens) = logprobs else { return };
    let whole: String = tokens.iter().map(|token| token.token.as_str()).collect();
    let in_pieces = rule(&whole).is_some();
    for token in tokens {
        let others = token.top.iter_mut().map(|other| &mut other.token);
        for text in std::iter::once(&mut token.token).chain(others) {
            if in_pieces {
                TOKEN.clone_into(text);
            } else {
                string(text, rule);
            }
        }
    }
}

pub(super) fn validation(result: &mut ValidationResult, rule: &mut Rule<'_>) {
    let ValidationResult {
        passed: _,
        message,
        score: _,
        issues,
        suggestions,
        details,
        severity: _,
        on_unknown: _,
        weight: _,
        extra,
    } = result;
    shared(message, rule);
    strings(issues, rule);
    strings(suggestions, rule);
    details.iter_mut().for_each(|fields| object(fields, rule));
    unknown(extra, rule);
}

pub(super) fn critique(feedback: &mut CriticFeedback, rule: &mut Rule<'_>) {
    let CriticFeedback {
        critic_name: _,
        candidate: _,
        issues,
        suggestions,
        confidence: _,
        feedback,
        proposed_text,
        evidence,
        metadata,
        extra,
    } = feedback;
    strings(issues, rule);
    strings(suggestions, rule);
    feedback.iter_mut().for_each(|text| shared(text, rule));
    proposed_text.iter_mut().for_each(|text| shared(text, rule));
    strings(evidence, rule);
    metadata.iter_mut().for_each(|fields| object(fields, rule));
    unknown(extra, rule);
}

pub(super) fn failed(failure: &mut Failure, rule: &mut Rule<'_>) {
    let Failure { component: _, operation: _, kind: _, message, suggestions, extra } = failure;
    string(message, rule);
    strings(suggestions, rule);
    unknown(extra, rule);
}

pub(super) fn candidate(candidate: &mut crate::Candidate, rule: &mut Rule<'_>) {
    let crate::Candidate { text, origin: _, validation_results, score: _, chosen: _, extra } =
        candidate;
    shared(text, rule);
    for (_, result) in Arc::make_mut(validation_results) {
        validation(result, rule);
    }
    unknown(extra, rule);
}

fn changed(transition: &mut Transition, rule: &mut Rule<'_>) {
    match transition {
        Transition::Retrying { attempt: _, delay: _, failure }
        | Transition::FellBack { to: _, failure } => failed(failure, rule),
        Transition::RetriesExhausted { .. }
        | Transition::CircuitOpened { .. }
        | Transition::CircuitHalfOpened
        | Transition::CircuitClosed
        | Transition::CircuitRejected
        | Transition::RateLimited { .. }
        | Transition::TimedOut { .. } => {}
    }
}

fn ended(reason: &mut EndReason, rule: &mut Rule<'_>) {
    match reason {
        EndReason::Budget { message } => string(message, rule),
        EndReason::Policy { message } => shared(message, rule),
        EndReason::Degraded { failure } => failed(failure, rule),
        EndReason::Passed
        | EndReason::MaxIterations
        | EndReason::Plateau { .. }
        | EndReason::Oscillation
        | EndReason::Deadline
        | EndReason::Cancelled => {}
    }
}
