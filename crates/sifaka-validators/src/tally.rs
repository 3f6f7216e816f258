//! The score of a check with several parts.

use sifaka_core::constraint::Range;
use sifaka_core::{ValidationResult, Verdict};

/// Adds up parts; 1 exactly when every part is whole.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    sum: f64,
    parts: u32,
    failed: bool,
}

impl Tally {
    /// A part and how well it did, 0 to 1.
    pub(crate) fn add(&mut self, passed: bool, score: f64) {
        self.sum += if passed { 1.0 } else { score.clamp(0.0, 1.0) };
        self.parts += 1;
        self.failed |= !passed;
    }

    pub(crate) fn passed(&self) -> bool {
        !self.failed
    }

    /// The mean; below 1 whenever a part failed, however near it came.
    pub(crate) fn score(&self) -> f64 {
        if !self.failed {
            return 1.0;
        }
        (self.sum / f64::from(self.parts.max(1))).min(1.0 - f64::EPSILON)
    }

    /// Puts verdict and score into a result; a failed one's message is its issues.
    pub(crate) fn conclude(&self, result: &mut ValidationResult) {
        result.passed = Verdict::from(self.passed());
        result.score = Some(self.score());
        if self.failed {
            result.message = result.issues.join("; ").into();
        }
    }
}

/// How near a count is to a range: 1 inside, else the part of the bound that is there.
#[expect(clippy::cast_precision_loss, reason = "a score; counts of text are far below 2^53")]
pub(crate) fn nearness(count: u64, range: Range) -> f64 {
    match range.max {
        _ if range.contains(count) => 1.0,
        Some(max) if count > max => max as f64 / count as f64,
        _ => count as f64 / range.min as f64,
    }
}
