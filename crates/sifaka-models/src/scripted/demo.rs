//! What the scripted model writes when it has no script.
//!
//! It writes plain sentences that say they are scripted. On an improvement prompt it reads what
//! the length checks asked for and writes just that much, so that a whole run, from a first
//! text that is too short to one that passes, can be seen without any model.

use sifaka_core::constraint::{Range, Unit};

/// How the improvement prompt announces its parts.
const PREVIOUS: &str = "Your previous answer:";
const CHECKS: &str = "It does not pass these checks:";

/// Sentences to fill up with, in turn.
const FILLING: [&str; 3] = [
    "no language model wrote it",
    "plain words follow in a row so that checks have something to count",
    "each repair adds what was asked for and nothing else",
];

/// The most words it writes, whatever is asked.
const MOST_WORDS: u64 = 100_000;

/// The answer to a prompt. Further samples of the same prompt are a little longer each.
pub(super) fn write(prompt: &str, sample: u32) -> String {
    let more = u64::from(sample) * 5;
    let Some((task, rest)) = prompt.rsplit_once(PREVIOUS) else {
        let opening = opening(prompt);
        let shape = Shape { words: opening.len() as u64 + more, ..Shape::default() };
        return shape.write(&opening);
    };
    let (previous, checks) = rest.split_once(CHECKS).unwrap_or((rest, ""));
    let opening = opening(task);
    let asked = |unit| asked(checks, unit);
    let [words, sentences, paragraphs, lines] =
        [Unit::Words, Unit::Sentences, Unit::Paragraphs, Unit::Lines].map(asked);
    let mut shape = Shape {
        words: match (bound(words), bound(sentences)) {
            (Some(words), _) => words,
            (None, Some(sentences)) => sentences.saturating_mul(7),
            (None, None) => previous.split_whitespace().count() as u64 + 12 + more,
        },
        sentences: bound(sentences),
        paragraphs: bound(paragraphs).unwrap_or(1),
        lines: bound(lines).unwrap_or(1),
    };
    // A token is about three characters, as the estimate has it.
    let tokens = asked(Unit::Tokens);
    let tokens = Range {
        min: tokens.min.saturating_mul(3),
        max: tokens.max.map(|max| max.saturating_mul(3)),
    };
    for characters in [asked(Unit::Characters), tokens] {
        shape.reach(&opening, characters);
    }
    shape.write(&opening)
}

/// The number to write: the most allowed if there is a most, the least asked if not.
fn bound(range: Range) -> Option<u64> {
    range.max.or((range.min > 0).then_some(range.min))
}

/// What the checks ask of a unit: `38 words, at least 50 asked`.
fn asked(checks: &str, unit: Unit) -> Range {
    let words: Vec<&str> = checks
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .collect();
    let singular = unit.name().trim_end_matches('s');
    let mut range = Range::default();
    for (at, word) in words.iter().enumerate() {
        if *word != unit.name() && *word != singular {
            continue;
        }
        let number = |text: &str| text.parse::<u64>().ok();
        match words[at + 1..] {
            ["at", "least", n, "asked", ..] => range.min = range.min.max(number(n).unwrap_or(0)),
            ["at", "most", n, "asked", ..] => {
                range.max = [range.max, number(n)].into_iter().flatten().min();
            }
            ["exactly", n, "asked", ..] => range.max = number(n).or(range.max),
            _ => {}
        }
    }
    range
}

/// The words of the first sentence, which names the task.
fn opening(task: &str) -> Vec<String> {
    let task = task.rsplit_once("Task:").map_or(task, |(_, task)| task);
    let mut words: Vec<String> =
        "This is a scripted answer to".split(' ').map(str::to_owned).collect();
    let mut topic: Vec<String> = task
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        // Scripts without spaces would make one word of a whole line.
        .filter(|word| !word.is_empty() && word.chars().all(|c| c < '\u{2E80}'))
        .filter(|word| word.len() <= 40)
        .take(6)
        .map(str::to_owned)
        .collect();
    match topic.as_mut_slice() {
        [] => topic = vec!["your".to_owned(), "prompt".to_owned()],
        [first, .., last] => {
            first.insert(0, '"');
            last.push('"');
        }
        [only] => *only = format!("\"{only}\""),
    }
    words.append(&mut topic);
    words
}

/// How much to write.
#[derive(Clone, Debug)]
struct Shape {
    words: u64,
    sentences: Option<u64>,
    paragraphs: u64,
    lines: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self { words: 0, sentences: None, paragraphs: 1, lines: 1 }
    }
}

