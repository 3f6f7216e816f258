//! Content goes, proof stays.

use std::time::Duration;

use sifaka_core::body::BLOB_THRESHOLD;
use sifaka_core::journal::{Retention, RunQuery, RunStatus, Verify};
use sifaka_core::{Context, ErrorKind, Hash, Id, Journal, Result};

use super::content::pointers;
use super::{
    assert_clean, numbered, panic_on, retrieved, started, still_context, tagged, whole_run, write,
};

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
