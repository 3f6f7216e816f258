//! What went wrong without ending the run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Extra};

/// A component that failed, on record: never as feedback, never as a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Which component.
    #[serde(deserialize_with = "crate::text::arc_str")]
    pub component: Arc<str>,
    /// What it was doing.
    pub operation: String,
    /// What went wrong.
    pub kind: ErrorKind,
    /// In its own words.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
    /// Fields that we do not know, kept as they came.
    #[serde(flatten)]
    pub extra: Extra,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self {
            component: Arc::from(error.component()),
            operation: error.operation().to_owned(),
            kind: error.kind(),
            message: error.message().to_owned(),
            suggestions: error.suggestions().to_vec(),
            extra: Extra::default(),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} failed to {}: {}", self.component, self.operation, self.message)
    }
}
