//! Forbidden patterns in a text that is still being written.

use std::sync::Arc;

use regex::Regex;
use sifaka_core::validator::Watch;

use super::Rule;
use crate::text::{excerpt, place};

/// Stops a text once a forbidden pattern matches for good.
pub(super) struct PatternWatch {
    text: String,
    rules: Vec<Watched>,
}

struct Watched {
    pattern: Arc<str>,
    regex: Regex,
    longest: Option<usize>,
    /// How much of the text was searched.
    searched: usize,
}

impl PatternWatch {
    /// Of those rules whose matches cannot be undone; `None` if there are none.
    pub(super) fn new<'a>(rules: impl Iterator<Item = &'a Rule>) -> Option<Self> {
        let rules: Vec<Watched> = rules
            .filter(|rule| rule.shape.final_)
            .map(|rule| Watched {
                pattern: Arc::clone(&rule.pattern),
                regex: rule.regex.clone(),
                longest: rule.shape.longest,
                searched: 0,
            })
            .collect();
        (!rules.is_empty()).then(|| Self { text: String::new(), rules })
    }
}

impl Watched {
    /// Where to search from now on; `None` when it is not yet worth it.
    fn from(&self, length: usize) -> Option<usize> {
        match self.longest {
            // A match that was not there before ends in the new piece.
            Some(longest) => Some(self.searched.saturating_sub(longest)),
            // One without bound may begin anywhere. Searching only when a quarter was added keeps
            // the whole linear, at the price of stopping a little late.
            None => (length - self.searched >= (length / 4).max(64)).then_some(0),
        }
    }
}

impl Watch for PatternWatch {
    fn push(&mut self, piece: &str) -> Option<String> {
        self.text.push_str(piece);
        let text = self.text.as_str();
        for rule in &mut self.rules {
            let Some(from) = rule.from(text.len()) else { continue };
            rule.searched = text.len();
            if let Some(found) = rule.regex.find_at(text, text.floor_char_boundary(from)) {
                let (pattern, what) = (&rule.pattern, excerpt(found.as_str()));
                let place = place(text, found.start());
                return Some(format!("/{pattern}/ must not match: {what} at {place}"));
            }
        }
        None
    }
}
