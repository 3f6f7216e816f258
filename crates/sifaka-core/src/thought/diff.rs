//! What changed from one iteration to another.

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use super::Thought;
use crate::validation::{Score, Verdict};

/// The difference between two iterations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// The older iteration's number.
    pub from: u32,
    /// The newer iteration's number.
    pub to: u32,
    /// The texts' lines, kept, taken out and put in.
    pub text: Vec<Change>,
    /// Verdicts that changed: name, before, after. `None` where the check was not made.
    pub verdicts: Vec<(String, Option<Verdict>, Option<Verdict>)>,
    /// The older text's score.
    pub score_from: Score,
    /// The newer text's score.
    pub score_to: Score,
}

/// A line of a text's difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "op", content = "line")]
pub enum Change {
    /// In both texts.
    Kept(String),
    /// Only in the older.
    Removed(String),
    /// Only in the newer.
    Added(String),
}

impl Thought {
    /// What changed from this iteration to `newer`.
    #[must_use]
    pub fn diff(&self, newer: &Self) -> Diff {
        let (old, new) = (self.text().unwrap_or_default(), newer.text().unwrap_or_default());
        let text = TextDiff::from_lines(old, new)
            .iter_all_changes()
            .map(|change| {
                let line = change.value().trim_end_matches(['\r', '\n']).to_owned();
                match change.tag() {
                    ChangeTag::Equal => Change::Kept(line),
                    ChangeTag::Delete => Change::Removed(line),
                    ChangeTag::Insert => Change::Added(line),
                }
            })
            .collect();
        let names = self.validation_results().iter().chain(newer.validation_results());
        let mut verdicts: Vec<(String, Option<Verdict>, Option<Verdict>)> = Vec::new();
        for (name, _) in names {
            let before = self.validation_result(name).map(|r| r.passed);
            let after = newer.validation_result(name).map(|r| r.passed);
            if before != after && verdicts.iter().all(|(n, ..)| **n != **name) {
                verdicts.push((name.to_string(), before, after));
            }
        }
        Diff {
            from: self.iteration(),
            to: newer.iteration(),
            text,
            verdicts,
            score_from: self.score(),
            score_to: newer.score(),
        }
    }
}
