//! Where a run begins: with a prompt, with a Thought, or where it was left.

use std::sync::Arc;

use sifaka_core::event::{EndReason, EventKind, Fold, REDACTED};
use sifaka_core::journal::RunLog;
use sifaka_core::thought::Entry;
use sifaka_core::{
    Budget, Context, Error, ErrorKind, Event, Hash, Id, Ledger, Result, Score, Thought,
};
use sifaka_telemetry::Performance;
use tokio::sync::mpsc;

use super::Runner;
use super::call::Gate;
use super::record::Recorder;
use crate::chain::Parts;
use crate::outcome::Outcome;
use crate::plan::empty_prompt;
use crate::run::{ResumeFrom, Run, Start};

/// A run that has begun, or was over already.
pub(super) enum Begun<'c> {
    Running(Box<Runner<'c>>),
    Over(Box<Outcome>),
}

/// A run that is taken up: as the journal has it, or made from a Thought.
struct TakenUp {
    id: Id,
    log: Option<Box<dyn RunLog>>,
    /// What is on record; empty when the Thought is all there is.
    events: Vec<Event>,
    thought: Option<Box<Thought>>,
}

impl<'c> Runner<'c> {
    pub(super) async fn begin(
        parts: &'c Arc<Parts>,
        run: Run,
        out: Option<mpsc::Sender<Arc<Event>>>,
    ) -> Result<Begun<'c>> {
        let mut context = Context::builder();
        if let Some(clock) = &run.clock {
            context = context.clock(Arc::clone(clock));
        }
        if let Some(seed) = run.entropy {
            context = context.seed(seed);
        }
        let budget = run.budget.unwrap_or(parts.options.budget);
        let start = run.start.clone();
        match start {
            Start::Prompt(prompt) => {
                if prompt.trim().is_empty() {
                    return Err(empty_prompt());
                }
                let ctx = finish_context(context.budget(budget), &run, parts);
                let id = Id::new(&ctx);
                let mut runner = Self::assemble(parts, &ctx, &run, id.clone(), Fold::new(), out);
                runner.open_log(&id).await?;
                let started = EventKind::RunStarted {
                    thought_id: id,
                    chain_id: Arc::clone(&parts.id),
                    prompt,
                    system_prompt: parts.options.system.clone(),
                    tags: run.tags,
                    metadata: run.metadata,
                };
                runner.emit(started).await?;
                runner.note_redaction().await?;
                Ok(Begun::Running(Box::new(runner)))
            }
            Start::Resume(from) => Self::take_up(parts, run, from, context, budget, out).await,
        }
    }

    async fn take_up(
        parts: &'c Arc<Parts>,
        run: Run,
        from: ResumeFrom,
        context: sifaka_core::ContextBuilder,
        budget: Budget,
        out: Option<mpsc::Sender<Arc<Event>>>,
    ) -> Result<Begun<'c>> {
        let look = match &run.clock {
            Some(clock) => Context::builder().clock(Arc::clone(clock)).build(),
            None => Context::new(),
        };
        let TakenUp { id, log, events, thought } = take(parts, &look, from).await?;
        let mut fold = Fold::of(&events)?;
        let left = Budget {
            time: budget.time.map(|time| time.saturating_sub(fold.worked().into())),
            ..budget
        };
        let ledger = Arc::new(Ledger::resumed(left, fold.usage()));
        let ctx = finish_context(context.ledger(ledger), &run, parts);
        let changed = fold.chain_id().is_some_and(|chain| chain != &*parts.id);
        let mut runner = Self::assemble(parts, &ctx, &run, id, Fold::new(), out);
        if !changed && let Some(reason) = runner.is_final(&fold) {
            runner.record.remember(&events);
            let head = match &parts.journal {
                Some(journal) => Some(journal.head(&look).await?),
                None => None,
            };
            let performance = runner.record.timings().performance();
            let over = outcome(parts, &fold, reason, head, Vec::new(), performance);
            return Ok(Begun::Over(Box::new(over)));
        }
        if let Some(journal) = &parts.journal {
            fold.load_documents(&look, &**journal).await?;
        }
        runner.record.remember(&events);
        runner.record.log = log;
        runner.fold = fold;
        if let Some(thought) = thought {
            runner.emit(EventKind::Imported { thought }).await?;
        }
        if changed {
            runner.warnings.push(format!(
                "the run was begun by the chain {} and goes on with {}; its best text is checked anew",
                runner.fold.chain_id().unwrap_or_default(),
                parts.id
            ));
        }
        if runner.fold.is_redacted() {
            let warning = "what is on record was redacted, and the run goes on from that";
            runner.warnings.push(warning.to_owned());
        }
        runner.ctx = runner.ctx.with_caller(Arc::new(Gate::new(
            parts,
            runner.record.requests(),
            runner.fold.round().calls.clone(),
        )));
        runner.emit(EventKind::RunResumed { chain_id: Arc::clone(&parts.id), changed }).await?;
        runner.note_redaction().await?;
        Ok(Begun::Running(Box::new(runner)))
    }

    /// Says in the record that it was redacted, once.
    async fn note_redaction(&mut self) -> Result<()> {
        if self.parts.redaction.is_none() || self.fold.is_redacted() {
            return Ok(());
        }
        self.emit(EventKind::Noted { name: Arc::from(REDACTED), data: true.into() }).await
    }

    fn assemble(
        parts: &'c Arc<Parts>,
        ctx: &Context,
        run: &Run,
        id: Id,
        fold: Fold,
        out: Option<mpsc::Sender<Arc<Event>>>,
    ) -> Self {
        let record = Recorder::new(parts, id, Arc::clone(ctx.clock()), out);
        let gate = Gate::new(parts, record.requests(), Vec::new());
        let ctx = ctx.with_observer(record.inbox()).with_caller(Arc::new(gate));
        Self {
            parts,
            started: ctx.monotonic(),
            ctx,
            fold,
            record,
            max_iterations: run.max_iterations.unwrap_or(parts.options.max_iterations),
            warnings: Vec::new(),
        }
    }

    async fn open_log(&mut self, id: &Id) -> Result<()> {
        if let Some(journal) = &self.parts.journal {
            self.record.log = Some(journal.open_run(&self.ctx, id).await?);
        }
        Ok(())
    }

    /// Why a recorded run needs no more work under this chain; `None` when it does.
    fn is_final(&self, fold: &Fold) -> Option<EndReason> {
        let reason = fold.ended()?;
        let is_final = match reason {
            EndReason::Passed | EndReason::Plateau { .. } | EndReason::Oscillation => true,
            EndReason::MaxIterations => {
                fold.thought().is_some_and(|t| t.iteration() >= self.max_iterations)
            }
            _ => false,
        };
        is_final.then(|| reason.clone())
    }
}

