//! Terms that must or must not occur.

mod builder;
mod watch;

use std::borrow::Cow;
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use async_trait::async_trait;
use serde_json::{Value, json};
use sifaka_core::constraint::Terms;
use sifaka_core::validator::Watch;
use sifaka_core::{Constraint, Context, Draft, Result, ValidationResult, Validator};

use crate::tally::Tally;
use crate::text::{excerpt, fold, place};

pub use builder::ContentBuilder;
pub(crate) use builder::from_options;

/// How many terms are named in issues.
const NAMED: usize = 10;

/// Checks that terms occur, or do not. Looks for thousands of them in one pass.
///
/// ```
/// use sifaka_validators::Content;
///
/// let no_names = Content::forbid(["Alice", "Bob"])?;
/// let two_of_three = Content::builder()
///     .require(["lemur", "fossa", "tenrec"])
///     .at_least(2)
///     .whole_word()
///     .ignore_case()
///     .build()?;
/// # Ok::<(), sifaka_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Content {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Required terms, then forbidden ones, as the user wrote them.
    terms: Vec<String>,
    required: usize,
    /// How many different required ones are asked for; `None` for all.
    at_least: Option<u32>,
    whole_word: bool,
    ignore_case: bool,
    /// Whether text is folded before it is searched: case is ignored and not all is ASCII.
    folds: bool,
    /// Over the terms, folded if text is; finds occurrences that overlap.
    automaton: AhoCorasick,
    /// The same, but only says quickly whether there is any; for few terms.
    quick: Option<AhoCorasick>,
    /// For each term, whether its first and last character are of a word.
    edges: Vec<(bool, bool)>,
    /// The longest term in bytes, as searched for.
    longest: usize,
}

/// An occurrence, in the text as it is searched.
#[derive(Clone, Copy, Debug)]
struct Hit {
    term: usize,
    start: usize,
    end: usize,
}

impl Content {
    /// Starts a check with options.
    #[must_use]
    pub fn builder() -> ContentBuilder {
        ContentBuilder::default()
    }

    /// All of these terms occur.
    ///
    /// # Errors
    /// As [`ContentBuilder::build`].
    pub fn require<T: Into<String>>(terms: impl IntoIterator<Item = T>) -> Result<Self> {
        Self::builder().require(terms).build()
    }

    /// None of these terms occurs.
    ///
    /// # Errors
    /// As [`ContentBuilder::build`].
    pub fn forbid<T: Into<String>>(terms: impl IntoIterator<Item = T>) -> Result<Self> {
        Self::builder().forbid(terms).build()
    }
}

fn is_word(c: char) -> bool {
    // Without its tables the crate cannot say; ours come with them.
    regex_syntax::try_is_word_character(c).unwrap_or_else(|_| c.is_alphanumeric())
}

