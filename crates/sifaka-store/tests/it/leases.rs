//! One writer a run, across journals and processes.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use sifaka_core::journal::{Retention, Verify};
use sifaka_core::{Context, ErrorKind, Id, Journal};
use sifaka_store::{SqliteJournal, SqliteOptions};
use sifaka_testkit::clock::ManualClock;
use sifaka_testkit::journal::{still_context, whole_run, write};

fn two() -> (SqliteJournal, SqliteJournal, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let open = || SqliteJournal::open(&path, SqliteOptions::default()).unwrap();
    (open(), open(), folder)
}

#[tokio::test]
async fn a_second_journal_is_turned_away_until_the_first_is_done() {
    let (one, two, _folder) = two();
    let (ctx, _) = still_context();
    let run = Id::new(&ctx);
    let events = whole_run(&ctx, &run, "p");
    let mut log = one.open_run(&ctx, &run).await.unwrap();
    let error = two.open_run(&ctx, &run).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("by somebody else, since 2"), "{error}");
    assert!(error.message().contains("and until 2"), "{error}");
    assert_eq!(two.erase(&ctx, &run, "x").await.ok(), Some(false), "it has nothing yet");
    log.append(&events[0]).unwrap();
    log.commit().await.unwrap();
    let error = two.erase(&ctx, &run, "x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    log.close().await.unwrap();

    write(&ctx, &two, &run, &events[1..]).await.unwrap();
    assert_eq!(one.events(&ctx, &run).await.unwrap().len(), 7, "each sees what the other wrote");
    assert!(one.verify(&ctx, &Verify::default()).await.unwrap().is_clean());
}

#[tokio::test]
async fn two_journals_write_different_runs_at_once() {
    let (one, two, _folder) = two();
    let (ctx, _) = still_context();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..40 {
        let journal = if n % 2 == 0 { one.clone() } else { two.clone() };
        let ctx = ctx.clone();
        tasks.spawn(async move {
            let run = Id::new(&ctx);
            write(&ctx, &journal, &run, &whole_run(&ctx, &run, "p")).await.unwrap();
        });
    }
    tasks.join_all().await;
    let found = two.verify(&ctx, &Verify::default()).await.unwrap();
    assert!(found.is_clean(), "{:?}", found.problems);
    assert_eq!((found.runs, found.events), (40, 280));
}

#[tokio::test]
async fn a_lease_that_ran_out_can_be_taken_and_the_old_writer_is_fenced_off() {
    let (one, two, folder) = two();
    let (early, _) = still_context();
    let run = Id::new(&early);
    let events = whole_run(&early, &run, "p");
    let mut old = one.open_run(&early, &run).await.unwrap();
    old.append(&events[0]).unwrap();
    old.commit().await.unwrap();

    // As if the old writer had hung for long: it renews its lease every ten seconds.
    expire(folder.path());
    let mut new = two.open_run(&early, &run).await.unwrap();
    old.append(&events[1]).unwrap();
    let error = old.commit().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.message().contains("taken over"), "{error}");
    new.append(&events[1]).unwrap();
    new.commit().await.unwrap();
    assert_eq!(old.close().await.unwrap_err().kind(), ErrorKind::Conflict);
    let error = one.open_run(&early, &run).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Conflict, "the old one's end does not free the new one's");
    new.close().await.unwrap();
    assert_eq!(one.events(&early, &run).await.unwrap().len(), 2);
    assert!(one.verify(&early, &Verify::default()).await.unwrap().is_clean());
}

/// Leases are between processes; what a run takes for the time is its own affair.
#[tokio::test]
async fn a_runs_own_clock_has_no_say_in_leases() {
    let (one, two, folder) = two();
    let at = |time: &str| {
        let clock = Arc::new(ManualClock::starting_at(time.parse().unwrap()));
        Context::builder().clock(clock).build()
    };
    let (past, future) = (at("1999-01-01T00:00:00Z"), at("2199-01-01T00:00:00Z"));
    let conflict = Some(ErrorKind::Conflict);
    for (holder, other) in [(&past, &Context::new()), (&past, &future), (&future, &past)] {
        let run = Id::new(&Context::new());
        let events = whole_run(holder, &run, "p");
        let mut log = one.open_run(holder, &run).await.unwrap();
        log.append(&events[0]).unwrap();
        log.commit().await.unwrap();
        assert_eq!(two.open_run(other, &run).await.err().map(|e| e.kind()), conflict);
        assert_eq!(two.erase(other, &run, "x").await.err().map(|e| e.kind()), conflict);
        let all = Retention { newest: Some(0), ..Retention::default() };
        assert!(!two.prune(other, &all).await.unwrap().contains(&run), "it is being written");
        log.append(&events[1]).unwrap();
        log.close().await.unwrap();
    }
    // One that ran out in truth is free, although its run is far in the future.
    let run = Id::new(&future);
    let log = one.open_run(&future, &run).await.unwrap();
    expire(folder.path());
    two.open_run(&past, &run).await.unwrap().close().await.unwrap();
    drop(log);
}

