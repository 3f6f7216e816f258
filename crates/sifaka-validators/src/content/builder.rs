//! Putting a content check together.

use std::collections::HashSet;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use sifaka_core::spec::OptionReader;
use sifaka_core::{Error, Problem, Result};

use super::{Content, Inner, is_word};
use crate::text::fold;

/// Up to how many terms the quick search is quick.
const FEW: usize = 64;

/// Makes a [`Content`] check; see [`Content::builder`].
#[derive(Clone, Debug, Default)]
pub struct ContentBuilder {
    require: Vec<String>,
    forbid: Vec<String>,
    at_least: Option<u32>,
    whole_word: bool,
    ignore_case: bool,
}

impl ContentBuilder {
    /// These terms occur: all of them, or as many as [`at_least`](Self::at_least) says.
    #[must_use]
    pub fn require<T: Into<String>>(mut self, terms: impl IntoIterator<Item = T>) -> Self {
        self.require.extend(terms.into_iter().map(Into::into));
        self
    }

    /// None of these terms occurs.
    #[must_use]
    pub fn forbid<T: Into<String>>(mut self, terms: impl IntoIterator<Item = T>) -> Self {
        self.forbid.extend(terms.into_iter().map(Into::into));
        self
    }

    /// So many different required terms are enough.
    #[must_use]
    pub fn at_least(mut self, terms: u32) -> Self {
        self.at_least = Some(terms);
        self
    }

    /// One required term is enough.
    #[must_use]
    pub fn any(self) -> Self {
        self.at_least(1)
    }

    /// Terms only count as whole words: no letter, digit, mark or underscore beside them.
    #[must_use]
    pub fn whole_word(mut self) -> Self {
        self.whole_word = true;
        self
    }

    /// Upper and lower case are alike, in every script that has them.
    #[must_use]
    pub fn ignore_case(mut self) -> Self {
        self.ignore_case = true;
        self
    }

    /// The check.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](sifaka_core::ErrorKind::Configuration) with every problem: no
    /// terms, an empty one, one that is required and forbidden, more asked than there are.
    pub fn build(self) -> Result<Content> {
        self.try_build().map_err(|problems| {
            let problems = problems
                .into_iter()
                .map(|(key, message)| Problem::new(key, message, "mend the list of terms"))
                .collect();
            Error::problems("check content", problems)
        })
    }

    fn try_build(self) -> Result<Content, Vec<(&'static str, String)>> {
        let ascii = self.require.iter().chain(&self.forbid).all(|term| term.is_ascii());
        let folds = self.ignore_case && !ascii;
        let key = |term: &str| if self.ignore_case { fold(term) } else { term.to_owned() };
        let mut problems = Vec::new();
        let mut seen = HashSet::new();
        let mut terms = Vec::new();
        for term in self.require {
            if term.trim().is_empty() {
                problems.push(("require", "a term is empty".to_owned()));
            } else if seen.insert(key(&term)) {
                terms.push(term);
            }
        }
        let required = terms.len();
        let must: HashSet<String> = seen.clone();
        for term in self.forbid {
            if term.trim().is_empty() {
                problems.push(("forbid", "a term is empty".to_owned()));
            } else if must.contains(&key(&term)) {
                problems.push(("forbid", format!("{term:?} is required and forbidden")));
            } else if seen.insert(key(&term)) {
                terms.push(term);
            }
        }
        match self.at_least {
            _ if terms.is_empty() && problems.is_empty() => {
                problems.push(("require", "there are no terms to look for".to_owned()));
            }
            Some(n) if n as usize > required => {
                let message = format!("{n} terms are asked for and {required} are given");
                problems.push(("at_least", message));
            }
            _ => {}
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let searched: Vec<String> =
            terms.iter().map(|term| if folds { fold(term) } else { term.clone() }).collect();
        let build = |kind| {
            AhoCorasick::builder()
                .match_kind(kind)
                .ascii_case_insensitive(self.ignore_case && ascii)
                .build(&searched)
                .map_err(|error| vec![("terms", error.to_string())])
        };
        let automaton = build(MatchKind::Standard)?;
        // Only this kind looks at many bytes at a time, and only for few terms.
        let is_few = searched.len() <= FEW;
        let quick = is_few.then(|| build(MatchKind::LeftmostFirst)).transpose()?;
        let edges = searched.iter().map(|term| {
            (
                term.chars().next().is_some_and(is_word),
                term.chars().next_back().is_some_and(is_word),
            )
        });
        Ok(Content {
            inner: Arc::new(Inner {
                required,
                at_least: self.at_least,
                whole_word: self.whole_word,
                ignore_case: self.ignore_case,
                folds,
                automaton,
                quick,
                edges: edges.collect(),
                longest: searched.iter().map(String::len).max().unwrap_or(0),
                terms,
            }),
        })
    }
}

/// A content check from its options.
pub(crate) fn from_options(reader: &mut OptionReader<'_>) -> Option<Content> {
    let (require, forbid) = (reader.texts("require"), reader.texts("forbid"));
    let mut builder = Content::builder()
        .require(require.into_iter().flatten())
        .forbid(forbid.into_iter().flatten());
    builder.whole_word = reader.flag("whole_word").unwrap_or(false);
    builder.ignore_case = reader.flag("ignore_case").unwrap_or(false);
    if let Some(n) = reader.count("at_least") {
        builder.at_least = Some(u32::try_from(n).unwrap_or(u32::MAX));
    }
    if reader.flag("any").unwrap_or(false) {
        if builder.at_least.is_some() {
            reader.complain("any", "any and at_least say the same thing twice");
        }
        builder = builder.any();
    }
    match builder.try_build() {
        Ok(content) => Some(content),
        Err(problems) => {
            problems.into_iter().for_each(|(key, message)| reader.complain(key, message));
            None
        }
    }
}
