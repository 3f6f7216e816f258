//! Checking candidates, and choosing the best of them.

use std::sync::Arc;

use sifaka_core::event::{Checked, EventKind, Nanos};
use sifaka_core::{Draft, Failure, Result, Score, ValidationResult};

use super::Runner;
use super::wave::{Wave, contain, ends_the_run};

impl Runner<'_> {
    /// Puts every candidate before every validator that has not answered about it yet, side by
    /// side. One that breaks could not tell, and its failure is on record.
    pub(super) async fn validate(&mut self) -> Result<()> {
        let parts = self.parts;
        let Some(thought) = self.fold.thought().cloned() else { return Ok(()) };
        let round = self.fold.round();
        let mut wave = Wave::new();
        for ((candidate, entry), checked) in (0_u32..).zip(&round.candidates).zip(&round.checked) {
            for (index, check) in (0_u32..).zip(&parts.checks) {
                if checked.contains(&index) {
                    continue;
                }
                let ctx = self.ctx.for_component(Arc::clone(&check.name));
                let text = Arc::clone(&entry.text);
                let thought = &thought;
                wave.push(async move {
                    let started = ctx.monotonic();
                    let draft = Draft { text: &text, thought, model: Some(&parts.model) };
                    let result = contain(&ctx, check.validator.validate(&ctx, &draft)).await;
                    let seconds = Nanos::from(ctx.monotonic().saturating_sub(started));
                    (candidate, index, result, seconds)
                });
            }
        }
        while let Some(mut ready) = self.ready(&mut wave).await? {
            ready.sort_by_key(|(candidate, index, ..)| (*candidate, *index));
            let mut results: Vec<(u32, Vec<Checked>)> = Vec::new();

            for (candidate, index, result, seconds) in ready {
                let Some(check) = parts.checks.get(index as usize) else { continue };
                let mut failure = None;
                let mut result = match result {
                    Ok(result) => result,
                    Err(error) if ends_the_run(&error) => return Err(error),
                    Err(error) => {
                        let result = ValidationResult::unknown(error.message());
                        failure = Some(Failure::from(&error.in_component(&*check.name)));
                        result
                    }
                };
                result.severity = check.severity.unwrap_or(result.severity);
                result.weight = check.weight.unwrap_or(result.weight);
                result.on_unknown = check.on_unknown.unwrap_or(result.on_unknown);
                let checked =
                    Checked { index, name: Arc::clone(&check.name), result, failure, seconds };
                match results.last_mut() {
                    Some((last, list)) if *last == candidate => list.push(checked),
                    _ => results.push((candidate, vec![checked])),
                }
            }
            for (candidate, results) in results {
                self.emit(EventKind::Validated { candidate, results }).await?;
            }
        }
        Ok(())
    }

    /// Takes the best candidate as the iteration's text: all hard checks passed first, then the
    /// score, then the earlier one.
    pub(super) async fn choose(&mut self) -> Result<()> {
        let round = self.fold.round();
        let mut best = round.chosen;
        for (index, candidate) in (0_u32..).zip(&round.candidates) {
            let score = Score::of(candidate.validation_results.iter().map(|(_, r)| r));
            if best.is_none_or(|(_, top)| score.beats(&top)) {
                best = Some((index, score));
            }
        }
        match best {
            Some((candidate, score)) if best != round.chosen => {
                self.emit(EventKind::Chosen { candidate, score }).await
            }
            _ => Ok(()),
        }
    }
}
