//! What a critic says of a text.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::extra::Extra;
use crate::validation::null_is_empty;

/// A critic's advice, structured so that the chain can put it into the next prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Raw")]
pub struct CriticFeedback {
    /// Who said it.
    pub critic_name: Arc<str>,
    /// What is wrong.
    pub issues: Vec<String>,
    /// What to do about it.
    pub suggestions: Vec<String>,
    /// How sure the critic is, 0 to 1.
    pub confidence: Option<f64>,
    /// The advice in free words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Arc<str>>,
    /// A text the critic would put in place of the one it saw; validated like any other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed_text: Option<Arc<str>>,
    /// The candidate it is about, when that is not the one that was chosen in the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<u32>,
    /// What it rests on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// Whatever else the critic wants kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Fields that we do not know, kept as they came.
    #[serde(flatten)]
    pub extra: Extra,
}

impl CriticFeedback {
    /// Feedback of `critic` with nothing in it yet.
    pub fn new(critic: impl Into<Arc<str>>) -> Self {
        Self { critic_name: critic.into(), ..Self::default() }
    }

    /// Adds something wrong.
    #[must_use]
    pub fn with_issue(mut self, issue: impl Into<String>) -> Self {
        self.issues.push(issue.into());
        self
    }

    /// Adds something to do about it.
    #[must_use]
    pub fn with_suggestion(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestions.push(suggestion.into());
        self
    }

    /// Sets how sure the critic is, held within 0 and 1.
    #[must_use]
    pub fn with_confidence(mut self, confidence: f64) -> Self {
        self.confidence = Some(if confidence.is_nan() { 0.0 } else { confidence.clamp(0.0, 1.0) });
        self
    }

    /// Sets the advice in free words.
    #[must_use]
    pub fn with_feedback(mut self, feedback: impl Into<Arc<str>>) -> Self {
        self.feedback = Some(feedback.into());
        self
    }

    /// Proposes a text of the critic's own.
    #[must_use]
    pub fn with_proposed_text(mut self, text: impl Into<Arc<str>>) -> Self {
        self.proposed_text = Some(text.into());
        self
    }
}

/// Feedback as it stands in a file, with the spellings of the Python ancestor.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Raw {
    #[serde(deserialize_with = "crate::text::opt_arc_str")]
    critic_name: Option<Arc<str>>,
    #[serde(deserialize_with = "null_is_empty")]
    issues: Vec<String>,
    #[serde(deserialize_with = "null_is_empty")]
    suggestions: Vec<String>,
    confidence: Option<f64>,
    feedback: Option<Words>,
    #[serde(deserialize_with = "crate::text::opt_arc_str")]
    proposed_text: Option<Arc<str>>,
    candidate: Option<u32>,
    #[serde(deserialize_with = "null_is_empty")]
    evidence: Vec<String>,
    metadata: Option<Map<String, Value>>,
    #[serde(flatten)]
    extra: Extra,
}

/// `feedback` was a text, or an object with the critique inside.
#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    Text(Arc<str>),
    Other(Value),
}

impl From<Raw> for CriticFeedback {
    fn from(raw: Raw) -> Self {
        let is_named = raw.critic_name.is_some();
        let mut feedback = Self {
            critic_name: raw.critic_name.unwrap_or_else(|| Arc::from("")),
            issues: raw.issues,
            suggestions: raw.suggestions,
            confidence: raw.confidence,
            feedback: None,
            proposed_text: raw.proposed_text,
            candidate: raw.candidate,
            evidence: raw.evidence,
            metadata: raw.metadata,
            extra: raw.extra,
        };
        match raw.feedback {
            None => {}
            Some(Words::Text(text)) => feedback.feedback = Some(text),
            Some(Words::Other(Value::Object(mut fields))) => {
                if let Some(Value::String(text)) = fields.get("critique") {
                    feedback.feedback = Some(Arc::from(text.as_str()));
                    fields.shift_remove("critique");
                }
                if !fields.is_empty() {
                    keep(&mut feedback.metadata, "feedback", Value::Object(fields));
                }
            }
            Some(Words::Other(other)) => keep(&mut feedback.metadata, "feedback", other),
        }
        if !feedback.extra.is_empty() {
            feedback.adopt(is_named);
        }
        if !is_named && feedback.critic_name.is_empty() {
            feedback.critic_name = Arc::from("critic");
        }
        feedback
    }
}

impl CriticFeedback {
    /// Gives the ancestor's fields the homes they have here.
    fn adopt(&mut self, is_named: bool) {
        if let Some(violations) = self.extra.shift_remove("violations") {
            match Option::<Vec<String>>::deserialize(&violations) {
                Ok(list) => self.issues.extend(list.unwrap_or_default()),
                Err(_) => keep(&mut self.metadata, "violations", violations),
            }
        }
        if !is_named && let Some(name) = self.extra.get("critic").and_then(Value::as_str) {
            self.critic_name = Arc::from(name);
            self.extra.shift_remove("critic");
        }
        if let Some(time) = self.extra.shift_remove("processing_time_ms") {
            keep(&mut self.metadata, "processing_time_ms", time);
        }
    }
}

/// Puts something of the ancestor's that has no field here under `metadata.ancestor`.
pub(crate) fn keep(metadata: &mut Option<Map<String, Value>>, key: &str, value: Value) {
    let ancestor = metadata
        .get_or_insert_default()
        .entry("ancestor")
        .or_insert_with(|| Value::Object(Map::new()));
    if !ancestor.is_object() {
        // Somebody else's entry of that name is kept beside ours.
        let theirs = std::mem::replace(ancestor, Value::Object(Map::new()));
        keep(metadata, "ancestor", theirs);
        return keep(metadata, key, value);
    }
    if let Value::Object(fields) = ancestor {
        let mut free = key.to_owned();
        while fields.contains_key(&free) {
            free.push('+');
        }
        fields.insert(free, value);
    }
}
