//! What every journal must do. Each trial gets a journal with nothing in it.
//!
//! [`journal_trials!`](crate::journal_trials) makes a test of each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sifaka_core::body::BLOB_THRESHOLD;
use sifaka_core::event::{EndReason, Fold, Nanos};
use sifaka_core::journal::{Retention, RunQuery, RunStatus, Verify};
use sifaka_core::model::{Completion, Delta};
use sifaka_core::policy::Decision;
use sifaka_core::retriever::Stage;
use sifaka_core::{
    Body, Context, Document, ErrorKind, Event, EventKind, Hash, Id, Journal, Result, Score,
    Thought, Usage,
};

use crate::clock::ManualClock;

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

/// What was committed is read back, folds, verifies and is listed; closing moves the head.
pub async fn gives_back_what_was_committed(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    let run = Id::new(&ctx);
    let events = whole_run(&ctx, &run, "Say hello.");
    let before = journal.head(&ctx).await?;
    assert_eq!(before, Hash::ZERO, "nothing is in it");

    let mut log = journal.open_run(&ctx, &run).await?;
    let (some, rest) = events.split_at(3);
    for event in some {
        log.append(event)?;
    }
    log.flush().await?;
    for event in rest {
        log.append(event)?;
    }
    log.commit().await?;
    assert_events(&ctx, journal, &run, &events).await?;
    let open = journal.head(&ctx).await?;
    let head = log.close().await?;
    assert_ne!(head, open, "closing is on record");
    assert_eq!(journal.head(&ctx).await?, head);

    let sealed = journal.sealed(&ctx, &run).await?;
    let mut previous = Hash::ZERO;
    for (seq, event) in (0..).zip(&sealed) {
        assert_eq!(event.problem(previous, seq), None);
        previous = event.hash;
    }
    let Some(fold) = journal.fold(&ctx, &run).await? else { panic_on("no fold") };
    let live = Fold::of(events.iter().map(|event| &**event))?;
    assert_eq!(fold.thought().and_then(Thought::text), Some("second text"));
    assert_eq!(fold.next_seq(), live.next_seq());

    let found = journal.verify(&ctx, &Verify { head: Some(head), run: None }).await?;
    assert!(found.is_clean(), "{:?}", found.problems);
    assert_eq!((found.runs, found.events, found.erased), (1, 7, 0));
    assert_eq!(found.head, Some(head));
    Ok(())
}

/// A run that was closed can be opened and goes on with the next number and hash.
pub async fn goes_on_where_a_run_was_left(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    let run = Id::new(&ctx);
    let first = numbered(&ctx, &run, 0, vec![started(&run, "p"), generated("a")]);
    let head = write(&ctx, journal, &run, &first).await?;
    let resumed = EventKind::RunResumed { chain_id: Arc::from("trial@1"), changed: false };
    let more = vec![resumed, chosen(true, 1.0), finished(&run, true, 1.0)];
    let second = numbered(&ctx, &run, 2, more);
    let mut log = journal.open_run(&ctx, &run).await?;
    assert!(log.append(&first[1]).is_err(), "it is there already");
    for event in &second {
        log.append(event)?;
    }
    let newer = log.close().await?;
    assert_ne!(newer, head);
    assert_events(&ctx, journal, &run, &[first, second].concat()).await?;

    // Opened and closed without a word, nothing changes.
    let same = journal.open_run(&ctx, &run).await?.close().await?;
    assert_eq!(same, newer);
    let both = Verify { head: Some(head), run: Some(run) };
    let found = journal.verify(&ctx, &both).await?;
    assert!(found.is_clean(), "{:?}", found.problems);
    assert_eq!(found.events, 5);
    Ok(())
}

/// Two runs written in turn do not mix.
pub async fn keeps_runs_apart(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    let (one, two) = (Id::new(&ctx), Id::new(&ctx));
    let (a, b) = (whole_run(&ctx, &one, "one"), whole_run(&ctx, &two, "two"));
    let mut log_a = journal.open_run(&ctx, &one).await?;
    let mut log_b = journal.open_run(&ctx, &two).await?;
    for (event_a, event_b) in a.iter().zip(&b) {
        log_a.append(event_a)?;
        log_b.append(event_b)?;
        log_a.flush().await?;
        log_b.commit().await?;
    }
    log_b.close().await?;
    log_a.close().await?;
    assert_events(&ctx, journal, &one, &a).await?;
    assert_events(&ctx, journal, &two, &b).await?;
    assert_clean(&ctx, journal).await
}

