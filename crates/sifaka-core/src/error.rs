//! The one error type.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Thought;

/// The result of anything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident => $label:literal, $retry:literal, $http:literal, $exit:literal;)*) => {
        /// What went wrong. The kind alone decides whether to retry, which HTTP status and exit
        /// code to give, how loud to log and which label a metric has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum ErrorKind { $($(#[$doc])* $kind,)* }

        impl ErrorKind {
            /// Every kind there is.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// The name used in JSON, metrics and documentation.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self { $(Self::$kind => $label,)* }
            }

            /// Whether the same call may succeed a little later.
            #[must_use]
            pub const fn is_retryable(self) -> bool {
                match self { $(Self::$kind => $retry,)* }
            }

            /// The HTTP status a server answers with.
            #[must_use]
            pub const fn http_status(self) -> u16 {
                match self { $(Self::$kind => $http,)* }
            }

            /// How loud it is logged: as a warning what may pass by itself or was asked for, as an
            /// error what somebody has to look at.
            #[must_use]
            pub const fn log_level(self) -> &'static str {
                match self {
                    Self::Cancelled => "info",
                    kind if kind.is_retryable() => "warn",
                    _ => "error",
                }
            }

            /// The exit code of the program.
            #[must_use]
            pub const fn exit_code(self) -> u8 {
                match self { $(Self::$kind => $exit,)* }
            }
        }
    };
}

kinds! {
    /// The configuration is wrong: an unknown name, a bad option, parts that contradict.
    Configuration => "configuration", false, 500, 2;
    /// The caller's input is wrong: an empty prompt, a damaged file.
    InvalidInput => "invalid_input", false, 400, 2;
    /// What was asked for is not there.
    NotFound => "not_found", false, 404, 4;
    /// The component cannot do this.
    Unsupported => "unsupported", false, 501, 1;
    /// A key is missing, wrong or lacks rights.
    Auth => "auth", false, 401, 5;
    /// The provider asks to slow down.
    RateLimited => "rate_limited", true, 429, 6;
    /// The prompt does not fit the model's window.
    ContextTooLong => "context_too_long", false, 413, 1;
    /// The model declined to answer.
    Refused => "refused", false, 422, 1;
    /// The provider's filter withheld the answer.
    ContentFiltered => "content_filtered", false, 422, 1;
    /// The other side is up but cannot take more just now.
    Overloaded => "overloaded", true, 503, 6;
    /// A single call took too long.
    Timeout => "timeout", true, 504, 6;
    /// The other side could not be reached, or the connection broke.
    Unavailable => "unavailable", true, 503, 6;
    /// The answer could not be understood.
    InvalidResponse => "invalid_response", true, 502, 1;
    /// The run's time is up.
    DeadlineExceeded => "deadline_exceeded", false, 504, 1;
    /// The budget does not allow the next call.
    BudgetExhausted => "budget_exhausted", false, 402, 1;
    /// Somebody asked to stop.
    Cancelled => "cancelled", false, 499, 130;
    /// The circuit breaker keeps calls away from a failing component.
    CircuitOpen => "circuit_open", false, 503, 6;
    /// Every try failed.
    RetriesExhausted => "retries_exhausted", false, 503, 6;
    /// Somebody else holds what is needed, or changed it meanwhile.
    Conflict => "conflict", false, 409, 7;
    /// Stored data is damaged or was tampered with.
    Corrupt => "corrupt", false, 500, 8;
    /// The disk, the file system or a store failed.
    Storage => "storage", false, 500, 1;
    /// A component broke its contract.
    Internal => "internal", false, 500, 1;
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// Why no answer could be made: a kind, where it happened, what happened and what to do next.
///
/// It may carry the [`Thought`] so far, so that nothing that was paid for is lost.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    component: Cow<'static, str>,
    operation: &'static str,
    message: String,
    suggestions: Vec<String>,
    retry_after: Option<Duration>,
    thought: Option<Thought>,
    problems: Vec<Problem>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// One of several things wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Where: an option, a file and line, a validator's name.
    pub place: String,
    /// What is wrong there.
    pub message: String,
    /// What to do about it.
    pub suggestion: String,
}