/// Ends every lease, as if its holder had not been heard of for long.
fn expire(folder: &std::path::Path) {
    let raw = rusqlite::Connection::open(folder.join("journal.db")).unwrap();
    assert_eq!(raw.execute("UPDATE leases SET expires = 1", []).unwrap(), 1);
}

#[tokio::test]
async fn a_lease_is_renewed_while_its_log_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let brief = SqliteOptions { lease: Duration::from_millis(60), ..SqliteOptions::default() };
    let one = SqliteJournal::open(&path, brief).unwrap();
    let ctx = Context::new();
    let run = Id::new(&ctx);
    let log = one.open_run(&ctx, &run).await.unwrap();
    let raw = rusqlite::Connection::open(&path).unwrap();
    let expiry =
        || raw.query_row("SELECT expires FROM leases", [], |r| r.get::<_, i64>(0)).unwrap();
    let first = expiry();
    // However slow the machine is, some renewal comes.
    while expiry() == first {
        ctx.sleep(Duration::from_millis(5)).await.unwrap();
    }
    assert!(expiry() > first);
    drop(log);
}

#[tokio::test]
async fn giving_up_while_waiting_for_a_run_lets_others_have_it() {
    let (one, _two, _folder) = two();
    let (ctx, _) = still_context();
    let run = Id::new(&ctx);
    // Polled once, so that the request is on its way, and dropped.
    let mut open = one.open_run(&ctx, &run);
    drop(futures_util::poll!(open.as_mut()));
    drop(open);
    for _ in 0..2 {
        // The lease that nobody took gives itself back behind the next request at the latest.
        if let Ok(log) = one.open_run(&ctx, &run).await {
            log.close().await.unwrap();
            return;
        }
    }
    panic!("the run is lost");
}

const CHILD: &str = "SIFAKA_STORE_TEST_JOURNAL";

/// Not a test by itself: the process that [`a_killed_writer_is_known_at_once`] kills.
#[tokio::test]
#[ignore = "started by another test"]
async fn child_that_waits_to_be_killed() {
    let path = std::env::var_os(CHILD).expect("started by another test");
    let journal = SqliteJournal::open(path, SqliteOptions::default()).unwrap();
    let ctx = Context::new();
    let run = Id::parse("killed").unwrap();
    let events = whole_run(&ctx, &run, "p");
    let mut log = journal.open_run(&ctx, &run).await.unwrap();
    for event in &events[..3] {
        log.append(event).unwrap();
    }
    log.commit().await.unwrap();
    log.append(&events[3]).unwrap();
    println!("committed");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_killed_writer_is_known_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "leases::child_that_waits_to_be_killed", "--nocapture"])
        .env(CHILD, &path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let told = lines.map_while(Result::ok).any(|line| line.contains("committed"));
    assert!(told, "the child ended early");

    let ctx = Context::new();
    let run = Id::parse("killed").unwrap();
    let journal = SqliteJournal::open(&path, SqliteOptions::default()).unwrap();
    let error = journal.open_run(&ctx, &run).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Conflict, "it lives");
    child.kill().unwrap();
    child.wait().unwrap();

    let log = journal.open_run(&ctx, &run).await.unwrap();
    assert_eq!(journal.events(&ctx, &run).await.unwrap().len(), 3, "what was acknowledged");
    log.close().await.unwrap();
    assert!(journal.verify(&ctx, &Verify::default()).await.unwrap().is_clean());
    let locks = std::fs::read_dir(folder.path().join("journal.db-writers")).unwrap().count();
    assert_eq!(locks, 1, "the dead one's lock file is gone");
}