/// A second writer is turned away until the first is gone.
pub async fn has_one_writer_a_run(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    let (run, other) = (Id::new(&ctx), Id::new(&ctx));
    let first = journal.open_run(&ctx, &run).await?;
    let Err(error) = journal.open_run(&ctx, &run).await else { panic_on("two writers") };
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains(run.as_str()), "{error}");
    assert!(!error.suggestions().is_empty());
    drop(journal.open_run(&ctx, &other).await?);
    drop(first);
    drop(journal.open_run(&ctx, &run).await?);
    journal.open_run(&ctx, &run).await?.close().await?;
    journal.open_run(&ctx, &run).await?.close().await?;
    assert!(journal.runs(&ctx, &RunQuery::default()).await?.is_empty(), "nothing was written");
    Ok(())
}

/// Gaps, repetitions and other runs' events are refused, and do no harm.
pub async fn refuses_what_does_not_come_next(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    let (run, other) = (Id::new(&ctx), Id::new(&ctx));
    let events = whole_run(&ctx, &run, "p");
    let mut log = journal.open_run(&ctx, &run).await?;
    assert!(log.append(&events[1]).is_err(), "a gap");
    log.append(&events[0])?;
    assert!(log.append(&events[0]).is_err(), "a repetition");
    assert!(log.append(&events[2]).is_err(), "a gap");
    let foreign = numbered(&ctx, &other, 1, vec![generated("x")]);
    assert!(log.append(&foreign[0]).is_err(), "another run's");
    for event in &events[1..] {
        log.append(event)?;
    }
    log.close().await?;
    assert_events(&ctx, journal, &run, &events).await?;
    assert_clean(&ctx, journal).await
}

/// Deltas are streamed, never stored.
pub async fn leaves_out_deltas(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    let run = Id::new(&ctx);
    let events = whole_run(&ctx, &run, "p");
    let mut log = journal.open_run(&ctx, &run).await?;
    for event in &events {
        let delta = EventKind::Delta(Delta::Text { index: 0, text: "piece".into() });
        log.append(&Arc::new(Event { kind: delta, ..Event::clone(event) }))?;
        log.append(event)?;
    }
    log.close().await?;
    assert_events(&ctx, journal, &run, &events).await
}

/// A log that is dropped loses what was appended after the last commit, and nothing else.
pub async fn loses_only_what_was_not_committed(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    let run = Id::new(&ctx);
    let events = whole_run(&ctx, &run, "p");
    let mut log = journal.open_run(&ctx, &run).await?;
    for event in &events[..3] {
        log.append(event)?;
    }
    log.commit().await?;
    log.append(&events[3])?;
    drop(log);
    assert_events(&ctx, journal, &run, &events[..3]).await?;
    assert_clean(&ctx, journal).await?;
    write(&ctx, journal, &run, &events[3..]).await?;
    assert_events(&ctx, journal, &run, &events).await?;
    assert_clean(&ctx, journal).await
}

