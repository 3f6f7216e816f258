//! Whether to go on, and how.

use sifaka_core::event::{EndReason, EventKind};
use sifaka_core::policy::{Attempt, Decision, Progress};
use sifaka_core::thought::Entry;
use sifaka_core::{Error, ErrorKind, Id, Result};

use super::Runner;

/// What comes after an iteration.
pub(super) enum Next {
    /// The run ends.
    End(EndReason),
    /// Another iteration begins.
    Iterate(EventKind),
}

impl Runner<'_> {
    /// Why the run ends here, before critics are asked; `None` when it goes on.
    pub(super) fn enough(&self) -> Result<Option<EndReason>> {
        let Some(thought) = self.fold.thought() else {
            return Err(Error::new(ErrorKind::Internal, "chain", "decide", "no run has begun"));
        };
        let options = &self.parts.options;
        let passed = self.fold.best().is_some_and(|(_, score)| score.passed);
        if passed && !options.critics_when.improves_passing(thought) {
            return Ok(Some(EndReason::Passed));
        }
        if thought.iteration() >= self.max_iterations {
            return Ok(Some(EndReason::MaxIterations));
        }
        if options.stop.oscillation && self.came_back() {
            return Ok(Some(EndReason::Oscillation));
        }
        if let Some(rounds) = options.stop.plateau
            && self.is_flat(rounds)
        {
            return Ok(Some(EndReason::Plateau { rounds }));
        }
        Ok(None)
    }

    /// What comes after the critics.
    pub(super) async fn next(&mut self) -> Result<Next> {
        // A critic's proposal may have passed.
        if let Some(reason) = self.enough()? {
            return Ok(Next::End(reason));
        }
        let Some(thought) = self.fold.thought() else {
            return Err(Error::new(ErrorKind::Internal, "chain", "decide", "no run has begun"));
        };
        let attempts = self.attempts();
        let statistics = match &self.parts.journal {
            Some(journal) if self.parts.policy.wants_statistics() => {
                journal.statistics(&self.ctx, &self.parts.options.name).await?
            }
            _ => None,
        };
        let progress = Progress {
            thought,
            attempts: &attempts,
            left: self.max_iterations.saturating_sub(thought.iteration()),
            guided: self.parts.model.capabilities().guided,
            statistics: statistics.as_ref(),
        };
        Ok(match self.parts.policy.decide(&self.ctx, &progress)? {
            Decision::Stop { reason } => Next::End(EndReason::Policy { message: reason }),
            decision => {
                let thought_id = Id::new(&self.ctx);
                Next::Iterate(EventKind::IterationStarted { thought_id, decision })
            }
        })
    }

    /// Every iteration so far, the newest included.
    fn attempts(&self) -> Vec<Attempt> {
        let mut attempts = self.fold.attempts().to_vec();
        let round = self.fold.round();
        if let (Some((_, score)), Some(thought)) = (round.chosen, self.fold.thought()) {
            let decision = round.decision.clone();
            attempts.push(Attempt { decision, score, usage: thought.usage() });
        }
        attempts
    }

    /// Whether all the model wrote had been there before.
    fn came_back(&self) -> bool {
        let Some(thought) = self.fold.thought() else { return false };
        let written = &self.fold.round().completions;
        let was_there = |text: &str| {
            thought.iterations().skip(1).any(|entry| match entry {
                Entry::Thought(earlier) => earlier.text() == Some(text),
                Entry::Reference(_) => false,
            })
        };
        !written.is_empty() && written.iter().all(|completion| was_there(&completion.text))
    }

    /// Whether the best score did not rise over the last `rounds` iterations.
    fn is_flat(&self, rounds: u32) -> bool {
        let attempts = self.attempts();
        let rounds = rounds as usize;
        if attempts.len() <= rounds {
            return false;
        }
        let (before, since) = attempts.split_at(attempts.len() - rounds);
        let top = |list: &[Attempt]| {
            list.iter().fold((false, f64::NEG_INFINITY), |top, attempt| {
                let score = (attempt.score.passed, attempt.score.value);
                if score > top { score } else { top }
            })
        };
        let (before, since) = (top(before), top(since));
        let epsilon = self.parts.options.stop.plateau_epsilon;
        let now_passes = since.0 && !before.0;
        !now_passes && since.1 <= before.1 + epsilon
    }
}
