//! Patterns that must, must not, or so many times occur.

mod shape;
mod watch;

use std::ops::RangeBounds;
use std::sync::Arc;

use async_trait::async_trait;
use regex::{Regex, RegexBuilder};
use serde_json::Value;
use sifaka_core::constraint::Range;
use sifaka_core::spec::OptionReader;
use sifaka_core::validator::Watch;
use sifaka_core::{Constraint, Context, Draft, Error, Result, Spec, ValidationResult, Validator};

use crate::tally::{Tally, nearness};
use crate::text::{excerpt, place};
use shape::Shape;
use watch::PatternWatch;

/// The largest program a pattern may become, in bytes.
const SIZE_LIMIT: usize = 10 * 1024 * 1024;

/// How many places of a pattern's matches are named.
const PLACES: usize = 5;

/// Checks that patterns occur, do not occur, or occur a number of times.
///
/// Patterns are those of the `regex` crate: no look-around, no back-references, and time linear
/// in the text, whatever the pattern. Matches are counted without overlap.
///
/// While a text is written a forbidden pattern is watched, if a match can be trusted before the
/// text is over: patterns with `$`, `\z` or a word boundary are not, since what follows decides.
/// A required pattern that is anchored at both ends, `^…$`, is offered to models that can be
/// guided.
///
/// ```
/// use sifaka_validators::Pattern;
///
/// let no_todo = Pattern::forbid(r"TODO|FIXME")?;
/// let two_to_four_links = Pattern::counted(r"https?://\S+", 2..=4)?;
/// # Ok::<(), sifaka_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pattern {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    pattern: Arc<str>,
    regex: Regex,
    shape: Shape,
    ignore_case: bool,
    want: Want,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    Require,
    Forbid,
    Count(Range),
}

impl Pattern {
    fn of(pattern: &str, want: Want) -> Result<Self> {
        let rule = Rule::compile(pattern, want, false).map_err(|message| {
            Error::configuration("check regex", message)
                .suggest("mend the pattern where the mark points")
        })?;
        Ok(Self { rules: vec![rule] })
    }

    /// The pattern matches somewhere.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](sifaka_core::ErrorKind::Configuration) when the pattern is
    /// malformed or too large, with the place.
    pub fn require(pattern: &str) -> Result<Self> {
        Self::of(pattern, Want::Require)
    }

    /// The pattern matches nowhere.
    ///
    /// # Errors
    /// As [`require`](Self::require).
    pub fn forbid(pattern: &str) -> Result<Self> {
        Self::of(pattern, Want::Forbid)
    }

    /// The pattern matches so many times.
    ///
    /// # Errors
    /// As [`require`](Self::require).
    pub fn counted(pattern: &str, times: impl RangeBounds<u64>) -> Result<Self> {
        Self::of(pattern, Want::Count(Range::from_bounds(times)))
    }

    /// All that this and `other` ask, as one check.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.rules.extend(other.rules);
        self
    }

    /// The same with upper and lower case alike.
    ///
    /// # Errors
    /// As [`require`](Self::require), when that makes a pattern too large.
    pub fn ignoring_case(self) -> Result<Self> {
        let rules = self.rules.iter().map(|rule| {
            Rule::compile(&rule.pattern, rule.want, true).map_err(|message| {
                Error::configuration("check regex", message).suggest("use a simpler pattern")
            })
        });
        Ok(Self { rules: rules.collect::<Result<_>>()? })
    }
}

impl Rule {
    /// The rule, or a sentence with a mark at what is wrong.
    fn compile(pattern: &str, want: Want, ignore_case: bool) -> Result<Self, String> {
        let regex = RegexBuilder::new(pattern)
            .case_insensitive(ignore_case)
            .size_limit(SIZE_LIMIT)
            .dfa_size_limit(SIZE_LIMIT)
            .build()
            .map_err(|error| error.to_string())?;
        let shape = Shape::of(pattern, ignore_case);
        Ok(Self { pattern: Arc::from(pattern), regex, shape, ignore_case, want })
    }