/// Runs are listed newest first, by chain, label, prompt, outcome and time.
pub async fn lists_runs(journal: &dyn Journal) -> Result<()> {
    let (ctx, clock) = still_context();
    let mut ids = Vec::new();
    for (at, prompt) in ["100% of it", "100 of it", "Größe"].into_iter().enumerate() {
        clock.advance(Duration::from_secs(10));
        let run = Id::new(&ctx);
        let number = at.to_string();
        let mut kinds = vec![tagged(&run, prompt, &[("n", number.as_str()), ("a'b", "c;--")])];
        match at {
            0 => kinds.extend([generated("x"), chosen(true, 0.5), finished(&run, true, 0.5)]),
            1 => kinds.extend([generated("x"), chosen(false, 0.0), finished(&run, false, 0.0)]),
            _ => {}
        }
        write(&ctx, journal, &run, &numbered(&ctx, &run, 0, kinds)).await?;
        ids.push(run);
    }
    let base = RunQuery::default;
    let text = |part: &str| RunQuery { contains: Some(part.into()), ..base() };
    let tag = |key: &str, value: &str| RunQuery { tag: Some((key.into(), value.into())), ..base() };
    let start = ctx.now() - Duration::from_secs(5);
    for (query, expected) in [
        (base(), vec![2, 1, 0]),
        (RunQuery { limit: 2, ..base() }, vec![2, 1]),
        (RunQuery { offset: 1, limit: 1, ..base() }, vec![1]),
        (RunQuery { offset: 9, ..base() }, vec![]),
        (RunQuery { chain: Some("trial@1".into()), ..base() }, vec![2, 1, 0]),
        (RunQuery { chain: Some("trial".into()), ..base() }, vec![]),
        (RunQuery { passed: Some(true), ..base() }, vec![0]),
        (RunQuery { passed: Some(false), ..base() }, vec![1]),
        (RunQuery { before: Some(start), ..base() }, vec![1, 0]),
        (text("100%"), vec![0]),
        (text("_"), vec![]),
        (text("GRÖSSE"), vec![]),
        (text("GRÖß"), vec![2]),
        (RunQuery { limit: 1, offset: 1, ..text("100") }, vec![0]),
        (tag("n", "1"), vec![1]),
        (tag("a'b", "c;--"), vec![2, 1, 0]),
        (tag("n", "'"), vec![]),
    ] {
        let runs = journal.runs(&ctx, &query).await?;
        let found: Vec<&Id> = runs.iter().map(|run| &run.run_id).collect();
        let expected: Vec<&Id> = expected.into_iter().map(|at: usize| &ids[at]).collect();
        assert_eq!(found, expected, "{query:?}");
    }
    let runs = journal.runs(&ctx, &base()).await?;
    let statuses: Vec<RunStatus> = runs.iter().map(|run| run.status).collect();
    assert_eq!(statuses, [RunStatus::Open, RunStatus::Finished, RunStatus::Finished]);
    let oldest = &runs[2];
    assert_eq!((oldest.passed, oldest.score), (Some(true), Some(0.5)));
    assert_eq!((oldest.iterations, oldest.events), (1, 4));
    assert_eq!(oldest.prompt.as_deref(), Some("100% of it"));
    assert_eq!(oldest.chain_id.as_deref(), Some("trial@1"));
    Ok(())
}

/// A run's id, a Thought's id and the unique beginning of either name the run; no character in
/// them has a meaning.
pub async fn resolves_beginnings(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    for (run, thoughts) in [("run-a1", vec!["th-1", "run-a1-2"]), ("run-b%_", vec!["th-2"])] {
        let run = Id::parse(run)?;
        let mut kinds = vec![started(&run, "p")];
        for thought in thoughts {
            let thought_id = Id::parse(thought)?;
            kinds.push(EventKind::IterationStarted { thought_id, decision: Decision::Repair });
        }
        write(&ctx, journal, &run, &numbered(&ctx, &run, 0, kinds)).await?;
    }
    for (prefix, run, thought) in [
        ("run-a1", "run-a1", None),
        ("run-a", "run-a1", None),
        ("run-a1-", "run-a1", Some("run-a1-2")),
        ("th-2", "run-b%_", Some("th-2")),
        ("run-b%", "run-b%_", None),
    ] {
        let found = journal.resolve(&ctx, prefix).await?;
        assert_eq!(found.run_id.as_str(), run, "{prefix}");
        assert_eq!(found.thought_id.as_ref().map(Id::as_str), thought, "{prefix}");
    }
    for (prefix, kind) in [
        ("run-", ErrorKind::InvalidInput),
        ("th", ErrorKind::InvalidInput),
        ("", ErrorKind::InvalidInput),
        ("%", ErrorKind::NotFound),
        ("run__", ErrorKind::NotFound),
        ("' OR 1=1 --", ErrorKind::NotFound),
        ("\0", ErrorKind::NotFound),
        ("run-a1\u{10ffff}", ErrorKind::NotFound),
        ("zzz", ErrorKind::NotFound),
    ] {
        let Err(error) = journal.resolve(&ctx, prefix).await else { panic_on(prefix) };
        assert_eq!(error.kind(), kind, "{prefix:?}: {error}");
        assert!(!error.suggestions().is_empty(), "{error}");
    }
    let Err(error) = journal.resolve(&ctx, "run-").await else { panic_on("ambiguous") };
    assert!(error.message().contains("run-a1") && error.message().contains("run-b%_"), "{error}");
    let thought = journal.thought(&ctx, "th-1").await?;
    assert_eq!(thought.map(|thought| thought.id().to_string()).as_deref(), Some("th-1"));
    Ok(())
}

