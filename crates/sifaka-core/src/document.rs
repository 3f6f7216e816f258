//! What a retriever finds.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::body::Body;
use crate::extra::Extra;

/// A retrieved text with where it came from and how well it fitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Document {
    /// Names the document where it is kept.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::text::opt_arc_str"
    )]
    pub id: Option<Arc<str>>,
    /// The text, or a pointer to it where it was stored apart.
    pub text: Body,
    /// What else is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// How well it fits the query; higher is better.
    pub score: Option<f64>,
    /// The file, address or collection it came from.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::text::opt_arc_str"
    )]
    pub source: Option<Arc<str>>,
    /// Where in the source it stood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// Fields that we do not know, kept as they came.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A place inside a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Which piece of the source, from 0.
    pub chunk: u32,
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

impl Document {
    /// A document of this text alone.
    pub fn new(text: impl Into<Body>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Sets where it came from.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Arc<str>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Sets how well it fits.
    #[must_use]
    pub fn with_score(mut self, score: f64) -> Self {
        self.score = Some(score);
        self
    }

    /// Sets its name.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Adds one thing that is known of it.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// The text, if it is at hand.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.text.as_str()
    }

    /// Where it came from, wherever the retriever wrote it.
    #[must_use]
    pub fn origin(&self) -> Option<&str> {
        self.source
            .as_deref()
            .or_else(|| self.metadata.as_ref()?.get("source")?.as_str())
            .or(self.id.as_deref())
    }
}