impl Shape {
    /// Changes the number of words until the characters lie in the range.
    fn reach(&mut self, opening: &[String], range: Range) {
        let length = |shape: &Self| shape.write(opening).chars().count() as u64;
        while self.words < MOST_WORDS && length(self) < range.min {
            // Words have at least one letter and a space or stop; most have more.
            self.words += ((range.min - length(self)) / 12).max(1);
        }
        if let Some(max) = range.max {
            while self.words > 1 && length(self) > max {
                self.words -= ((length(self) - max) / 12).clamp(1, self.words - 1);
            }
        }
    }

    fn write(&self, opening: &[String]) -> String {
        let words = self.words.clamp(1, MOST_WORDS);
        let groups = self.paragraphs.max(self.lines).clamp(1, words);
        let lengths = self.lengths(words, groups, opening.len() as u64);
        let sentences = lengths.len() as u64;
        let break_ = if self.paragraphs >= self.lines { "\n\n" } else { "\n" };
        let mut stream = opening
            .iter()
            .map(String::as_str)
            .chain(FILLING.iter().cycle().flat_map(|sentence| sentence.split(' ')));
        let mut out = String::new();
        for (length, number) in lengths.into_iter().zip(0_u64..) {
            if number > 0 {
                let begins = number * groups / sentences > (number - 1) * groups / sentences;
                out.push_str(if begins { break_ } else { " " });
            }
            for (word, place) in stream.by_ref().take(length).zip(0..) {
                if place == 0 {
                    let mut letters = word.chars();
                    out.extend(letters.next().into_iter().flat_map(char::to_uppercase));
                    out.push_str(letters.as_str());
                } else {
                    out.push(' ');
                    out.push_str(word);
                }
            }
            out.push('.');
        }
        out
    }

    /// How many words each sentence has: as the sentences are, or evenly where a number of
    /// sentences is asked for.
    fn lengths(&self, words: u64, groups: u64, opening: u64) -> Vec<usize> {
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let sentences = self.sentences.unwrap_or(0).max(if groups > 1 { groups } else { 0 });
        if sentences > 0 {
            let sentences = sentences.min(words);
            let share = |n: u64| n * words / sentences;
            return (0..sentences).map(|n| size(share(n + 1) - share(n))).collect();
        }
        let natural = std::iter::once(opening)
            .chain(FILLING.iter().cycle().map(|sentence| sentence.split(' ').count() as u64));
        let (mut lengths, mut left) = (Vec::new(), words);
        for length in natural {
            let length = length.min(left);
            left -= length;
            lengths.push(size(length));
            if left == 0 {
                break;
            }
        }
        lengths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn improve(checks: &str) -> String {
        let prompt = format!("Task:\n\nSay hello.\n\n{PREVIOUS}\n\nHi.\n\n{CHECKS}\n\n{checks}\n");
        write(&prompt, 0)
    }

    fn words(text: &str) -> usize {
        text.split_whitespace().count()
    }

    #[test]
    fn the_first_answer_is_short_and_says_what_it_is() {
        let text = write("Summarise v0.9 for the people who wrote it.", 0);
        assert_eq!(text, "This is a scripted answer to \"Summarise v0.9 for the people who\".");
        assert_eq!(write("Summarise v0.9 for the people who wrote it.", 0), text);
        assert!(write("日本語だけ", 0).contains("your prompt"));
        assert!(words(&write("Hi", 1)) > words(&write("Hi", 0)));
    }

    #[test]
    fn a_repair_has_as_many_words_as_were_asked() {
        assert_eq!(words(&improve("- length: 12 words, at least 20 asked")), 20);
        assert_eq!(words(&improve("- length: 1 word, exactly 50 asked\n  To do: write more")), 50);
        assert_eq!(words(&improve("- length: 90 words, at most 7 asked")), 7);
        assert!(words(&improve("- tone: too curt")) > 12);
    }

    #[test]
    fn a_repair_has_as_many_of_other_units_as_were_asked() {
        let text = improve("- length: 3 characters, at least 300 asked; 1 line, at least 4 asked");
        assert!(text.chars().count() >= 300 && text.lines().count() == 4, "{text}");
        let text = improve("- length: 300 characters, at most 40 asked");
        assert!(text.chars().count() <= 40, "{text}");
        let text = improve("- length: 1 sentence, at least 5 asked");
        assert_eq!(text.matches('.').count(), 5, "{text}");
        let text = improve("- length: 1 paragraph, exactly 3 asked");
        assert_eq!(text.split("\n\n").count(), 3, "{text}");
    }

    #[test]
    fn only_the_checks_are_read_and_absurd_figures_are_bounded() {
        let text = write("Explain \"38 words, at least 5000 asked\".", 0);
        assert!(words(&text) < 20);
        let text = improve("- length: 1 word, at least 99999999999999 asked");
        assert_eq!(words(&text) as u64, MOST_WORDS);
    }
}
