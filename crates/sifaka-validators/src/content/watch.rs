//! Forbidden terms in a text that is still being written.

use std::sync::Arc;

use sifaka_core::validator::Watch;

use super::{Hit, Inner};
use crate::text::{excerpt, fold};

/// Stops a text once a forbidden term stands in it for good. A whole word is only known to be one
/// when the next character is there.
pub(super) struct ContentWatch {
    inner: Arc<Inner>,
    /// The end of the text as it is searched: a longest term and the character before it.
    tail: String,
}

impl ContentWatch {
    pub(super) fn new(inner: Arc<Inner>) -> Self {
        Self { inner, tail: String::new() }
    }

    /// Whether more text could still undo an occurrence.
    fn is_open(&self, hit: Hit) -> bool {
        self.inner.whole_word && hit.end == self.tail.len() && self.inner.edges[hit.term].1
    }
}

impl Watch for ContentWatch {
    fn push(&mut self, text: &str) -> Option<String> {
        let before = self.tail.len();
        if self.inner.folds {
            self.tail.push_str(&fold(text));
        } else {
            self.tail.push_str(text);
        }
        // What ended earlier was judged then, with what stood before it; that may be gone by now.
        let found = self.inner.hits(&self.tail).find(|hit| {
            hit.term >= self.inner.required && hit.end >= before && !self.is_open(*hit)
        });
        if let Some(hit) = found {
            return Some(format!("forbidden: {}", excerpt(&self.inner.terms[hit.term])));
        }
        let keep = self.inner.longest + 4;
        let from = self.tail.floor_char_boundary(self.tail.len().saturating_sub(keep));
        self.tail.drain(..from);
        None
    }
}
