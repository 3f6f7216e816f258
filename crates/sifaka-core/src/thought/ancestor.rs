//! The spellings of the Python ancestor. `docs/reference/ancestor-fields.md` has the table.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::named;
use super::read::Raw;
use crate::feedback::{CriticFeedback, keep};
use crate::text::parse_time;
use crate::usage::Usage;

/// Fields of the ancestor's that we have no use for.
const LEFT_OVER: &[&str] = &[
    "generations",
    "updated_at",
    "processing_time",
    "config_used",
    "tools_used",
    "model",
    "tokens_used",
];

/// Fields of the ancestor's that have a home of ours go there; what has none goes to
/// `metadata.ancestor`; what is nobody's stays an unknown field.
pub(super) fn adopt(raw: &mut Raw) {
    if raw.text.is_none()
        && let Some(text) = take_text(raw, &["generated_text", "final_text"])
    {
        raw.text = Some(Arc::from(text));
    }
    if raw.prompt.is_none()
        && let Some(text) = take_text(raw, &["original_text"])
    {
        raw.prompt = Some(Arc::from(text));
    }
    if raw.pre_generation_context.is_empty()
        && let Some(context) = raw.extra.shift_remove("retrieved_context")
    {
        match super::read::documents(&context) {
            Ok(documents) => raw.pre_generation_context = documents,
            Err(_) => keep(&mut raw.metadata, "retrieved_context", context),
        }
    }
    if let Some(time) = raw.extra.shift_remove("created_at") {
        match time.as_str().map(parse_time) {
            Some(Ok(at)) if raw.timestamp.is_none() => raw.timestamp = Some(at),
            _ => keep(&mut raw.metadata, "created_at", time),
        }
    }
    adopt_validations(raw);
    adopt_critiques(raw);
    for &key in LEFT_OVER {
        if let Some(value) = raw.extra.shift_remove(key) {
            keep(&mut raw.metadata, key, value);
        }
    }
}

fn adopt_validations(raw: &mut Raw) {
    let Some(list) = raw.extra.shift_remove("validations") else { return };
    match named::deserialize(&list) {
        Ok(results) => {
            for (name, result) in results {
                let name = named::unique(&raw.validation_results, &name);
                raw.validation_results.push((name, result));
            }
        }
        Err(_) => keep(&mut raw.metadata, "validations", list),
    }
}

fn adopt_critiques(raw: &mut Raw) {
    if let Some(list) = raw.extra.shift_remove("critiques") {
        match Vec::<CriticFeedback>::deserialize(&list) {
            Ok(items) => raw.critic_feedback.extend(items),
            Err(_) => keep(&mut raw.metadata, "critiques", list),
        }
    }
    if let Some(critique) = raw.extra.shift_remove("critique")
        && !critique.is_null()
    {
        let mut feedback = CriticFeedback::new("critique");
        match critique {
            Value::String(text) => feedback.feedback = Some(Arc::from(text)),
            other => {
                feedback.feedback = remarks(&other).map(Arc::from);
                keep(&mut feedback.metadata, "critique", other);
            }
        }
        raw.critic_feedback.push(feedback);
    }
    if let Some(list) = raw.extra.shift_remove("improvement_results") {
        match list {
            Value::Array(items) => {
                raw.critic_feedback.extend(items.into_iter().map(improvement));
            }
            Value::Null => {}
            other => keep(&mut raw.metadata, "improvement_results", other),
        }
    }
}

/// An object of remarks in words, so that a next prompt can hold them.
fn remarks(critique: &Value) -> Option<String> {
    let lines: Vec<String> = critique
        .as_object()?
        .iter()
        .filter_map(|(about, remark)| Some(format!("{about}: {}", remark.as_str()?)))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// An improver's report becomes feedback that proposed a text.
fn improvement(report: Value) -> CriticFeedback {
    let mut feedback = CriticFeedback::new("improver");
    match report {
        Value::Object(mut fields) => {
            feedback.proposed_text = take(&mut fields, "improved_text").map(Arc::from);
            feedback.feedback = take(&mut fields, "message").map(Arc::from);
            for (key, value) in fields {
                keep(&mut feedback.metadata, &key, value);
            }
        }
        other => keep(&mut feedback.metadata, "improvement_result", other),
    }
    feedback
}

fn take_text(raw: &mut Raw, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| take(&mut raw.extra, key))
}

/// Takes a text out of some fields; anything but a text stays where it is.
pub(super) fn take(fields: &mut Map<String, Value>, key: &str) -> Option<String> {
    match fields.get_mut(key) {
        Some(Value::String(text)) => {
            let text = std::mem::take(text);
            fields.shift_remove(key);
            Some(text)
        }
        _ => None,
    }
}

/// The later result object lists its generations; each is an iteration. The last one is the
/// result itself when it has the final text.
pub(super) fn generations_become_history(raw: &mut Raw, history: &mut Vec<Raw>) {
    let is_result = raw.extra.contains_key("final_text") && raw.extra.contains_key("generations");
    if !is_result {
        return;
    }
    let Some(Value::Array(generations)) = raw.extra.get("generations") else { return };
    let mut entries = Vec::new();
    for generation in generations {
        let Ok(mut entry) = Raw::deserialize(generation) else { return };
        if entry.text.is_none() {
            return;
        }
        entry.model_prompt = entry.prompt.take().map(Into::into);
        let asked = raw.extra.get("original_text").and_then(Value::as_str).map(Arc::from);
        entry.prompt = raw.prompt.clone().or(asked);
        entry.usage = entry.extra.get("tokens_used").and_then(Value::as_u64).map(|tokens| Usage {
            calls: 1,
            output_tokens: tokens,
            estimated: true,
            ..Usage::default()
        });
        entries.push(entry);
    }
    let generations = raw.extra.shift_remove("generations");
    if let Some(last) = entries.last()
        && raw.extra.get("final_text").and_then(Value::as_str) == last.text.as_deref()
        && let Some(last) = entries.pop()
    {
        raw.model_prompt = last.model_prompt;
        raw.usage = last.usage;
        // Its own time, number and the like have no place beside the result's.
        if let Some(Value::Array(mut whole)) = generations
            && let Some(last) = whole.pop()
        {
            keep(&mut raw.metadata, "generation", last);
        }
    }
    history.extend(entries);
}