/// The pointers to bodies stored apart in a run's events, as they are stored.
async fn pointers(ctx: &Context, journal: &dyn Journal, run: &Id) -> Result<Vec<Body>> {
    let mut found = Vec::new();
    for sealed in journal.sealed(ctx, run).await? {
        if let Some(event) = sealed.open()? {
            event.kind.for_each_body(|body| {
                if matches!(body, Body::Blob(_)) {
                    found.push(body.clone());
                }
            });
        }
    }
    Ok(found)
}

/// Large bodies, and ones that are not text, are stored once, and come back whole.
pub async fn stores_large_bodies_apart(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    let large = "ä".repeat(BLOB_THRESHOLD);
    let raw = [0_u8, 255, 1].repeat(5);
    let mut runs = Vec::new();
    for _ in 0..2 {
        let run = Id::new(&ctx);
        let EventKind::Generated { model, completions, usage, provider, seconds, .. } =
            generated("x")
        else {
            panic_on("the helper changed")
        };
        let raw = Some(Body::from_bytes(&raw));
        let kinds = vec![
            started(&run, "p"),
            retrieved(&large),
            EventKind::Generated { model, completions, usage, provider, raw, seconds },
        ];
        write(&ctx, journal, &run, &numbered(&ctx, &run, 0, kinds)).await?;
        runs.push(run);
    }
    for run in &runs {
        let bodies = pointers(&ctx, journal, run).await?;
        assert_eq!(bodies.len(), 2);
        assert_eq!(bodies[0].load(&ctx, journal).await?.as_str(), Some(large.as_str()));
        assert_eq!(bodies[1].load(&ctx, journal).await?.as_bytes(), Some(raw.as_slice()));
    }
    let found = journal.verify(&ctx, &Verify::default()).await?;
    assert!(found.is_clean(), "{:?}", found.problems);
    assert_eq!(found.blobs, 2, "stored once");
    Ok(())
}

/// Erasing takes the content and leaves the proof.
pub async fn erases_a_run(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    let (run, other) = (Id::new(&ctx), Id::new(&ctx));
    let large = "secret ".repeat(BLOB_THRESHOLD);
    let kinds = vec![tagged(&run, "secret", &[("k", "secret")]), retrieved(&large)];
    write(&ctx, journal, &run, &numbered(&ctx, &run, 0, kinds)).await?;
    let head = write(&ctx, journal, &other, &whole_run(&ctx, &other, "stays")).await?;
    let bodies = pointers(&ctx, journal, &run).await?;

    let log = journal.open_run(&ctx, &run).await?;
    let Err(error) = journal.erase(&ctx, &run, "asked").await else { panic_on("erased") };
    assert_eq!(error.kind(), ErrorKind::Conflict, "while it is being written");
    log.close().await?;

    assert!(journal.erase(&ctx, &run, "asked for").await?);
    assert!(!journal.erase(&ctx, &run, "asked for").await?, "it is erased already");
    assert!(!journal.erase(&ctx, &Id::new(&ctx), "unknown").await?);

    assert!(journal.events(&ctx, &run).await?.is_empty());
    assert!(journal.fold(&ctx, &run).await?.is_none());
    let sealed = journal.sealed(&ctx, &run).await?;
    assert_eq!(sealed.len(), 2, "headers stay");
    assert!(sealed.iter().all(|event| event.payload.is_none()));
    assert!(bodies[0].load(&ctx, journal).await.is_err());
    let runs = journal.runs(&ctx, &RunQuery::default()).await?;
    let Some(summary) = runs.iter().find(|summary| summary.run_id == run) else {
        panic_on("the run is not listed")
    };
    assert_eq!((summary.status, &summary.prompt), (RunStatus::Erased, &None));
    for query in [
        RunQuery { contains: Some("secret".into()), ..RunQuery::default() },
        RunQuery { tag: Some(("k".into(), "secret".into())), ..RunQuery::default() },
    ] {
        assert!(journal.runs(&ctx, &query).await?.is_empty());
    }
    let Err(error) = journal.open_run(&ctx, &run).await else { panic_on("opened") };
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");

    let found = journal.verify(&ctx, &Verify { head: Some(head), run: None }).await?;
    assert!(found.is_clean(), "{:?}", found.problems);
    assert_eq!((found.runs, found.events, found.erased, found.blobs), (2, 9, 2, 0));
    assert_eq!(journal.events(&ctx, &other).await?.len(), 7);
    Ok(())
}

