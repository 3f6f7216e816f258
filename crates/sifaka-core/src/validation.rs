//! What a validator says of a text.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::extra::Extra;

/// Passed, failed, or could not tell. In JSON `true`, `false` and `null`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The text is as it should be.
    Passed,
    /// It is not.
    Failed,
    /// The check itself could not be made.
    #[default]
    Unknown,
}

impl From<bool> for Verdict {
    fn from(passed: bool) -> Self {
        if passed { Self::Passed } else { Self::Failed }
    }
}

impl From<Verdict> for Option<bool> {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Passed => Some(true),
            Verdict::Failed => Some(false),
            Verdict::Unknown => None,
        }
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Option::<bool>::from(*self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Verdict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<bool>::deserialize(deserializer)?.map_or(Self::Unknown, Self::from))
    }
}

/// Whether a check decides or only counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Failing it means the text does not pass.
    #[default]
    Hard,
    /// It moves the score and nothing else.
    Soft,
}

/// What a hard check that could not be made means for the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknown {
    /// The text does not pass: what was not checked is not known to be good.
    #[default]
    Fail,
    /// The check is left out.
    Pass,
}

/// A validator's answer: verdict, score, what is wrong, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ValidationResult {
    /// Passed, failed or could not tell.
    pub passed: Verdict,
    /// The answer in a sentence.
    #[serde(deserialize_with = "crate::text::arc_str")]
    pub message: Arc<str>,
    /// How good the text is by this check, 0 to 1.
    pub score: Option<f64>,
    /// What is wrong, each with its place and amount.
    #[serde(deserialize_with = "null_is_empty")]
    pub issues: Vec<String>,
    /// What a writer can do about it.
    #[serde(deserialize_with = "null_is_empty")]
    pub suggestions: Vec<String>,
    /// Whatever else the check found out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Map<String, Value>>,
    /// Whether the check decides or only counts.
    #[serde(skip_serializing_if = "is_default")]
    pub severity: Severity,
    /// What "could not tell" means.
    #[serde(skip_serializing_if = "is_default")]
    pub on_unknown: OnUnknown,
    /// Its share in the text's score.
    #[serde(skip_serializing_if = "is_one", deserialize_with = "null_is_zero")]
    pub weight: f64,
    /// Fields that we do not know, kept as they came.
    #[serde(flatten)]
    pub extra: Extra,
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
#[expect(clippy::float_cmp, reason = "the default, as it was written")]
fn is_one(value: &f64) -> bool {
    *value == 1.0
}

/// JSON has no infinity and writes null; such a weight counts for nothing here and there.
fn null_is_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

pub(crate) fn null_is_empty<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Default for ValidationResult {
    fn default() -> Self {
        Self {
            passed: Verdict::Unknown,
            message: Arc::default(),
            score: None,
            issues: Vec::new(),
            suggestions: Vec::new(),
            details: None,
            severity: Severity::Hard,
            on_unknown: OnUnknown::Fail,
            weight: 1.0,
            extra: Extra::default(),
        }
    }
}

impl ValidationResult {
    fn of(passed: Verdict, message: impl Into<Arc<str>>) -> Self {
        Self { passed, message: message.into(), ..Self::default() }
    }

    /// The text is as it should be.
    pub fn passed(message: impl Into<Arc<str>>) -> Self {
        Self::of(Verdict::Passed, message)
    }

    /// The text is not as it should be; `issue` names the place and the amount.
    pub fn failed(issue: impl Into<String>) -> Self {
        let issue = issue.into();
        Self { issues: vec![issue.clone()], ..Self::of(Verdict::Failed, issue) }
    }

    /// The check could not be made.
    pub fn unknown(reason: impl Into<Arc<str>>) -> Self {
        Self::of(Verdict::Unknown, reason)
    }

    /// Adds a score, held within 0 and 1.
    #[must_use]
    pub fn with_score(mut self, score: f64) -> Self {
        self.score = Some(if score.is_nan() { 0.0 } else { score.clamp(0.0, 1.0) });
        self
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

    /// Adds something else the check found out.
    #[must_use]
    pub fn with_detail(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.details.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// Whether this result lets the text pass.
    #[must_use]
    pub fn allows(&self) -> bool {
        match (self.severity, self.passed) {
            (Severity::Soft, _) | (_, Verdict::Passed) => true,
            (_, Verdict::Failed) => false,
            (_, Verdict::Unknown) => self.on_unknown == OnUnknown::Pass,
        }
    }

    /// Its part in the text's score: the score, or 1 passed and 0 failed; `None` if it could not
    /// tell.
    #[must_use]
    pub fn points(&self) -> Option<f64> {
        let score = self.score.filter(|score| score.is_finite()).map(|score| score.clamp(0.0, 1.0));
        match self.passed {
            Verdict::Unknown => None,
            Verdict::Passed => Some(score.unwrap_or(1.0)),
            Verdict::Failed => Some(score.unwrap_or(0.0)),
        }
    }
}

/// How good a text is: first whether all hard checks passed, then the weighted mean of scores.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Whether every hard check passed.
    pub passed: bool,
    /// The weighted mean of the scores, 0 to 1; 1 when there was nothing to score.
    pub value: f64,
}

impl Score {
    /// The score of a text with these results.
    pub fn of<'a>(results: impl IntoIterator<Item = &'a ValidationResult>) -> Self {
        let (mut passed, mut sum, mut weights) = (true, 0.0, 0.0);
        for result in results {
            passed &= result.allows();
            if let Some(points) = result.points() {
                // Whatever a validator says, the mean stays a number between 0 and 1.
                let weight = if result.weight.is_finite() { result.weight } else { 0.0 };
                let weight = weight.clamp(0.0, 1e12);
                sum += points * weight;
                weights += weight;
            }
        }
        Self {
            passed,
            value: if weights > 0.0 { sum / weights } else { f64::from(u8::from(passed)) },
        }
    }

    /// Whether this is strictly better than `other`; of equals, the earlier one is kept.
    #[must_use]
    pub fn beats(&self, other: &Self) -> bool {
        (self.passed, self.value) > (other.passed, other.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn could_not_tell_does_not_pass_unless_asked() {
        let mut unknown = ValidationResult::unknown("the judge did not answer");
        assert!(!unknown.allows());
        unknown.on_unknown = OnUnknown::Pass;
        assert!(unknown.allows());
        assert_eq!(unknown.points(), None);
    }

    #[test]
    fn soft_checks_only_score() {
        let mut soft = ValidationResult::failed("a little long").with_score(0.4);
        soft.severity = Severity::Soft;
        let score = Score::of([&soft, &ValidationResult::passed("ok")]);
        assert!(score.passed);
        assert!((score.value - 0.7).abs() < 1e-9);
    }

    #[test]
    fn passing_beats_any_score() {
        let passed = Score { passed: true, value: 0.1 };
        let failed = Score { passed: false, value: 0.9 };
        assert!(passed.beats(&failed));
        assert!(!failed.beats(&passed));
        assert!(!passed.beats(&passed));
    }
}
