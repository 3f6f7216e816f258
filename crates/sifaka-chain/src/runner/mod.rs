//! The loop: one run from its beginning, or from where it was left, to its end.
//!
//! Everything the loop does goes through events: a step emits what came of it, the fold takes it
//! in, and the loop looks at the fold to see what is still to do. A resumed run therefore takes
//! the same path as one that was never left.

mod begin;
mod call;
mod critique;
mod decide;
mod generate;
mod record;
mod retrieve;
mod stream;
mod validate;
mod wave;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use sifaka_core::event::{EndReason, EventKind, Fold, Nanos};
use sifaka_core::retriever::Stage;
use sifaka_core::{Context, Error, ErrorKind, Event, Failure, Model, Result};
use tokio::sync::mpsc;

use crate::chain::Parts;
use crate::outcome::Outcome;
use crate::run::Run;
use begin::Begun;
use decide::Next;
use record::Recorder;
use wave::panic_words;

/// Runs a run.
pub(crate) async fn execute(run: Run, out: Option<mpsc::Sender<Arc<Event>>>) -> Result<Outcome> {
    let parts = Arc::clone(&run.chain.parts);
    match Runner::begin(&parts, run, out).await? {
        Begun::Over(outcome) => Ok(*outcome),
        Begun::Running(mut runner) => {
            // Policies, predicates and counters are the user's code too.
            let ended = AssertUnwindSafe(runner.go()).catch_unwind().await;
            let ended = ended.unwrap_or_else(|panic| {
                let message = format!("a part of it panicked: {}", panic_words(&*panic));
                Err(Error::new(ErrorKind::Internal, "chain", "run", message))
            });
            runner.end(ended).await
        }
    }
}

/// How many tokens a prompt may have: the model's window less what the answer may take.
pub(crate) fn window(parts: &Parts, model: &dyn Model) -> Option<u64> {
    let capabilities = model.capabilities();
    let answer = parts.options.sampling.max_tokens.or(capabilities.max_output_tokens);
    capabilities.context_window.map(|window| window.saturating_sub(answer.unwrap_or(0)).max(1))
}

/// A run in progress.
pub(crate) struct Runner<'c> {
    parts: &'c Arc<Parts>,
    /// What components are handed: it knows the run's observer and caller.
    ctx: Context,
    fold: Fold,
    record: Recorder,
    max_iterations: u32,
    started: Duration,
    warnings: Vec<String>,
}

impl Runner<'_> {
    /// Goes round until there is a reason to end.
    async fn go(&mut self) -> Result<EndReason> {
        loop {
            self.ctx.check()?;
            self.retrieve(Stage::PreGeneration).await?;
            self.generate().await?;
            self.retrieve(Stage::PostGeneration).await?;
            self.validate().await?;
            self.choose().await?;
            if let Some(reason) = self.enough()? {
                return Ok(reason);
            }
            self.critique().await?;
            // A critic's own text is a candidate like any other.
            self.validate().await?;
            self.choose().await?;
            match self.next().await? {
                Next::End(reason) => return Ok(reason),
                Next::Iterate(kind) => self.emit(kind).await?,
            }
        }
    }

    /// Puts the end on record and makes the outcome, or the error.
    async fn end(mut self, ended: Result<EndReason>) -> Result<Outcome> {
        let worked = Nanos::from(self.ctx.monotonic().saturating_sub(self.started));
        let reason = match ended {
            Ok(reason) => reason,
            Err(error) => match self.settle_for(&error) {
                Some(reason) => reason,
                None => return Err(self.fail(error, worked).await),
            },
        };
        let Some((best, score)) = self.fold.best() else {
            let error = Error::new(ErrorKind::Internal, "chain", "run", "no text was chosen");
            return Err(self.fail(error, worked).await);
        };
        let finished = EventKind::RunFinished {
            reason: reason.clone(),
            best: best.id().clone(),
            score,
            usage: self.fold.usage(),
            seconds: worked,
        };
        let head = match self.emit(finished).await {
            Ok(()) => self.record.close(&self.ctx).await,
            Err(error) => Err(error),
        };
        match head {
            Ok(head) => Ok(self.outcome(reason, head)),
            Err(error) => Err(self.with_work(error)),
        }
    }

    /// The reason to end with the best text so far after `error`; `None` when there is no text
    /// that was checked, or when the record itself cannot be kept.
    fn settle_for(&self, error: &Error) -> Option<EndReason> {
        self.fold.best()?;
        if self.record.is_broken() {
            return None;
        }
        Some(match error.kind() {
            ErrorKind::Cancelled => EndReason::Cancelled,
            ErrorKind::DeadlineExceeded => EndReason::Deadline,
            ErrorKind::BudgetExhausted => EndReason::Budget { message: error.message().to_owned() },
            // A mistake of the user's must not look like an answer.
            ErrorKind::Configuration | ErrorKind::Corrupt | ErrorKind::Internal => return None,
            _ => EndReason::Degraded { failure: Failure::from(error) },
        })
    }

    async fn fail(&mut self, error: Error, seconds: Nanos) -> Error {
        let error = self.record_failure(error, seconds).await;
        if self.parts.options.timings {
            self.parts.aggregator.merge(&self.record.timings());
        }
        self.with_work(error)
    }

    async fn record_failure(&mut self, error: Error, seconds: Nanos) -> Error {
        if !self.record.is_broken() && self.fold.thought().is_some() {
            let failed = EventKind::RunFailed { failure: Failure::from(&error), seconds };
            let closed = match self.emit(failed).await {
                Ok(()) => self.record.close(&self.ctx).await.map(drop),
                Err(error) => Err(error),
            };
            if let Err(unwritten) = closed {
                // Both matter: why there is no answer, and that the record lacks its end.
                return error.suggest(format!("the record is incomplete: {unwritten}"));
            }
        }
        error
    }

    fn with_work(&self, error: Error) -> Error {
        match self.fold.thought() {
            Some(thought) => error.with_thought(thought.clone()),
            None => error,
        }
    }

    fn outcome(mut self, reason: EndReason, head: Option<sifaka_core::Hash>) -> Outcome {
        let timings = self.record.timings();
        if self.parts.options.timings {
            self.parts.aggregator.merge(&timings);
        }
        begin::outcome(self.parts, &self.fold, reason, head, self.warnings, timings.performance())
    }

    /// Puts an event on record; see [`Recorder::emit`].
    async fn emit(&mut self, kind: EventKind) -> Result<()> {
        self.record.emit(&self.ctx, &mut self.fold, kind).await
    }

    /// Waits until everything on record is safe; see [`Recorder::settle`].
    async fn settle(&mut self) -> Result<()> {
        self.record.settle(&self.ctx).await
    }
}