    /// Checks one rule: whether it holds, its score, and what to say if not.
    fn check(&self, text: &str) -> Checked {
        let pattern = &self.pattern;
        if self.want == Want::Require {
            if self.regex.is_match(text) {
                return Ok(());
            }
            let issue = format!("nothing matches /{pattern}/");
            return Err((0.0, (issue, format!("add a part that matches /{pattern}/"))));
        }
        let mut first = Vec::new();
        let mut count = 0_u64;
        for found in self.regex.find_iter(text) {
            if first.len() < PLACES {
                first.push(found);
            }
            count += 1;
        }
        let mut places: Vec<String> = first
            .iter()
            .map(|found| format!("{} at {}", excerpt(found.as_str()), place(text, found.start())))
            .collect();
        let more = count.saturating_sub(PLACES as u64);
        if more > 0 {
            places.push(format!("and {more} more"));
        }
        let places = places.join(", ");
        match self.want {
            Want::Forbid if count == 0 => Ok(()),
            Want::Count(range) if range.contains(count) => Ok(()),
            Want::Count(range) => {
                let score = nearness(count, range);
                let colon = if count == 0 { "" } else { ": " };
                let issue =
                    format!("/{pattern}/ matches {}, {range} asked{colon}{places}", plural(count));
                let to_do = if count < range.min {
                    format!("add {} more that match /{pattern}/", range.min - count)
                } else {
                    let over = count - range.max.unwrap_or(count);
                    format!("take out {over} of what matches /{pattern}/")
                };
                Err((score, (issue, to_do)))
            }
            _ => {
                #[expect(clippy::cast_precision_loss, reason = "a score")]
                let score = 1.0 / (1.0 + count as f64);
                let issue = format!("/{pattern}/ must not match: {places}");
                let to_do = format!("remove or reword what matches /{pattern}/: {places}");
                Err((score, (issue, to_do)))
            }
        }
    }

    /// The constraint it offers, for a text that must match as a whole.
    fn constraint(&self) -> Option<Constraint> {
        let whole = self.shape.whole.filter(|_| self.want == Want::Require)?;
        let inner = &self.pattern[whole.0..whole.1];
        let flag = if self.ignore_case { "?i:" } else { "?:" };
        Some(Constraint::Regex(Arc::from(format!("({flag}{inner})"))))
    }
}

type Checked = Result<(), (f64, (String, String))>;

fn plural(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

#[async_trait]
impl Validator for Pattern {
    fn name(&self) -> &str {
        "regex"
    }

    async fn validate(&self, _ctx: &Context, draft: &Draft<'_>) -> Result<ValidationResult> {
        let mut tally = Tally::default();
        let mut result = ValidationResult::passed("every pattern is as asked");
        for rule in &self.rules {
            match rule.check(draft.text) {
                Ok(()) => tally.add(true, 1.0),
                Err((score, (issue, suggestion))) => {
                    tally.add(false, score);
                    result.issues.push(issue);
                    result.suggestions.push(suggestion);
                }
            }
        }
        tally.conclude(&mut result);
        Ok(result)
    }

    fn constraints(&self) -> Vec<Constraint> {
        self.rules.iter().filter_map(Rule::constraint).collect()
    }

    fn watch(&self) -> Option<Box<dyn Watch>> {
        let forbidden = self.rules.iter().filter(|rule| rule.want == Want::Forbid);
        PatternWatch::new(forbidden).map(|watch| Box::new(watch) as Box<dyn Watch>)
    }
}

/// Patterns under a key: one text, never cut at commas, or a list.
fn patterns(spec: &Spec, reader: &mut OptionReader<'_>, key: &'static str) -> Vec<String> {
    match spec.options().get(key) {
        Some(Value::Array(_)) => reader.texts(key).unwrap_or_default(),
        _ => reader.text(key).into_iter().collect(),
    }
}

/// A pattern check from its options.
pub(crate) fn from_options(spec: &Spec, reader: &mut OptionReader<'_>) -> Option<Pattern> {
    let ignore_case = reader.flag("ignore_case").unwrap_or(false);
    let times = reader.range("count");
    let mut wanted = Vec::new();
    let mut want = |key, patterns: Vec<String>, want| {
        wanted.extend(patterns.into_iter().map(|pattern| (key, pattern, want)));
    };
    want("require", patterns(spec, reader, "require"), Want::Require);
    want("forbid", patterns(spec, reader, "forbid"), Want::Forbid);
    let matched = patterns(spec, reader, "match");
    match times {
        Some(_) if matched.is_empty() => {
            reader.complain("count", "count says how often, and match is missing, which says what");
        }
        Some(range) => want("match", matched, Want::Count(range)),
        None => want("match", matched, Want::Require),
    }
    let mut rules = Vec::new();
    for (key, pattern, want) in wanted {
        match Rule::compile(&pattern, want, ignore_case) {
            Ok(rule) => rules.push(rule),
            Err(message) => reader.complain(key, message),
        }
    }
    (!rules.is_empty()).then_some(Pattern { rules })
}
