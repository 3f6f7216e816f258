//! Replies to prompts of a certain kind.

use std::sync::atomic::{AtomicU64, Ordering};

use regex::Regex;
use sifaka_core::{Error, Result};

use super::reply::Reply;

/// A condition on the prompt, and the reply to prompts that meet it.
#[derive(Debug)]
pub(super) struct Rule {
    when: When,
    pub(super) reply: Reply,
    used: AtomicU64,
}

#[derive(Debug)]
enum When {
    Contains(String),
    Matches(Regex),
}

impl Rule {
    /// When the prompt has this in it.
    pub(super) fn contains(text: String, reply: Reply) -> Self {
        Self { when: When::Contains(text), reply, used: AtomicU64::new(0) }
    }

    /// When the prompt matches this pattern.
    pub(super) fn matches(pattern: &str, reply: Reply) -> Result<Self> {
        let regex = Regex::new(pattern).map_err(|error| {
            Error::configuration("model mock", format!("the rule /{pattern}/: {error}"))
                .suggest("mend the pattern, or write the text to look for without slashes")
        })?;
        Ok(Self { when: When::Matches(regex), reply, used: AtomicU64::new(0) })
    }

    /// As it is written in a file: a text, or a pattern between slashes.
    pub(super) fn parse(when: &str, reply: Reply) -> Result<Self> {
        match when.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
            Some(pattern) => Self::matches(pattern, reply),
            None => Ok(Self::contains(when.to_owned(), reply)),
        }
    }

    /// The reply, if the prompt fits and the rule is not spent. Counts as a use.
    pub(super) fn answer(&self, prompt: &str) -> Option<&Reply> {
        let fits = match &self.when {
            When::Contains(text) => prompt.contains(text.as_str()),
            When::Matches(regex) => regex.is_match(prompt),
        };
        if !fits {
            return None;
        }
        let Some(times) = self.reply.times else { return Some(&self.reply) };
        let used = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            (used < times).then_some(used + 1)
        });
        used.is_ok().then_some(&self.reply)
    }
}