impl Problem {
    /// One problem.
    pub fn new(
        place: impl Into<String>,
        message: impl Into<String>,
        suggestion: impl Into<String>,
    ) -> Self {
        Self { place: place.into(), message: message.into(), suggestion: suggestion.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        if !self.suggestion.is_empty() {
            write!(f, " ({})", self.suggestion)?;
        }
        Ok(())
    }
}

impl Error {
    /// An error of `kind` that happened in `component` while it did `operation`.
    pub fn new(
        kind: ErrorKind,
        component: impl AsRef<str>,
        operation: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self(Box::new(Inner {
            kind,
            component: Cow::Owned(component.as_ref().to_owned()),
            operation,
            message: message.into(),
            suggestions: Vec::new(),
            retry_after: None,
            thought: None,
            problems: Vec::new(),
            source: None,
        }))
    }

    /// A mistake in the configuration.
    pub fn configuration(component: impl AsRef<str>, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Configuration, component, "configure", message)
    }

    /// Several mistakes in the configuration, reported together.
    #[must_use]
    pub fn problems(component: impl AsRef<str>, problems: Vec<Problem>) -> Self {
        let message = match problems.as_slice() {
            [only] => only.to_string(),
            many => {
                let lines: Vec<String> = many.iter().map(|p| format!("- {p}")).collect();
                format!("{} problems\n{}", many.len(), lines.join("\n"))
            }
        };
        let mut error = Self::configuration(component, message);
        error.0.problems = problems;
        error
    }

    /// Bad input from the caller.
    pub fn invalid_input(component: impl AsRef<str>, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, component, "read", message)
    }

    /// Adds what the user can do next.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.0.suggestions.push(suggestion.into());
        self
    }

    /// Adds how long the other side asked to wait.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// Adds the work done so far.
    #[must_use]
    pub fn with_thought(mut self, thought: Thought) -> Self {
        self.0.thought = Some(thought);
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Says that it happened in another component than first thought.
    #[must_use]
    pub fn in_component(mut self, component: impl AsRef<str>) -> Self {
        self.0.component = Cow::Owned(component.as_ref().to_owned());
        self
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Where it went wrong.
    #[must_use]
    pub fn component(&self) -> &str {
        &self.0.component
    }

    /// What was being done.
    #[must_use]
    pub fn operation(&self) -> &str {
        self.0.operation
    }

    /// What happened, in a sentence.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to do next.
    #[must_use]
    pub fn suggestions(&self) -> &[String] {
        &self.0.suggestions
    }

    /// How long the other side asked to wait.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The work done so far, when there was any.
    #[must_use]
    pub fn thought(&self) -> Option<&Thought> {
        self.0.thought.as_ref()
    }

    /// Every problem of a configuration, when it was checked as a whole.
    #[must_use]
    pub fn all_problems(&self) -> &[Problem] {
        &self.0.problems
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.component, self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("component", &self.0.component)
            .field("operation", &self.0.operation)
            .field("message", &self.0.message)
            .field("suggestions", &self.0.suggestions)
            .field("source", &self.0.source)
            .finish_non_exhaustive()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_what_json_says() {
        for kind in ErrorKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.label());
        }
    }

    #[test]
    fn an_error_is_small_and_says_where() {
        assert!(size_of::<Error>() <= 8);
        let error = Error::configuration("chain", "no model").suggest("call .model(…)");
        assert_eq!(error.to_string(), "chain: no model");
        assert_eq!(error.suggestions(), ["call .model(…)"]);
    }

    #[test]
    fn many_problems_are_one_error() {
        let problems = vec![Problem::new("a", "x", "do y"), Problem::new("b", "z", "")];
        let error = Error::problems("chain", problems);
        assert_eq!(error.to_string(), "chain: 2 problems\n- a: x (do y)\n- b: z");
        assert_eq!(error.all_problems().len(), 2);
    }
}
