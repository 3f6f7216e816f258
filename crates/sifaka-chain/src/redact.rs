//! Taking out of the record what must not be in it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use sifaka_core::{Error, ErrorKind, Event, Result};

type Rule = dyn Fn(&str) -> Cow<'_, str> + Send + Sync;

/// A rule that rewrites every text before it is journalled. What the caller gets back is not
/// touched, only what is kept.
#[derive(Clone)]
pub struct Redaction(Arc<Rule>);

/// Makes a rule of a closure.
pub fn redact_with(rule: impl Fn(&str) -> Cow<'_, str> + Send + Sync + 'static) -> Redaction {
    Redaction(Arc::new(rule))
}

/// Fields of an event, and of an imported Thought, that hold the record together and are ours.
const STRUCTURE: &[&str] =
    &["type", "thought_id", "best", "request", "id", "parent_id", "run_id", "timestamp", "version"];

impl Redaction {
    /// The same event with the rule applied to every text in it.
    pub(crate) fn apply(&self, event: &Event) -> Result<Event> {
        let failed = |error: serde_json::Error| {
            Error::new(ErrorKind::Configuration, "redaction", "apply", error.to_string())
                .suggest("the rule changed more than texts; make it narrower")
        };
        let mut value = serde_json::to_value(&event.kind).map_err(failed)?;
        self.rewrite_fields(&mut value, 0);
        let kind = serde_json::from_value(value).map_err(failed)?;
        Ok(Event { run_id: event.run_id.clone(), seq: event.seq, time: event.time, kind })
    }

    /// Rewrites an object whose own fields may be structure: an event, the Thought in it, and
    /// that Thought's history.
    fn rewrite_fields(&self, value: &mut Value, depth: u8) {
        let Value::Object(fields) = value else { return self.rewrite(value) };
        for (key, field) in fields.iter_mut() {
            match (key.as_str(), field) {
                (key, _) if STRUCTURE.contains(&key) => {}
                ("thought", field) if depth == 0 => self.rewrite_fields(field, 1),
                ("history", Value::Array(entries)) if depth == 1 => {
                    entries.iter_mut().for_each(|entry| self.rewrite_fields(entry, 2));
                }
                (_, field) => self.rewrite(field),
            }
        }
    }

    fn rewrite(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(new) = (self.0)(text) {
                    *text = new;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.rewrite(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.rewrite(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redaction")
    }
}
