//! Where a run begins: with a prompt, with a Thought, or where it was left.

use std::sync::Arc;

use sifaka_core::event::{EndReason, EventKind, Fold};
use sifaka_core::journal::Resolved;
use sifaka_core::thought::Entry;
use sifaka_core::{
    Budget, Context, Error, ErrorKind, Event, Hash, Id, Journal, Ledger, Result, Score, Thought,
};
use sifaka_telemetry::{Performance, Timings};
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

/// What a resumed run starts from.
enum Found {
    /// The journal has the run.
    Recorded(Id, Box<Fold>),
    /// The Thought is all there is.
    Given(Id, Box<Thought>),
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
        let look = Context::new();
        let found = find(parts, &look, from).await?;
        let (id, spent, worked) = match &found {
            Found::Recorded(id, fold) => (id.clone(), fold.usage(), fold.worked()),
            Found::Given(id, _) => (id.clone(), sifaka_core::Usage::default(), Default::default()),
        };
        let left =
            Budget { time: budget.time.map(|time| time.saturating_sub(worked.into())), ..budget };
        let ledger = Arc::new(Ledger::resumed(left, spent));
        let ctx = finish_context(context.ledger(ledger), &run, parts);
        let mut runner = Self::assemble(parts, &ctx, &run, id.clone(), Fold::new(), out);
        match found {
            Found::Given(_, thought) => {
                runner.open_log(&id).await?;
                runner.emit(EventKind::Imported { thought }).await?;
            }
            Found::Recorded(_, fold) => {
                if let Some(reason) = runner.is_final(&fold) {
                    let performance = recorded_performance(parts, &look, &id).await?;
                    let over = outcome(parts, &fold, reason, None, Vec::new(), performance);
                    return Ok(Begun::Over(Box::new(over)));
                }
                runner.open_log(&id).await?;
                // Read again now that nobody else writes.
                let journal = parts.journal.as_ref();
                runner.fold = match journal {
                    Some(journal) => match journal.fold(&look, &id).await? {
                        Some(mut fold) => {
                            fold.load_documents(&look, &**journal).await?;
                            fold
                        }
                        None => *fold,
                    },
                    None => *fold,
                };
            }
        }
        let changed = runner.fold.chain_id().is_some_and(|chain| chain != &*parts.id);
        if changed {
            runner.warnings.push(format!(
                "the run was begun by the chain {} and goes on with {}",
                runner.fold.chain_id().unwrap_or_default(),
                parts.id
            ));
        }
        runner.ctx = runner.ctx.with_caller(Arc::new(Gate::new(
            parts,
            runner.record.requests(),
            runner.fold.round().calls.clone(),
        )));
        runner.emit(EventKind::RunResumed { chain_id: Arc::clone(&parts.id), changed }).await?;
        Ok(Begun::Running(Box::new(runner)))
    }

    fn assemble(
        parts: &'c Arc<Parts>,
        ctx: &Context,
        run: &Run,
        id: Id,
        fold: Fold,
        out: Option<mpsc::Sender<Arc<Event>>>,
    ) -> Self {
        let record = Recorder::new(parts, id, out);
        let gate = Gate::new(parts, record.requests(), Vec::new());
        let ctx = ctx.with_observer(record.observer()).with_caller(Arc::new(gate));
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

async fn find(parts: &Parts, ctx: &Context, from: ResumeFrom) -> Result<Found> {
    match (from, &parts.journal) {
        (ResumeFrom::Id(_), None) => Err(Error::configuration(
            "chain",
            "a run is resumed by its id, but there is no journal",
        )
        .suggest("build the chain with .journal(…), or resume a Thought")),
        (ResumeFrom::Id(id), Some(journal)) => {
            let Resolved { run_id, .. } = journal.resolve(ctx, &id).await?;
            let fold = journal.fold(ctx, &run_id).await?.ok_or_else(|| {
                Error::new(
                    ErrorKind::NotFound,
                    "journal",
                    "resume",
                    format!("what run {run_id} contained was erased"),
                )
                .suggest("begin a new run")
            })?;
            Ok(Found::Recorded(run_id, Box::new(fold)))
        }
        (ResumeFrom::Thought(thought), journal) => {
            let first = thought.iterations().last().map(|entry| match entry {
                Entry::Thought(first) => first.id().clone(),
                Entry::Reference(reference) => reference.id,
            });
            let id = thought.run_id().cloned().or(first).unwrap_or_else(|| thought.id().clone());
            if let Some(journal) = journal
                && let Some(fold) = journal.fold(ctx, &id).await?
            {
                return Ok(Found::Recorded(id, Box::new(fold)));
            }
            Ok(Found::Given(id, thought))
        }
    }
}

async fn recorded_performance(parts: &Parts, ctx: &Context, id: &Id) -> Result<Performance> {
    let mut timings = Timings::default();
    if let Some(journal) = &parts.journal {
        let journal: &dyn Journal = &**journal;
        for event in journal.events(ctx, id).await? {
            timings.observe(&event.kind);
        }
    }
    Ok(timings.performance())
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
