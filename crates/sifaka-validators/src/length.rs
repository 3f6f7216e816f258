//! How long a text is.

use std::ops::RangeBounds;
use std::sync::Arc;

use async_trait::async_trait;
use sifaka_core::constraint::{Range, Unit};
use sifaka_core::model::TokenCount;
use sifaka_core::spec::OptionReader;
use sifaka_core::validator::Watch;
use sifaka_core::{Constraint, Context, Draft, Result, ValidationResult, Validator};

use crate::tally::{Tally, nearness};
use crate::text::{blocks, characters, sentences, words};

/// Checks how many characters, words, sentences, paragraphs, lines or tokens a text has.
///
/// What these are is said in [`text`](crate::text). Tokens are counted by the chain's model; the
/// detail `tokens_exact` says whether it counted or guessed. The score is 1 inside the range and
/// falls with the distance from it.
///
/// While a text is written, characters and words are watched: once it has more than the most,
/// nothing can make it pass, and it is stopped.
///
/// ```
/// use sifaka_core::constraint::Unit;
/// use sifaka_validators::Length;
///
/// let tweet = Length::characters(..=280).and(Unit::Sentences, 1..=3);
/// ```
#[derive(Clone, Debug)]
pub struct Length {
    bounds: Vec<(Unit, Range)>,
}

impl Length {
    /// So many of this unit.
    pub fn of(unit: Unit, range: impl RangeBounds<u64>) -> Self {
        Self { bounds: vec![(unit, Range::from_bounds(range))] }
    }

    /// So many characters as a reader sees them.
    pub fn characters(range: impl RangeBounds<u64>) -> Self {
        Self::of(Unit::Characters, range)
    }

    /// So many words.
    pub fn words(range: impl RangeBounds<u64>) -> Self {
        Self::of(Unit::Words, range)
    }

    /// So many sentences.
    pub fn sentences(range: impl RangeBounds<u64>) -> Self {
        Self::of(Unit::Sentences, range)
    }

    /// So many paragraphs.
    pub fn paragraphs(range: impl RangeBounds<u64>) -> Self {
        Self::of(Unit::Paragraphs, range)
    }

    /// So many lines.
    pub fn lines(range: impl RangeBounds<u64>) -> Self {
        Self::of(Unit::Lines, range)
    }

    /// So many tokens of the chain's model.
    pub fn tokens(range: impl RangeBounds<u64>) -> Self {
        Self::of(Unit::Tokens, range)
    }

    /// And so many of another unit.
    #[must_use]
    pub fn and(mut self, unit: Unit, range: impl RangeBounds<u64>) -> Self {
        self.bounds.push((unit, Range::from_bounds(range)));
        self
    }
}

/// `38 words`, `1 word`.
fn amount(count: u64, unit: Unit) -> String {
    let name = unit.name();
    let name = if count == 1 { name.trim_end_matches('s') } else { name };
    format!("{count} {name}")
}

/// `38 words, at least 50 asked`, and what to do about it.
fn complaint(count: u64, unit: Unit, range: Range) -> (String, String) {
    let there = amount(count, unit);
    let (bound, to_do) = match range.max {
        Some(max) if count > max => {
            (format!("at most {max}"), format!("cut about {}", amount(count - max, unit)))
        }
        _ => {
            let missing = amount(range.min.saturating_sub(count), unit);
            let missing = missing.replacen(' ', " more ", 1);
            (format!("at least {}", range.min), format!("write about {missing}"))
        }
    };
    let bound = if range.max == Some(range.min) { format!("exactly {}", range.min) } else { bound };
    (format!("{there}, {bound} asked"), to_do)
}

fn count(draft: &Draft<'_>, unit: Unit) -> TokenCount {
    let text = draft.text;
    TokenCount::exact(match unit {
        Unit::Characters => characters::count(text),
        Unit::Words => words::count(text),
        Unit::Sentences => sentences::count(text),
        Unit::Paragraphs => blocks::paragraphs(text),
        Unit::Lines => blocks::lines(text),
        // Tokens, and whatever unit is only a model's to count.
        _ => {
            let guess = || TokenCount::estimate(text);
            return draft.model.map_or_else(guess, |model| model.count_tokens(text));
        }
    })
}

#[async_trait]
impl Validator for Length {
    fn name(&self) -> &str {
        "length"
    }

    async fn validate(&self, _ctx: &Context, draft: &Draft<'_>) -> Result<ValidationResult> {
        let mut tally = Tally::default();
        let mut result = ValidationResult::default();
        let mut message = String::new();
        for (unit, range) in &self.bounds {
            let counted = count(draft, *unit);
            let inside = range.contains(counted.tokens);
            tally.add(inside, nearness(counted.tokens, *range));
            if !message.is_empty() {
                message.push_str(", ");
            }
            message.push_str(&amount(counted.tokens, *unit));
            let details = result.details.get_or_insert_default();
            details.insert(unit.name().to_owned(), counted.tokens.into());
            if *unit == Unit::Tokens {
                details.insert("tokens_exact".to_owned(), counted.exact.into());
            }
            if !inside {
                let (issue, suggestion) = complaint(counted.tokens, *unit, *range);
                result.issues.push(issue);
                result.suggestions.push(suggestion);
            }
        }
        result.message = Arc::from(message);
        tally.conclude(&mut result);
        Ok(result)
    }

    fn constraints(&self) -> Vec<Constraint> {
        let count =
            |(unit, range): &(Unit, Range)| Constraint::Count { unit: *unit, range: *range };
        self.bounds.iter().map(count).collect()
    }

    fn watch(&self) -> Option<Box<dyn Watch>> {
        let watched: Vec<Counted> = self
            .bounds
            .iter()
            .filter_map(|(unit, range)| {
                let counter = match unit {
                    Unit::Characters => Counter::Characters(characters::Counter::default()),
                    Unit::Words => Counter::Words(words::Counter::default()),
                    _ => return None,
                };
                Some(Counted { counter, unit: *unit, range: *range, max: range.max? })
            })
            .collect();
        (!watched.is_empty()).then(|| Box::new(LengthWatch { watched }) as Box<dyn Watch>)
    }
}

/// Stops a text that has more than the most. Both counts never fall, so that is for good.
struct LengthWatch {
    watched: Vec<Counted>,
}

struct Counted {
    counter: Counter,
    unit: Unit,
    range: Range,
    max: u64,
}

enum Counter {
    Characters(characters::Counter),
    Words(words::Counter),
}

impl Watch for LengthWatch {
    fn push(&mut self, text: &str) -> Option<String> {
        self.watched.iter_mut().find_map(|Counted { counter, unit, range, max }| {
            let count = match counter {
                Counter::Characters(counter) => {
                    counter.push(text);
                    counter.count()
                }
                Counter::Words(counter) => {
                    counter.push(text);
                    counter.count()
                }
            };
            (count > *max).then(|| complaint(count, *unit, *range).0)
        })
    }
}

/// A length check from its options.
pub(crate) fn from_options(reader: &mut OptionReader<'_>) -> Option<Length> {
    let mut bounds = Vec::new();
    for (key, unit) in [
        ("words", Unit::Words),
        ("characters", Unit::Characters),
        ("chars", Unit::Characters),
        ("sentences", Unit::Sentences),
        ("paragraphs", Unit::Paragraphs),
        ("lines", Unit::Lines),
        ("tokens", Unit::Tokens),
    ] {
        bounds.extend(reader.range(key).map(|range| (unit, range)));
    }
    (!bounds.is_empty()).then_some(Length { bounds })
}
