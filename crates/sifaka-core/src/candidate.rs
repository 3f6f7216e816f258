//! One of the texts an iteration chose from.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Extra;
use crate::validation::{Score, ValidationResult};

/// Where a candidate came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The model wrote it.
    Sample,
    /// The named critic proposed it.
    Proposal(Arc<str>),
}

/// A text that was written or proposed in an iteration, with what the validators said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The text.
    #[serde(deserialize_with = "crate::text::arc_str")]
    pub text: Arc<str>,
    /// Where it came from.
    pub origin: Origin,
    /// What each validator said, in declared order.
    #[serde(default, with = "crate::thought::named::shared")]
    pub validation_results: Arc<Vec<(Arc<str>, ValidationResult)>>,
    /// How good it is, once validated.
    #[serde(default)]
    pub score: Option<Score>,
    /// Whether it is the iteration's text.
    #[serde(default)]
    pub chosen: bool,
    /// Fields that we do not know, kept as they came.
    #[serde(flatten)]
    pub extra: Extra,
}
