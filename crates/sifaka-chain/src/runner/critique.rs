//! Asking the critics.

use std::sync::Arc;

use sifaka_core::event::{EventKind, Nanos, Step};
use sifaka_core::{ErrorKind, Failure, Result, Review};

use super::Runner;
use super::wave::{Wave, contain, ends_the_run};

impl Runner<'_> {
    /// Asks every critic that has not answered yet, side by side. One that fails is a failure on
    /// record and never feedback; one there is no budget for is left out, which is on record too.
    pub(super) async fn critique(&mut self) -> Result<()> {
        let parts = self.parts;
        let Some(thought) = self.fold.thought().cloned() else { return Ok(()) };
        let round = self.fold.round();
        let passed = round.chosen.is_some_and(|(_, score)| score.passed);
        if parts.critics.is_empty() || !parts.options.critics_when.asks(&thought, passed) {
            return Ok(());
        }
        let mut wave = Wave::new();
        for (index, critic) in (0_u32..).zip(&parts.critics) {
            if round.done.contains(&Step::Critic(index)) {
                continue;
            }
            let ctx = self.ctx.for_component(critic.name());
            let thought = &thought;
            wave.push(async move {
                let started = ctx.monotonic();
                let review = Review {
                    thought,
                    model: &parts.model,
                    retrievers: &parts.guarded_retrievers,
                    validators: &parts.validators,
                    tools: &parts.tools,
                    prompts: &parts.prompts,
                };
                let feedback = contain(&ctx, critic.critique(&ctx, &review)).await;
                (index, feedback, Nanos::from(ctx.monotonic().saturating_sub(started)))
            });
        }
        while let Some(ready) = self.ready(&mut wave).await? {
            for (index, feedback, seconds) in ready {
                let Some(critic) = parts.critics.get(index as usize) else { continue };
                let step = Step::Critic(index);
                let kind = match feedback {
                    Ok(mut feedback) => {
                        if feedback.critic_name.is_empty() {
                            feedback.critic_name = Arc::from(critic.name());
                        }
                        EventKind::Critiqued { index, feedback, seconds }
                    }
                    Err(error) if ends_the_run(&error) => return Err(error),
                    Err(error) if error.kind() == ErrorKind::BudgetExhausted => {
                        EventKind::Skipped {
                            step,
                            component: Arc::from(critic.name()),
                            reason: Arc::from(error.message()),
                        }
                    }
                    Err(error) => {
                        let failure = Failure::from(&error.in_component(critic.name()));
                        EventKind::Failed { step, failure, seconds }
                    }
                };
                self.emit(kind).await?;
            }
        }
        Ok(())
    }
}
