//! What is written is read back, once, in order, by one writer.

use std::sync::Arc;

use sifaka_core::event::Fold;
use sifaka_core::journal::{RunQuery, Verify};
use sifaka_core::model::Delta;
use sifaka_core::{ErrorKind, Event, EventKind, Hash, Id, Journal, Result, Thought};

use super::{
    assert_clean, assert_events, chosen, finished, generated, numbered, panic_on, started,
    still_context, whole_run, write,
};

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
