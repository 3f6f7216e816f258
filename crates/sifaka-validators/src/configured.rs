//! What holds for every check: soft or hard, weight, name, and what "could not tell" means.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use sifaka_core::spec::OptionReader;
use sifaka_core::validator::Watch;
use sifaka_core::{
    Constraint, Context, Draft, Error, ErrorKind, OnUnknown, Result, Severity, Spec,
    ValidationResult, Validator, Verdict,
};

/// Settings that any check can have. What is not set is left as the check has it.
///
/// By name they are options: `soft=true`, `weight=0.5`, `on_unknown=pass`, `name=short`,
/// `message="Keep it short."`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Modifiers {
    /// Whether the check decides or only counts.
    pub severity: Option<Severity>,
    /// Its share in the text's score.
    pub weight: Option<f64>,
    /// What a check that could not be made means.
    pub on_unknown: Option<OnUnknown>,
    /// Its name in results.
    pub name: Option<Arc<str>>,
    /// What to say first when the text fails, before the check's own issues.
    pub message: Option<Arc<str>>,
}

impl Modifiers {
    /// Reads them from a check's options.
    pub fn read(reader: &mut OptionReader<'_>) -> Self {
        let soft = reader.flag("soft");
        let weight = reader.number("weight");
        if weight.is_some_and(|weight| weight < 0.0) {
            reader.complain("weight", "a weight is not negative");
        }
        let on_unknown = match reader.text("on_unknown").as_deref().map(str::trim) {
            None => None,
            Some("pass") => Some(OnUnknown::Pass),
            Some("fail") => Some(OnUnknown::Fail),
            Some(other) => {
                reader.complain("on_unknown", format!("{other:?} is neither pass nor fail"));
                None
            }
        };
        Self {
            severity: soft.map(|soft| if soft { Severity::Soft } else { Severity::Hard }),
            weight,
            on_unknown,
            name: reader.text("name").map(Arc::from),
            message: reader.text("message").map(Arc::from),
        }
    }

    /// A check with these settings; the check itself when nothing is set.
    #[must_use]
    pub fn apply(self, inner: Arc<dyn Validator>) -> Arc<dyn Validator> {
        if self == Self::default() { inner } else { Arc::new(Configured { inner, set: self }) }
    }
}

/// A check with settings of the user's; see [`ValidatorExt`].
///
/// An error of the check becomes a result of "could not tell", so that what the settings say of it
/// holds. Being cancelled, late or out of budget stays an error: that says nothing of the text.
/// A soft check does not watch and constrains no model, since it must not stop a text.
#[derive(Clone)]
pub struct Configured {
    inner: Arc<dyn Validator>,
    set: Modifiers,
}

/// Settings for any check: `Length::words(5..).soft().weight(0.5)`.
pub trait ValidatorExt: Validator + Sized + 'static {
    /// It only moves the score.
    fn soft(self) -> Configured {
        self.configured().soft()
    }

    /// Its share in the text's score; below 0 is 0.
    fn weight(self, weight: f64) -> Configured {
        self.configured().weight(weight)
    }

    /// When it cannot be made, it is left out.
    fn pass_if_unknown(self) -> Configured {
        self.configured().pass_if_unknown()
    }

    /// Its name in results.
    fn named(self, name: impl Into<Arc<str>>) -> Configured {
        self.configured().named(name)
    }

    /// What to say first when the text fails, before the check's own issues.
    fn message(self, message: impl Into<Arc<str>>) -> Configured {
        self.configured().message(message)
    }

    /// The check with nothing set yet.
    fn configured(self) -> Configured {
        Configured { inner: Arc::new(self), set: Modifiers::default() }
    }
}

impl<V: Validator + Sized + 'static> ValidatorExt for V {}

impl Configured {
    /// It only moves the score.
    #[must_use]
    pub fn soft(mut self) -> Self {
        self.set.severity = Some(Severity::Soft);
        self
    }

    /// Its share in the text's score; below 0 is 0.
    #[must_use]
    pub fn weight(mut self, weight: f64) -> Self {
        self.set.weight = Some(if weight.is_finite() { weight.max(0.0) } else { 0.0 });
        self
    }

