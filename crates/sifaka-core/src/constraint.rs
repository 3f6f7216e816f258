//! What a validator asks of the decoding itself, as data.

use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A rule about a text that a model which can be driven keeps while it writes.
///
/// The chain hands it to models that can enforce it, and validates afterwards all the same. All
/// kinds but [`Constraint::Machine`] are plain data: they can be compared, stored and checked
/// against each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Constraint {
    /// The text is JSON that fits this schema.
    JsonSchema(Arc<Value>),
    /// The whole text matches this pattern.
    Regex(Arc<str>),
    /// The text follows this grammar.
    Grammar {
        /// How the grammar is written: `lark`, `gbnf`.
        syntax: Arc<str>,
        /// The grammar.
        text: Arc<str>,
    },
    /// The text is one of these.
    Choice(Arc<[String]>),
    /// These terms do not occur.
    Forbid(Terms),
    /// These terms occur, at least so many of them.
    Require {
        /// The terms.
        terms: Terms,
        /// How many different ones; all of them if `None`.
        at_least: Option<u32>,
    },
    /// A term occurs a number of times.
    Occurrences {
        /// The term.
        term: Arc<str>,
        /// Whether it only counts as a whole word.
        whole_word: bool,
        /// Whether upper and lower case differ.
        case_sensitive: bool,
        /// How often.
        times: Range,
    },
    /// A letter occurs a number of times, case ignored.
    LetterFrequency {
        /// The letter.
        letter: char,
        /// How often.
        times: Range,
    },
    /// Only, or none of, these characters occur.
    Characters {
        /// The characters.
        set: Arc<str>,
        /// Whether they are the only ones allowed, rather than the ones refused.
        only: bool,
    },
    /// The text is in this language, by its ISO 639-1 code.
    Language(Arc<str>),
    /// How letters are cased.
    Case(Case),
    /// Words in capitals occur a number of times.
    CapitalWords(Range),
    /// The text begins so.
    StartsWith(Arc<str>),
    /// The text ends so.
    EndsWith(Arc<str>),
    /// A number of some unit.
    Count {
        /// Of what.
        unit: Unit,
        /// How many.
        range: Range,
    },
    /// The text has parts that begin with a marker and a number, as "SECTION 1".
    Sections {
        /// The marker.
        marker: Arc<str>,
        /// How many parts.
        range: Range,
    },
    /// Lines that begin with `* ` or `- `.
    Bullets(Range),
    /// Parts between single or double asterisks.
    Highlights(Range),
    /// Parts between square brackets.
    Placeholders(Range),
    /// A title between double angle brackets.
    Title,
    /// A postscript that begins with this marker, at the end.
    Postscript(Arc<str>),
    /// Parts that stand between separators.
    Parts {
        /// What stands between two parts.
        separator: Arc<str>,
        /// How many parts.
        range: Range,
    },
    /// A paragraph, counted from 1, begins with a word.
    ParagraphStart {
        /// How many paragraphs there are.
        paragraphs: u32,
        /// Which one.
        nth: u32,
        /// The word.
        word: Arc<str>,
    },
    /// The whole text stands in double quotation marks.
    Quoted,
    /// The text begins with the request, word for word.
    RepeatPrompt(Arc<str>),
    /// No sequence of this many words occurs twice.
    NoRepeatedNgram(u32),
    /// A rule of the user's own.
    #[serde(serialize_with = "machine_name")]
    Machine(Arc<dyn Machine>),
}

fn machine_name<S: serde::Serializer>(machine: &Arc<dyn Machine>, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(machine.name())
}

/// Words or phrases to look for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// The terms.
    pub terms: Arc<[String]>,
    /// Whether they only count as whole words.
    pub whole_word: bool,
    /// Whether upper and lower case differ.
    pub case_sensitive: bool,
}

/// How letters are cased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Case {
    /// All capitals.
    Upper,
    /// No capitals.
    Lower,
}

/// Something that can be counted in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unit {
    /// Characters as a reader sees them.
    Characters,
    /// Words.
    Words,
    /// Sentences.
    Sentences,
    /// Paragraphs.
    Paragraphs,
    /// Lines.
    Lines,
    /// The model's tokens.
    Tokens,
}

impl Unit {
    /// Its plural, as it stands in options and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Characters => "characters",
            Self::Words => "words",
            Self::Sentences => "sentences",
            Self::Paragraphs => "paragraphs",
            Self::Lines => "lines",
            Self::Tokens => "tokens",
        }
    }
}