/// A body stays while any run refers to it.
pub async fn keeps_bodies_that_others_use(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    let large = "shared ".repeat(BLOB_THRESHOLD);
    let mut runs = Vec::new();
    for _ in 0..2 {
        let run = Id::new(&ctx);
        let kinds = vec![started(&run, "p"), retrieved(&large)];
        write(&ctx, journal, &run, &numbered(&ctx, &run, 0, kinds)).await?;
        runs.push(run);
    }
    let body = pointers(&ctx, journal, &runs[1]).await?.remove(0);
    pointers(&ctx, journal, &runs[0]).await?;
    journal.erase(&ctx, &runs[0], "asked for").await?;
    assert_eq!(body.load(&ctx, journal).await?.as_str(), Some(large.as_str()));
    journal.erase(&ctx, &runs[1], "asked for").await?;
    assert!(body.load(&ctx, journal).await.is_err());

    // Stored anew, it is there again.
    let run = Id::new(&ctx);
    let kinds = vec![started(&run, "p"), retrieved(&large)];
    write(&ctx, journal, &run, &numbered(&ctx, &run, 0, kinds)).await?;
    let body = pointers(&ctx, journal, &run).await?.remove(0);
    assert_eq!(body.load(&ctx, journal).await?.as_str(), Some(large.as_str()));
    assert_clean(&ctx, journal).await
}

/// Pruning erases what is old or too many, and spares what is being written.
pub async fn prunes_by_age_and_number(journal: &dyn Journal) -> Result<()> {
    let (ctx, clock) = still_context();
    let mut ids = Vec::new();
    for _ in 0..6 {
        clock.advance(Duration::from_secs(60));
        let run = Id::new(&ctx);
        write(&ctx, journal, &run, &whole_run(&ctx, &run, "p")).await?;
        ids.push(run);
    }
    assert!(journal.prune(&ctx, &Retention::default()).await?.is_empty(), "nothing was asked");
    let third = ctx.now() - Duration::from_secs(3 * 60);
    let old = Retention { newer_than: Some(third), ..Retention::default() };
    let dry = Retention { dry_run: true, ..old.clone() };
    assert_eq!(journal.prune(&ctx, &dry).await?, ids[..2]);
    assert_eq!(journal.events(&ctx, &ids[0]).await?.len(), 7, "a dry run erases nothing");

    let log = journal.open_run(&ctx, &ids[0]).await?;
    assert_eq!(journal.prune(&ctx, &old).await?, ids[1..2], "the first is being written");
    drop(log);
    assert_eq!(journal.prune(&ctx, &old).await?, ids[..1]);
    let few = Retention { newest: Some(3), ..Retention::default() };
    assert_eq!(journal.prune(&ctx, &few).await?, ids[2..3]);
    assert!(journal.prune(&ctx, &few).await?.is_empty(), "three are left");
    let found = journal.verify(&ctx, &Verify::default()).await?;
    assert!(found.is_clean(), "{:?}", found.problems);
    assert_eq!((found.events, found.erased), (6 * 7, 3 * 7));
    assert_events_left(&ctx, journal, &ids[3..]).await
}