fn finish_context(mut builder: sifaka_core::ContextBuilder, run: &Run, parts: &Parts) -> Context {
    if let Some(token) = &run.cancel {
        builder = builder.cancel_on(token.child_token());
    }
    let ctx = builder.build();
    match parts.options.stop.deadline {
        Some(deadline) => ctx.with_timeout(deadline),
        None => ctx,
    }
}

/// Takes the run, so that nobody else writes to it, and then reads it.
async fn take(parts: &Parts, ctx: &Context, from: ResumeFrom) -> Result<TakenUp> {
    let (id, thought) = match (from, &parts.journal) {
        (ResumeFrom::Id(_), None) => {
            let message = "a run is resumed by its id, but there is no journal";
            return Err(Error::configuration("chain", message)
                .suggest("build the chain with .journal(…), or resume a Thought"));
        }
        (ResumeFrom::Id(id), Some(journal)) => (journal.resolve(ctx, &id).await?.run_id, None),
        (ResumeFrom::Thought(thought), _) => (run_of(&thought), Some(thought)),
    };
    let Some(journal) = &parts.journal else {
        return Ok(TakenUp { id, log: None, events: Vec::new(), thought });
    };
    let log = Some(journal.open_run(ctx, &id).await?);
    let events = journal.events(ctx, &id).await?;
    if events.is_empty() && thought.is_none() {
        let message = format!("what run {id} contained was erased");
        return Err(Error::new(ErrorKind::NotFound, "journal", "resume", message)
            .suggest("begin a new run"));
    }
    // A run that is on record is taken up from there.
    let thought = thought.filter(|_| events.is_empty());
    Ok(TakenUp { id, log, events, thought })
}

/// The run a Thought belongs to: what it says, or the first of its iterations.
fn run_of(thought: &Thought) -> Id {
    let first = thought.iterations().last().map(|entry| match entry {
        Entry::Thought(first) => first.id().clone(),
        Entry::Reference(reference) => reference.id,
    });
    thought.run_id().cloned().or(first).unwrap_or_else(|| thought.id().clone())
}

pub(super) fn outcome(
    parts: &Parts,
    fold: &Fold,
    reason: EndReason,
    head: Option<Hash>,
    warnings: Vec<String>,
    performance: Performance,
) -> Outcome {
    let newest = fold.thought().cloned();
    let (thought, score) = match (fold.best(), &newest) {
        (Some((thought, score)), _) => (thought.clone(), score),
        (None, Some(newest)) => (newest.clone(), newest.score()),
        // Neither can be absent once a run has begun.
        (None, None) => (Thought::new(&Context::new(), ""), Score { passed: false, value: 0.0 }),
    };
    Outcome {
        run_id: thought.run_id().unwrap_or(thought.id()).clone(),
        chain_id: Arc::clone(&parts.id),
        passed: score.passed,
        reason,
        score,
        usage: fold.usage(),
        head,
        warnings,
        performance,
        newest: newest.unwrap_or_else(|| thought.clone()),
        thought,
    }
}
