//! The contract of a check.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::constraint::Constraint;
use crate::model::Model;
use crate::validation::ValidationResult;
use crate::{Context, Result, Thought};

/// What a validator looks at: a text, and the Thought it was written for.
#[derive(Clone, Copy)]
pub struct Draft<'a> {
    /// The text under test. It need not be the Thought's own: candidates are tested as well.
    pub text: &'a str,
    /// The prompt, both contexts and the history.
    pub thought: &'a Thought,
    /// The chain's model, for checks that ask one; call it through
    /// [`Context::generate`](crate::Context::generate).
    pub model: Option<&'a Arc<dyn Model>>,
}

impl<'a> Draft<'a> {
    /// A draft of `text` for `thought`.
    #[must_use]
    pub fn new(text: &'a str, thought: &'a Thought) -> Self {
        Self { text, thought, model: None }
    }
}

impl fmt::Debug for Draft<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft").field("text", &self.text).finish_non_exhaustive()
    }
}

/// Something that says whether a text is as it should be.
///
/// **Contract.** The same draft gives the same answer, as far as that is in the validator's hands.
/// A text that is not as it should be is a [`ValidationResult::failed`], not an error; an error
/// means that the check could not be made, and is recorded as "could not tell". Issues name the
/// place and the amount, suggestions are such that a writer can act on them.
#[async_trait]
pub trait Validator: Send + Sync {
    /// Its name in results; two of the same name in one chain are told apart by a number.
    fn name(&self) -> &str;

    /// Checks a draft.
    async fn validate(&self, ctx: &Context, draft: &Draft<'_>) -> Result<ValidationResult>;

    /// Rules that, kept while writing, make the check pass or likelier to.
    fn constraints(&self) -> Vec<Constraint> {
        Vec::new()
    }

    /// A watcher for text that is still being written, if the check can decide early.
    fn watch(&self) -> Option<Box<dyn Watch>> {
        None
    }
}

/// Watches a text while it is being written.
pub trait Watch: Send {
    /// Takes the next piece. An answer means that no continuation can pass any more, and says why;
    /// the generation is stopped then.
    fn push(&mut self, text: &str) -> Option<String>;
}

#[async_trait]
impl<V: Validator + ?Sized> Validator for Arc<V> {
    fn name(&self) -> &str {
        (**self).name()
    }
    async fn validate(&self, ctx: &Context, draft: &Draft<'_>) -> Result<ValidationResult> {
        (**self).validate(ctx, draft).await
    }
    fn constraints(&self) -> Vec<Constraint> {
        (**self).constraints()
    }
    fn watch(&self) -> Option<Box<dyn Watch>> {
        (**self).watch()
    }
}

impl fmt::Debug for dyn Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Validator({})", self.name())
    }
}

/// A validator made from a closure; see [`check`].
pub struct FunctionValidator<F> {
    name: Arc<str>,
    function: F,
}

/// Makes a validator of a closure over the text that gives a `bool`, a
/// `Result<(), String>` whose error is the issue, or a whole [`ValidationResult`].
///
/// ```
/// use sifaka_core::{Context, Draft, Thought, Validator, check};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let no_todo = check("no-todo", |text| !text.contains("TODO"));
/// let ctx = Context::new();
/// let thought = Thought::new(&ctx, "Write it.");
/// let result = no_todo.validate(&ctx, &Draft::new("TODO: write it", &thought)).await?;
/// assert!(!result.allows());
/// # Ok::<(), sifaka_core::Error>(()) }).unwrap();
/// ```
pub fn check<F, T>(name: impl Into<Arc<str>>, function: F) -> FunctionValidator<F>
where
    F: Fn(&str) -> T + Send + Sync,
    T: IntoValidation,
{
    FunctionValidator { name: name.into(), function }
}

/// What a closure that is a validator may give.
pub trait IntoValidation {
    /// As the result of the check called `name`.
    fn into_validation(self, name: &str) -> ValidationResult;
}

impl IntoValidation for ValidationResult {
    fn into_validation(self, _: &str) -> ValidationResult {
        self
    }
}

impl IntoValidation for bool {
    fn into_validation(self, name: &str) -> ValidationResult {
        if self {
            ValidationResult::passed("passed")
        } else {
            ValidationResult::failed(format!("the text does not pass the check {name:?}"))
        }
    }
}

impl<E: Into<String>> IntoValidation for std::result::Result<(), E> {
    fn into_validation(self, _: &str) -> ValidationResult {
        match self {
            Ok(()) => ValidationResult::passed("passed"),
            Err(issue) => ValidationResult::failed(issue),
        }
    }
}

#[async_trait]
impl<F, T> Validator for FunctionValidator<F>
where
    F: Fn(&str) -> T + Send + Sync,
    T: IntoValidation,
{
    fn name(&self) -> &str {
        &self.name
    }

    async fn validate(&self, _ctx: &Context, draft: &Draft<'_>) -> Result<ValidationResult> {
        Ok((self.function)(draft.text).into_validation(&self.name))
    }
}

impl<F> fmt::Debug for FunctionValidator<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionValidator").field("name", &self.name).finish_non_exhaustive()
    }
}