async fn assert_events_left(ctx: &Context, journal: &dyn Journal, runs: &[Id]) -> Result<()> {
    for run in runs {
        assert_eq!(journal.events(ctx, run).await?.len(), 7);
    }
    Ok(())
}

/// A head of another journal is a problem; every head of its own is not.
pub async fn misses_a_foreign_head(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    let mut heads = vec![journal.head(&ctx).await?];
    for _ in 0..3 {
        let run = Id::new(&ctx);
        heads.push(write(&ctx, journal, &run, &whole_run(&ctx, &run, "p")).await?);
    }
    for head in heads {
        let found = journal.verify(&ctx, &Verify { head: Some(head), run: None }).await?;
        assert!(found.is_clean(), "{:?}", found.problems);
    }
    let foreign = Hash::of(b"another journal");
    let found = journal.verify(&ctx, &Verify { head: Some(foreign), run: None }).await?;
    assert_eq!(found.problems.len(), 1, "{:?}", found.problems);
    assert!(found.problems[0].contains(&foreign.to_string()));
    Ok(())
}

/// An unknown run has no events; verifying it is an error.
pub async fn knows_nothing_of_unknown_runs(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    let run = Id::new(&ctx);
    assert!(journal.sealed(&ctx, &run).await?.is_empty());
    assert!(journal.events(&ctx, &run).await?.is_empty());
    assert!(journal.fold(&ctx, &run).await?.is_none());
    assert!(journal.blob(&ctx, &Hash::of(b"nothing")).await?.is_none());
    let only = Verify { run: Some(run), head: None };
    let Err(error) = journal.verify(&ctx, &only).await else { panic_on("verified") };
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(journal.verify(&ctx, &Verify::default()).await?.is_clean(), "an empty one is intact");
    Ok(())
}

/// Texts of any alphabet and size come back as they were.
pub async fn takes_texts_of_any_kind(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    let huge = "0123456789abcdef".repeat(10 * 1024 * 1024 / 16);
    let texts =
        ["", "\0 \u{7f} \u{200b}", "'; DROP TABLE runs; --", "🧪 日本語 ñ \u{202e}olleh", &huge];
    for text in texts {
        let run = Id::new(&ctx);
        let events = whole_run(&ctx, &run, text);
        write(&ctx, journal, &run, &events).await?;
        assert_events(&ctx, journal, &run, &events).await?;
        let runs = journal.runs(&ctx, &RunQuery { limit: 1, ..RunQuery::default() }).await?;
        assert!(runs[0].prompt.as_ref().is_some_and(|line| line.len() < 1000));
    }
    assert_clean(&ctx, journal).await
}

/// A Thought made elsewhere is listed and found by every iteration's id.
pub async fn takes_imported_thoughts(journal: &dyn Journal) -> Result<()> {
    let (ctx, _) = still_context();
    let first = Thought::new(&ctx, "Asked elsewhere").with_tag("from", "file").with_text("a");
    let second = first.next_iteration(&ctx).with_text("b");
    let run = first.id().clone();
    let imported = EventKind::Imported { thought: Box::new(second.clone()) };
    write(&ctx, journal, &run, &numbered(&ctx, &run, 0, vec![imported])).await?;
    let query = RunQuery {
        contains: Some("asked elsewhere".into()),
        tag: Some(("from".into(), "file".into())),
        ..RunQuery::default()
    };
    let runs = journal.runs(&ctx, &query).await?;
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].prompt.as_deref(), Some("Asked elsewhere"));
    assert_eq!((runs[0].iterations, runs[0].status), (2, RunStatus::Finished));
    let found = journal.thought(&ctx, second.id().as_str()).await?;
    assert_eq!(found.as_ref().and_then(Thought::text), Some("b"));
    assert_clean(&ctx, journal).await
}

/// Fails a trial that went where it must not.
#[expect(clippy::panic, reason = "a trial fails by panicking")]
fn panic_on(what: &str) -> ! {
    panic!("this must not be: {what}")
}
