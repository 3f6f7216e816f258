//! How well a record fits what is searched for.

use std::collections::{BTreeSet, HashMap};

use sifaka_core::store::{Record, Search};
use sifaka_core::{Error, Result};

/// What is searched for, and what the records it is searched among have in common.
pub(super) struct Query {
    /// Words, each with how much finding it says.
    words: HashMap<String, f64>,
    vector: Option<Vec<f32>>,
    has_text: bool,
}

impl Query {
    /// Prepares a search among `records`.
    pub(super) fn new(search: &Search, records: &[&Record]) -> Result<Self> {
        if search.text.is_none() && search.vector.is_none() {
            return Err(Error::invalid_input("memory", "there is nothing to search for")
                .suggest("give a text, a vector or both"));
        }
        if let Some(vector) = &search.vector {
            check_vector(vector, records)?;
        }
        let wanted = search.text.as_deref().map(words).unwrap_or_default();
        let mut counts: HashMap<String, usize> = wanted.into_iter().map(|w| (w, 0)).collect();
        for record in records {
            for word in record.text.as_deref().map(words).unwrap_or_default() {
                if let Some(count) = counts.get_mut(&word) {
                    *count += 1;
                }
            }
        }
        let weigh = |(word, count)| (word, rarity(records.len(), count));
        Ok(Self {
            words: counts.into_iter().map(weigh).collect(),
            vector: search.vector.clone(),
            has_text: search.text.is_some(),
        })
    }

    /// How well a record fits, 0 to 1: the mean of the scores by words and by vector where both
    /// are asked for. `None` when it does not fit at all.
    pub(super) fn score(&self, record: &Record) -> Option<f64> {
        let by_words = self.has_text.then(|| self.words_score(record));
        let by_vector =
            self.vector.as_ref().map(|vector| record.vector.as_ref().and_then(|v| near(vector, v)));
        match (by_words, by_vector) {
            (Some(words), Some(vector)) => (words > 0.0 || vector.is_some())
                .then(|| f64::midpoint(words, vector.unwrap_or(0.0))),
            (Some(words), None) => (words > 0.0).then_some(words),
            (None, vector) => vector.flatten(),
        }
    }

    fn words_score(&self, record: &Record) -> f64 {
        let there = record.text.as_deref().map(words).unwrap_or_default();
        let all: f64 = self.words.values().sum();
        let found: f64 =
            self.words.iter().filter(|(word, _)| there.contains(*word)).map(|(_, w)| w).sum();
        if all > 0.0 { found / all } else { 0.0 }
    }
}

/// A rare word says more than a common one.
#[expect(clippy::cast_precision_loss, reason = "counts of records in memory")]
fn rarity(records: usize, having: usize) -> f64 {
    (1.0 + records as f64 / (1.0 + having as f64)).ln()
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn check_vector(vector: &[f32], records: &[&Record]) -> Result<()> {
    if norm(vector).is_none() {
        return Err(Error::invalid_input("memory", "the vector has no direction")
            .suggest("give numbers that are finite and not all zero"));
    }
    let mut lengths = records.iter().filter_map(|record| record.vector.as_ref().map(Vec::len));
    // Records of another model's may stand beside; only if there is none of ours is it a mistake.
    if let Some(other) = lengths.clone().next()
        && !lengths.any(|length| length == vector.len())
    {
        let message = format!("the vector has {} numbers, those stored have {other}", vector.len());
        return Err(Error::invalid_input("memory", message)
            .suggest("search with the embedder that the records were stored with"));
    }
    Ok(())
}

fn norm(vector: &[f32]) -> Option<f64> {
    let sum: f64 = vector.iter().map(|x| f64::from(*x).powi(2)).sum();
    (sum.is_finite() && sum > 0.0).then(|| sum.sqrt())
}

/// The cosine of the angle between two vectors, brought from -1…1 to 0…1.
fn near(a: &[f32], b: &[f32]) -> Option<f64> {
    if a.len() != b.len() {
        return None;
    }
    let dot: f64 = a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
    let cosine = dot / (norm(a)? * norm(b)?);
    Some(f64::midpoint(1.0, cosine).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearness_is_between_0_and_1() {
        assert_eq!(near(&[1.0, 0.0], &[2.0, 0.0]), Some(1.0));
        assert_eq!(near(&[1.0, 0.0], &[0.0, 3.0]), Some(0.5));
        assert_eq!(near(&[1.0, 0.0], &[-1.0, 0.0]), Some(0.0));
        assert_eq!(near(&[1.0], &[1.0, 0.0]), None);
        assert_eq!(near(&[0.0], &[1.0]), None);
    }

    #[test]
    fn words_are_what_stands_between_anything_else() {
        let expected: BTreeSet<String> = ["größe", "42", "o"].map(str::to_owned).into();
        assert_eq!(words("Größe: 42, o’GRÖßE!"), expected);
    }
}