impl Inner {
    fn searched<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.folds { Cow::Owned(fold(text)) } else { Cow::Borrowed(text) }
    }

    /// All occurrences in a text as it is searched.
    fn hits<'a>(&'a self, searched: &'a str) -> impl Iterator<Item = Hit> + 'a {
        self.automaton
            .find_overlapping_iter(searched)
            .map(|found| Hit {
                term: found.pattern().as_usize(),
                start: found.start(),
                end: found.end(),
            })
            .filter(|hit| !self.whole_word || self.stands_alone(searched, *hit))
    }

    /// Whether no word goes on beyond either end of an occurrence.
    fn stands_alone(&self, searched: &str, hit: Hit) -> bool {
        let (first, last) = self.edges[hit.term];
        let before = || searched[..hit.start].chars().next_back();
        let after = || searched[hit.end..].chars().next();
        !(first && before().is_some_and(is_word) || last && after().is_some_and(is_word))
    }

    /// How many different required terms are asked for.
    fn needed(&self) -> usize {
        self.at_least.map_or(self.required, |n| n as usize)
    }

    fn terms(&self, range: std::ops::Range<usize>) -> Terms {
        Terms {
            terms: Arc::from(&self.terms[range]),
            whole_word: self.whole_word,
            case_sensitive: !self.ignore_case,
        }
    }

    fn validate(&self, text: &str) -> ValidationResult {
        let searched = self.searched(text);
        let forbids = self.required < self.terms.len();
        let mut present = vec![false; self.required];
        let mut found = 0;
        let mut forbidden: Vec<Hit> = Vec::new();
        // Whether anything is there at all is known much sooner than what and where.
        let none = self.quick.as_ref().is_some_and(|quick| !quick.is_match(&*searched));
        let hits = (!none).then(|| self.hits(&searched));
        for hit in hits.into_iter().flatten() {
            match present.get_mut(hit.term) {
                None => forbidden.push(hit),
                Some(true) => {}
                Some(present) => {
                    *present = true;
                    found += 1;
                    if found >= self.needed() && !forbids {
                        break;
                    }
                }
            }
        }
        let mut tally = Tally::default();
        let mut result = ValidationResult::passed("every term is as asked");
        if self.required > 0 {
            self.judge_required(&present, &mut tally, &mut result);
        }
        if forbids {
            self.judge_forbidden(text, forbidden, &mut tally, &mut result);
        }
        tally.conclude(&mut result);
        result
    }

    #[expect(clippy::cast_precision_loss, reason = "a score")]
    fn judge_required(&self, present: &[bool], tally: &mut Tally, result: &mut ValidationResult) {
        let (found, needed) = (present.iter().filter(|there| **there).count(), self.needed());
        tally.add(found >= needed, found as f64 / needed.max(1) as f64);
        if found >= needed {
            return;
        }
        let missing: Vec<&String> = self
            .terms
            .iter()
            .zip(present)
            .filter(|(_, there)| !**there)
            .map(|(term, _)| term)
            .collect();
        let names = list(missing.iter().map(|term| excerpt(term)));
        let number = present.len();
        if self.at_least.is_some() {
            let terms = if number == 1 { "term is" } else { "terms are" };
            result.issues.push(format!(
                "{found} of {number} {terms} there, at least {needed} asked; missing: {names}"
            ));
            result.suggestions.push(format!("use {} more of: {names}", needed - found));
        } else {
            result.issues.push(format!("missing: {names}"));
            result.suggestions.push(format!("use {names}"));
        }
        let details = result.details.get_or_insert_default();
        details.insert("missing".to_owned(), json!(missing));
    }

    fn judge_forbidden(
        &self,
        text: &str,
        mut hits: Vec<Hit>,
        tally: &mut Tally,
        result: &mut ValidationResult,
    ) {
        #[expect(clippy::cast_precision_loss, reason = "a score")]
        tally.add(hits.is_empty(), 1.0 / (1.0 + hits.len() as f64));
        if hits.is_empty() {
            return;
        }
        // By term, and those of a term by place; then the terms by where they first stand.
        hits.sort_unstable_by_key(|hit| (hit.term, hit.start));
        let mut terms: Vec<(Hit, usize)> =
            hits.chunk_by(|a, b| a.term == b.term).map(|same| (same[0], same.len())).collect();
        terms.sort_by_key(|(first, _)| first.start);
        let mut found = Vec::new();
        for (first, count) in terms.iter().take(NAMED) {
            let term = &self.terms[first.term];
            let place = place(text, self.original(text, first.start));
            let times = match count {
                1 => format!("at {place}"),
                _ => format!("{count} times, first at {place}"),
            };
            result.issues.push(format!("forbidden: {} {times}", excerpt(term)));
            found.push(json!({
                "term": term, "count": count, "line": place.line, "column": place.column,
            }));
        }
        if let Some(more) = terms.len().checked_sub(NAMED).filter(|more| *more > 0) {
            result.issues.push(format!("and {more} more forbidden terms"));
        }
        let names = list(terms.iter().map(|(first, _)| excerpt(&self.terms[first.term])));
        result.suggestions.push(format!("remove or replace {names}"));
        result.details.get_or_insert_default().insert("forbidden".to_owned(), Value::Array(found));
    }

    /// The byte of the text that stands at a byte of what was searched.
    fn original(&self, text: &str, searched: usize) -> usize {
        if !self.folds {
            return searched;
        }
        let mut at = 0;
        let mut buffer = [0; 4];
        for (byte, c) in text.char_indices() {
            if at >= searched {
                return byte;
            }
            at += fold(c.encode_utf8(&mut buffer)).len();
        }
        text.len()
    }
}

/// The first of these, and how many more there are.
fn list(mut names: impl Iterator<Item = String>) -> String {
    let mut out: Vec<String> = names.by_ref().take(NAMED).collect();
    match names.count() {
        0 => {}
        more => out.push(format!("{more} more")),
    }
    out.join(", ")
}

#[async_trait]
impl Validator for Content {
    fn name(&self) -> &str {
        "content"
    }

    async fn validate(&self, _ctx: &Context, draft: &Draft<'_>) -> Result<ValidationResult> {
        Ok(self.inner.validate(draft.text))
    }

    fn constraints(&self) -> Vec<Constraint> {
        let inner = &self.inner;
        let mut constraints = Vec::new();
        if inner.required > 0 {
            constraints.push(Constraint::Require {
                terms: inner.terms(0..inner.required),
                at_least: inner.at_least,
            });
        }
        if inner.required < inner.terms.len() {
            constraints.push(Constraint::Forbid(inner.terms(inner.required..inner.terms.len())));
        }
        constraints
    }

    fn watch(&self) -> Option<Box<dyn Watch>> {
        let forbids = self.inner.required < self.inner.terms.len();
        forbids
            .then(|| Box::new(watch::ContentWatch::new(Arc::clone(&self.inner))) as Box<dyn Watch>)
    }
}