    /// When it cannot be made, it is left out.
    #[must_use]
    pub fn pass_if_unknown(mut self) -> Self {
        self.set.on_unknown = Some(OnUnknown::Pass);
        self
    }

    /// Its name in results.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.set.name = Some(name.into());
        self
    }

    /// What to say first when the text fails, before the check's own issues.
    #[must_use]
    pub fn message(mut self, message: impl Into<Arc<str>>) -> Self {
        self.set.message = Some(message.into());
        self
    }

    /// What is set.
    #[must_use]
    pub fn modifiers(&self) -> &Modifiers {
        &self.set
    }
}

impl fmt::Debug for Configured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Configured").field("inner", &self.inner).field("set", &self.set).finish()
    }
}

#[async_trait]
impl Validator for Configured {
    fn name(&self) -> &str {
        self.set.name.as_deref().unwrap_or_else(|| self.inner.name())
    }

    async fn validate(&self, ctx: &Context, draft: &Draft<'_>) -> Result<ValidationResult> {
        let mut result = match self.inner.validate(ctx, draft).await {
            Ok(result) => result,
            Err(error) if says_nothing(error.kind()) => return Err(error),
            Err(error) => ValidationResult::unknown(error.to_string())
                .with_detail("error", error.kind().label()),
        };
        let set = &self.set;
        result.severity = set.severity.unwrap_or(result.severity);
        result.weight = set.weight.unwrap_or(result.weight);
        result.on_unknown = set.on_unknown.unwrap_or(result.on_unknown);
        if let Some(message) = &set.message
            && result.passed == Verdict::Failed
        {
            result.message = Arc::clone(message);
            result.issues.insert(0, String::from(&**message));
        }
        Ok(result)
    }

    fn constraints(&self) -> Vec<Constraint> {
        if self.set.severity == Some(Severity::Soft) {
            return Vec::new();
        }
        self.inner.constraints()
    }

    fn watch(&self) -> Option<Box<dyn Watch>> {
        if self.set.severity == Some(Severity::Soft) { None } else { self.inner.watch() }
    }
}

/// Whether an error is about the run and not about the check.
fn says_nothing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Cancelled | ErrorKind::DeadlineExceeded | ErrorKind::BudgetExhausted)
}

/// Makes a check by name: its own options through `build`, and [`Modifiers`]. Checks of your own
/// that are registered with it take the same settings as ours.
///
/// `build` gives `None` when an option is missing or wrong, after complaining or not.
///
/// # Errors
/// [`ErrorKind::Configuration`] with every problem of every option.
pub fn checked<V: Validator + 'static>(
    spec: &Spec,
    build: impl FnOnce(&mut OptionReader<'_>) -> Option<V>,
) -> Result<Arc<dyn Validator>> {
    let mut reader = spec.reader();
    let built = build(&mut reader);
    let modifiers = Modifiers::read(&mut reader);
    if let Some(stray) = stray(spec) {
        reader.complain("options", format!("{stray:?} is not an option; options are key=value"));
    }
    reader.finish()?;
    match built {
        Some(check) => Ok(modifiers.apply(Arc::new(check))),
        None => Err(Error::configuration(
            format!("check {}", spec.name()),
            "it does not say what to check",
        )
        .suggest("write it with options, as in length:words=50..200")),
    }
}

/// What stands between the colon and the first option, where nothing belongs.
fn stray(spec: &Spec) -> Option<&str> {
    let argument = spec.argument()?;
    let key = argument.split_once('=').map(|(key, _)| key.trim());
    match spec.options().keys().next() {
        Some(first) if key == Some(first) => None,
        _ => argument.split(',').next().filter(|part| !part.trim().is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Length;

    #[test]
    fn only_a_check_that_decides_constrains() {
        let hard = Length::words(..=3);
        assert!(!hard.constraints().is_empty());
        assert_eq!(hard.clone().weight(0.5).constraints(), hard.constraints());
        assert!(hard.soft().constraints().is_empty());
    }
}
