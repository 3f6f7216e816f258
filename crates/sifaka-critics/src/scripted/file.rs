//! Scripts in files.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use sifaka_core::{CriticFeedback, Error, ErrorKind, Problem, Result};
use sifaka_models::script::{self, Exhausted, Fault, Seconds};

use super::{Advice, ScriptedCritic};

/// A whole script.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Script {
    feedback: Vec<Entry>,
    exhausted: Exhausted,
    delay: Seconds,
    name: Option<Arc<str>>,
}

impl From<Vec<Entry>> for Script {
    fn from(feedback: Vec<Entry>) -> Self {
        Self { feedback, ..Self::default() }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) issues: Vec<String>,
    pub(super) suggestions: Vec<String>,
    pub(super) confidence: Option<f64>,
    pub(super) feedback: Option<Arc<str>>,
    pub(super) proposed_text: Option<Arc<str>>,
    pub(super) evidence: Vec<String>,
    pub(super) error: Option<ErrorKind>,
    pub(super) message: Option<Arc<str>>,
    pub(super) retry_after: Option<Seconds>,
    pub(super) delay: Option<Seconds>,
    pub(super) times: Option<u64>,
}

impl Entry {
    /// What it makes the critic say, or what makes no sense about it.
    pub(super) fn advice(self) -> Result<Advice, &'static str> {
        let says = !self.issues.is_empty()
            || !self.suggestions.is_empty()
            || self.feedback.is_some()
            || self.proposed_text.is_some();
        let fault = match (self.error, says) {
            (Some(_), true) => return Err("an error and feedback exclude each other"),
            (None, _) if self.retry_after.is_some() || self.message.is_some() => {
                return Err("retry_after and message belong to an error, and there is none");
            }
            (None, false) => {
                return Err("there is neither issues, suggestions, feedback nor error");
            }
            (Some(kind), false) => Some(Fault {
                kind,
                message: self.message,
                retry_after: self.retry_after.map(|wait| wait.0),
            }),
            (None, true) => None,
        };
        if self.confidence.is_some_and(|sure| !(0.0..=1.0).contains(&sure)) {
            return Err("confidence lies between 0 and 1");
        }
        Ok(Advice {
            feedback: CriticFeedback {
                issues: self.issues,
                suggestions: self.suggestions,
                confidence: self.confidence,
                feedback: self.feedback,
                proposed_text: self.proposed_text,
                evidence: self.evidence,
                ..CriticFeedback::default()
            },
            fault,
            delay: self.delay.map(|delay| delay.0),
            times: self.times,
        })
    }
}

/// The critic that the script at `path` describes.
pub(super) fn read(path: &Path) -> Result<ScriptedCritic> {
    let component = "critic scripted";
    let script: Script = script::load(path, component)?;
    let (mut advice, mut problems) = (Vec::new(), Vec::new());
    for (entry, number) in script.feedback.into_iter().zip(1..) {
        match entry.advice() {
            Ok(one) => advice.push(one),
            Err(problem) => {
                let place = format!("{}, feedback {number}", path.display());
                problems.push(Problem::new(place, problem, "mend the script"));
            }
        }
    }
    if !problems.is_empty() {
        return Err(Error::problems(component, problems));
    }
    if advice.is_empty() {
        let message = format!("{} has no feedback", path.display());
        return Err(Error::configuration(component, message)
            .suggest("add [[feedback]] and below it issues = [\"…\"]"));
    }
    let critic =
        ScriptedCritic::new(advice).with_delay(script.delay.0).when_exhausted(script.exhausted);
    Ok(match script.name {
        Some(name) => critic.named(name),
        None => critic,
    })
}
