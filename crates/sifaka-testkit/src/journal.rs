//! What every journal must do. Each trial gets a journal with nothing in it.
//!
//! [`journal_trials!`](crate::journal_trials) makes a test of each.

mod content;
mod erasing;
mod finding;
mod writing;

use std::collections::BTreeMap;
use std::sync::Arc;

use sifaka_core::event::{EndReason, Nanos};
use sifaka_core::journal::Verify;
use sifaka_core::model::Completion;
use sifaka_core::policy::Decision;
use sifaka_core::retriever::Stage;
use sifaka_core::{
    Body, Context, Document, Event, EventKind, Hash, Id, Journal, Result, Score, Usage,
};

use crate::clock::ManualClock;

pub use content::{stores_large_bodies_apart, takes_imported_thoughts, takes_texts_of_any_kind};
pub use erasing::*;
pub use finding::{lists_runs, resolves_beginnings};
pub use writing::*;

/// Makes a test of every trial. `$fresh` is called for each, and gives an empty journal and
/// whatever has to live as long as it does.
///
/// ```ignore
/// sifaka_testkit::journal_trials!(|| (MyJournal::new(), ()));
/// ```
#[macro_export]
macro_rules! journal_trials {
    ($fresh:expr) => {
        $crate::journal_trials!(@each $fresh;
            gives_back_what_was_committed,
            goes_on_where_a_run_was_left,
            keeps_runs_apart,
            has_one_writer_a_run,
            refuses_what_does_not_come_next,
            leaves_out_deltas,
            loses_only_what_was_not_committed,
            lists_runs,
            resolves_beginnings,
            stores_large_bodies_apart,
            erases_a_run,
            keeps_bodies_that_others_use,
            prunes_by_age_and_number,
            misses_a_foreign_head,
            knows_nothing_of_unknown_runs,
            takes_texts_of_any_kind,
            takes_imported_thoughts,
        );
    };
    (@each $fresh:expr; $($trial:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $trial() -> sifaka_core::Result<()> {
                let (journal, _keep) = ($fresh)();
                $crate::journal::$trial(&journal).await
            }
        )*
    };
}

/// A context on a clock that stands still, and that clock.
#[must_use]
pub fn still_context() -> (Context, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    (Context::builder().clock(Arc::clone(&clock) as _).build(), clock)
}

/// The events of these kinds as one run, beginning with number `first`.
pub fn numbered(ctx: &Context, run: &Id, first: u64, kinds: Vec<EventKind>) -> Vec<Arc<Event>> {
    let event = |(seq, kind)| Arc::new(Event { run_id: run.clone(), seq, time: ctx.now(), kind });
    (first..).zip(kinds).map(event).collect()
}

/// The first event of a run.
#[must_use]
pub fn started(run: &Id, prompt: &str) -> EventKind {
    tagged(run, prompt, &[])
}

fn tagged(run: &Id, prompt: &str, tags: &[(&str, &str)]) -> EventKind {
    let tags = tags.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    EventKind::RunStarted {
        thought_id: run.clone(),
        chain_id: Arc::from("trial@1"),
        prompt: Arc::from(prompt),
        system_prompt: None,
        tags: tags.collect::<BTreeMap<_, _>>(),
        metadata: None,
    }
}

/// A model's answer.
#[must_use]
pub fn generated(text: &str) -> EventKind {
    EventKind::Generated {
        model: Arc::from("mock"),
        completions: vec![Completion::new(text)],
        usage: Usage::default(),
        provider: Default::default(),
        raw: None,
        seconds: Nanos(1_500_000_000),
    }
}

/// The choice of the first candidate.
#[must_use]
pub fn chosen(passed: bool, value: f64) -> EventKind {
    EventKind::Chosen { candidate: 0, score: Score { passed, value } }
}

/// The end of a run.
#[must_use]
pub fn finished(best: &Id, passed: bool, value: f64) -> EventKind {
    EventKind::RunFinished {
        reason: if passed { EndReason::Passed } else { EndReason::MaxIterations },
        best: best.clone(),
        score: Score { passed, value },
        usage: Usage::default(),
        seconds: Nanos(2_000_000_000),
    }
}

/// A retriever's answer of one document.
#[must_use]
pub fn retrieved(text: &str) -> EventKind {
    EventKind::Retrieved {
        stage: Stage::PreGeneration,
        index: 0,
        retriever: Arc::from("mock"),
        query: Body::from("what"),
        documents: vec![Document::new(text)],
        seconds: Nanos(1),
    }
}

/// A whole run of two iterations.
pub fn whole_run(ctx: &Context, run: &Id, prompt: &str) -> Vec<Arc<Event>> {
    let second = Id::new(ctx);
    let kinds = vec![
        started(run, prompt),
        generated("first text"),
        chosen(false, 0.25),
        EventKind::IterationStarted { thought_id: second.clone(), decision: Decision::Repair },
        generated("second text"),
        chosen(true, 0.75),
        finished(&second, true, 0.75),
    ];
    numbered(ctx, run, 0, kinds)
}

/// Writes events to a run and closes it; gives the head.
///
/// # Errors
/// The journal's own.
pub async fn write(
    ctx: &Context,
    journal: &dyn Journal,
    run: &Id,
    events: &[Arc<Event>],
) -> Result<Hash> {
    let mut log = journal.open_run(ctx, run).await?;
    for event in events {
        log.append(event)?;
    }
    log.commit().await?;
    log.close().await
}

async fn assert_clean(ctx: &Context, journal: &dyn Journal) -> Result<()> {
    let found = journal.verify(ctx, &Verify::default()).await?;
    assert!(found.is_clean(), "{:#?}", found.problems);
    Ok(())
}

async fn assert_events(
    ctx: &Context,
    journal: &dyn Journal,
    run: &Id,
    expected: &[Arc<Event>],
) -> Result<()> {
    let events = journal.events(ctx, run).await?;
    let expected: Vec<Event> = expected.iter().map(|event| Event::clone(event)).collect();
    assert_eq!(events, expected);
    Ok(())
}

/// Fails a trial that went where it must not.
#[expect(clippy::panic, reason = "a trial fails by panicking")]
fn panic_on(what: &str) -> ! {
    panic!("this must not be: {what}")
}