/// An inclusive range of counts, open at either end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The least, 0 if not given.
    #[serde(default)]
    pub min: u64,
    /// The most, if there is a most.
    #[serde(default)]
    pub max: Option<u64>,
}

impl Range {
    /// At least so many.
    #[must_use]
    pub const fn at_least(min: u64) -> Self {
        Self { min, max: None }
    }

    /// At most so many.
    #[must_use]
    pub const fn at_most(max: u64) -> Self {
        Self { min: 0, max: Some(max) }
    }

    /// Exactly so many.
    #[must_use]
    pub const fn exactly(count: u64) -> Self {
        Self { min: count, max: Some(count) }
    }

    /// From any of Rust's ranges: `50..=200`, `50..`, `..200`.
    pub fn from_bounds(range: impl RangeBounds<u64>) -> Self {
        let min = match range.start_bound() {
            Bound::Included(&n) => n,
            Bound::Excluded(&n) => n.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let max = match range.end_bound() {
            Bound::Included(&n) => Some(n),
            Bound::Excluded(&n) => Some(n.saturating_sub(1)),
            Bound::Unbounded => None,
        };
        Self { min, max }
    }

    /// Reads `50..200` (both ends count), `50..`, `..200` or `120`.
    ///
    /// # Errors
    /// A sentence saying what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let number = |part: &str| {
            part.trim()
                .replace('_', "")
                .parse::<u64>()
                .map_err(|_| format!("{text:?} is not a range; write 50..200, 50.., ..200 or 120"))
        };
        let range = match text.split_once("..") {
            None => Self::exactly(number(text)?),
            Some((min, max)) => {
                let max = max.trim_start_matches('=').trim();
                Self {
                    min: if min.trim().is_empty() { 0 } else { number(min)? },
                    max: if max.is_empty() { None } else { Some(number(max)?) },
                }
            }
        };
        match range.max {
            Some(max) if max < range.min => Err(format!("{text:?} ends before it begins")),
            _ => Ok(range),
        }
    }

    /// Whether `count` lies in it.
    #[must_use]
    pub fn contains(&self, count: u64) -> bool {
        count >= self.min && self.max.is_none_or(|max| count <= max)
    }

    /// What both allow; `None` if nothing.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        let min = self.min.max(other.min);
        let max = match (self.max, other.max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        max.is_none_or(|max| min <= max).then_some(Self { min, max })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (min, Some(max)) if min == max => write!(f, "exactly {min}"),
            (0, Some(max)) => write!(f, "at most {max}"),
            (min, Some(max)) => write!(f, "{min} to {max}"),
            (min, None) => write!(f, "at least {min}"),
        }
    }
}

/// A rule of the user's own that guides decoding: implement this, and [`MachineState`].
pub trait Machine: Send + Sync + fmt::Debug {
    /// Its name, as it stands in the record.
    fn name(&self) -> &str;

    /// The state before the first character.
    fn start(&self) -> Box<dyn MachineState>;
}

/// Where a [`Machine`] stands in a text. Pure: no clock, no I/O; a fork goes its own way.
pub trait MachineState: Send + Sync + fmt::Debug {
    /// Takes the next piece of text. `false` means that no continuation can satisfy the rule any
    /// more; the state is not used after that.
    fn step(&mut self, text: &str) -> bool;

    /// Whether the text may end here.
    fn may_end(&self) -> bool;

    /// How many characters are needed at least before it may.
    fn owed(&self) -> usize;

    /// What should stand next, if the rule knows.
    fn wants(&self) -> Option<String> {
        None
    }

    /// A copy that goes its own way.
    fn fork(&self) -> Box<dyn MachineState>;
}

impl PartialEq for dyn Machine {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_read_as_they_are_written() {
        assert_eq!(Range::parse("50..200"), Ok(Range { min: 50, max: Some(200) }));
        assert_eq!(Range::parse("50.."), Ok(Range::at_least(50)));
        assert_eq!(Range::parse("..=200"), Ok(Range::at_most(200)));
        assert_eq!(Range::parse("7"), Ok(Range::exactly(7)));
        assert!(Range::parse("9..3").unwrap_err().contains("ends before"));
        assert!(Range::parse("many").is_err());
        assert_eq!(Range::from_bounds(3..5), Range { min: 3, max: Some(4) });
        assert_eq!(Range::at_least(5).intersect(&Range::at_most(4)), None);
    }
}
