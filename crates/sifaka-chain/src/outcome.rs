//! What a run gives.

use std::fmt::Write;
use std::sync::Arc;

use serde::Serialize;
use sifaka_core::event::EndReason;
use sifaka_core::{Cost, Hash, Id, Score, Thought, Usage, Verdict};
use sifaka_telemetry::Performance;

/// The best text of a run, and how it came about.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub(crate) run_id: Id,
    pub(crate) chain_id: Arc<str>,
    pub(crate) passed: bool,
    pub(crate) reason: EndReason,
    pub(crate) score: Score,
    pub(crate) usage: Usage,
    pub(crate) head: Option<Hash>,
    pub(crate) warnings: Vec<String>,
    pub(crate) performance: Performance,
    pub(crate) thought: Thought,
    #[serde(skip)]
    pub(crate) newest: Thought,
}

impl Outcome {
    /// The best text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.thought.text().unwrap_or_default()
    }

    /// The Thought of the best text, with what led to it.
    #[must_use]
    pub fn thought(&self) -> &Thought {
        &self.thought
    }

    /// The newest Thought: its history is the whole run, whichever iteration was best.
    #[must_use]
    pub fn newest(&self) -> &Thought {
        &self.newest
    }

    /// Whether the best text passed every hard check.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.passed
    }

    /// Why the run ended.
    #[must_use]
    pub fn reason(&self) -> &EndReason {
        &self.reason
    }

    /// How good the best text is.
    #[must_use]
    pub fn score(&self) -> Score {
        self.score
    }

    /// What the whole run consumed.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// What it cost; `None` when no price was known.
    #[must_use]
    pub fn cost(&self) -> Option<Cost> {
        self.usage.cost
    }

    /// Where the time went.
    #[must_use]
    pub fn performance(&self) -> &Performance {
        &self.performance
    }

    /// The run's id, by which it is shown, verified and resumed.
    #[must_use]
    pub fn run_id(&self) -> &Id {
        &self.run_id
    }

    /// The chain that ran.
    #[must_use]
    pub fn chain_id(&self) -> &str {
        &self.chain_id
    }

    /// The journal's head after the run, which `verify --head` finds again; `None` without a
    /// journal.
    #[must_use]
    pub fn head(&self) -> Option<Hash> {
        self.head
    }

    /// What the user should know of besides.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// How the run went, for people: an iteration a line, then verdicts of the best one.
    #[must_use]
    pub fn explain(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail; the results of `write!` are dropped for that reason.
        let verdict = if self.passed { "passed" } else { "did not pass" };
        if self.thought.validation_results().is_empty() {
            let _ = writeln!(out, "The text was not checked: there are no checks.");
        } else {
            let _ = writeln!(out, "The text {verdict}: {}.", self.reason);
        }
        let mut iterations: Vec<Thought> =
            self.newest.iterations().filter_map(|entry| entry.thought().cloned()).collect();
        iterations.reverse();
        for thought in &iterations {
            let mark = if thought.id() == self.thought.id() { "*" } else { " " };
            let score = thought.score();
            let failing: Vec<&str> = thought
                .validation_results()
                .iter()
                .filter(|(_, result)| !result.allows())
                .map(|(name, _)| &**name)
                .collect();
            let state = match (thought.text(), failing.as_slice()) {
                (None, _) => "no text".to_owned(),
                (Some(_), []) => "passes".to_owned(),
                (Some(_), failing) => format!("fails {}", failing.join(", ")),
            };
            let advice = thought.critic_feedback().len();
            let _ = write!(out, "{mark} iteration {}: ", thought.iteration());
            if thought.text().is_some() {
                let _ = write!(out, "score {:.2}, ", score.value);
            }
            out.push_str(&state);
            if thought.candidates().len() > 1 {
                let _ = write!(out, ", best of {}", thought.candidates().len());
            }
            if advice > 0 {
                let _ = write!(out, ", {advice} critique{}", if advice == 1 { "" } else { "s" });
            }
            for failure in thought.failures() {
                let _ = write!(out, "; {failure}");
            }
            out.push('\n');
        }
        for (name, result) in self.thought.validation_results() {
            let word = match result.passed {
                Verdict::Passed => "passed",
                Verdict::Failed => "failed",
                Verdict::Unknown => "could not tell",
            };
            let _ = writeln!(out, "  {name}: {word}: {}", result.message);
        }
        let usage = self.usage;
        let _ = write!(
            out,
            "{} call{}, {}{} tokens in, {} out",
            usage.calls,
            if usage.calls == 1 { "" } else { "s" },
            if usage.estimated { "about " } else { "" },
            usage.input_tokens,
            usage.output_tokens
        );
        match usage.cost {
            Some(cost) => {
                let _ = write!(out, ", {cost}");
            }
            None => out.push_str(", price unknown"),
        }
        let _ = writeln!(out, ", {:.3} s", self.performance.total_time.seconds());
        for warning in &self.warnings {
            let _ = writeln!(out, "warning: {warning}");
        }
        let _ = writeln!(out, "run {}", self.run_id);
        out
    }
}
