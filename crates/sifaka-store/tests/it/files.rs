//! The file: how it is made, what it refuses, what happens when the disk does.

use std::fs;
use std::path::Path;

use sifaka_core::journal::Verify;
use sifaka_core::{ErrorKind, Id, Journal};
use sifaka_store::{SqliteJournal, SqliteOptions};
use sifaka_testkit::journal::{generated, numbered, started, still_context, whole_run, write};

use crate::sqlite::fresh;

fn refused(path: &Path) -> (ErrorKind, String) {
    let error = SqliteJournal::open(path, SqliteOptions::default()).unwrap_err();
    assert!(!error.suggestions().is_empty(), "{error}");
    (error.kind(), error.message().to_owned())
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_what_it_makes() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/journal.db");
    let journal = SqliteJournal::open(&path, SqliteOptions::default()).unwrap();
    let (ctx, _) = still_context();
    let run = Id::new(&ctx);
    let log = journal.open_run(&ctx, &run).await.unwrap();
    let mut seen = 0;
    let mut look = |folder: &Path| {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            let expected = if entry.path().is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode, expected, "{}", entry.path().display());
            seen += 1;
        }
    };
    look(folder.path());
    look(&folder.path().join("a"));
    look(&folder.path().join("a/b"));
    assert_eq!(seen, 6, "two folders, the file, its log and index, the folder of locks");
    drop(log);
}

#[tokio::test]
async fn nothing_is_left_beside_it_when_it_is_closed() {
    let (journal, folder) = fresh();
    let (ctx, _) = still_context();
    let run = Id::new(&ctx);
    write(&ctx, &journal, &run, &whole_run(&ctx, &run, "p")).await.unwrap();
    journal.head(&ctx).await.unwrap();
    drop(journal);
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["journal.db"]);
}

#[test]
fn many_may_make_it_at_once() {
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/journal.db");
        let open = || SqliteJournal::open(&path, SqliteOptions::default()).map(drop);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            for thread in threads {
                thread.join().unwrap().unwrap();
            }
        });
    }
}

#[test]
fn another_programs_file_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    fs::write(&text, "Dear diary, this is not a database. ".repeat(100)).unwrap();
    let (kind, message) = refused(&text);
    assert_eq!(kind, ErrorKind::Corrupt);
    assert!(message.contains("notes.txt") && message.contains("not a journal"), "{message}");

    let database = folder.path().join("other.db");
    let other = rusqlite::Connection::open(&database).unwrap();
    other.execute_batch("CREATE TABLE mine (x); INSERT INTO mine VALUES (1);").unwrap();
    drop(other);
    let before = fs::read(&database).unwrap();
    let (kind, message) = refused(&database);
    assert_eq!(kind, ErrorKind::InvalidInput);
    assert!(message.contains("another program"), "{message}");
    assert_eq!(fs::read(&database).unwrap(), before);
}

#[test]
fn a_newer_schema_is_refused() {
    let (journal, folder) = fresh();
    let path = journal.path().to_owned();
    drop(journal);
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.pragma_update(None, "user_version", 99).unwrap();
    drop(raw);
    let (kind, message) = refused(&path);
    assert_eq!(kind, ErrorKind::Unsupported);
    assert!(message.contains("99") && message.contains("newer"), "{message}");
    drop(folder);
}

#[test]
fn a_damaged_file_is_refused() {
    let (journal, folder) = fresh();
    let path = journal.path().to_owned();
    drop(journal);
    let mut bytes = fs::read(&path).unwrap();
    bytes[20..60].fill(0xaa);
    fs::write(&path, bytes).unwrap();
    let (kind, _) = refused(&path);
    assert_eq!(kind, ErrorKind::Corrupt);
    drop(folder);
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    // A file where a folder should be, and a folder where the file should be.
    for path in [file.join("journal.db"), folder.path().to_owned()] {
        let (kind, message) = refused(&path);
        assert_eq!(kind, ErrorKind::Storage);
        assert!(message.contains(folder.path().to_str().unwrap()), "{message}");
    }
}

#[test]
fn names_that_mean_something_to_sqlite_are_just_names() {
    let folder = tempfile::tempdir().unwrap();
    for name in [":memory:", "file:x?mode=memory", "a b'c.db"] {
        let path = folder.path().join(name);
        drop(SqliteJournal::open(&path, SqliteOptions::default()).unwrap());
        assert!(path.exists(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_nothing_that_was_acknowledged_and_writing_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let options = SqliteOptions { max_bytes: Some(256 * 1024), ..SqliteOptions::default() };
    let journal = SqliteJournal::open(&path, options).unwrap();
    let (ctx, _) = still_context();
    let (full, small) = (Id::new(&ctx), Id::new(&ctx));
    let big = "x".repeat(64 * 1024);
    let mut kinds = vec![started(&full, "fills the disk")];
    kinds.extend((0..8).map(|n| generated(&format!("{n}{big}"))));
    let events = numbered(&ctx, &full, 0, kinds);

    let mut log = journal.open_run(&ctx, &full).await.unwrap();
    let mut safe = 0;
    let error = loop {
        log.append(&events[safe]).unwrap();
        match log.commit().await {
            Ok(()) => safe += 1,
            Err(error) => break error,
        }
    };
    assert!((2..8).contains(&safe), "{safe}");
    assert_eq!(error.kind(), ErrorKind::Storage);
    assert!(error.message().contains("journal.db") && error.message().contains("full"), "{error}");
    assert!(error.suggestions()[0].contains("make room"));

    // Others, who need less, go on; and together with one that fails.
    let mut other = journal.open_run(&ctx, &small).await.unwrap();
    other.append(&numbered(&ctx, &small, 0, vec![started(&small, "small")])[0]).unwrap();
    let (failed, stored) = tokio::join!(log.commit(), other.commit());
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Storage);
    stored.unwrap();
    assert_eq!(journal.events(&ctx, &full).await.unwrap().len(), safe);
    assert!(journal.verify(&ctx, &Verify::default()).await.unwrap().is_clean());
    other.close().await.unwrap();

    // When there is room again, the run goes on.
    drop(log);
    drop(journal);
    let journal = SqliteJournal::open(&path, SqliteOptions::default()).unwrap();
    write(&ctx, &journal, &full, &events[safe..]).await.unwrap();
    assert_eq!(journal.events(&ctx, &full).await.unwrap().len(), events.len());
    assert!(journal.verify(&ctx, &Verify::default()).await.unwrap().is_clean());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_stored_is_stored_by_the_next_commit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let quick = std::time::Duration::from_millis(50);
    let options = SqliteOptions { busy_timeout: quick, ..SqliteOptions::default() };
    let journal = SqliteJournal::open(&path, options).unwrap();
    let (ctx, _) = still_context();
    let run = Id::new(&ctx);
    let events = whole_run(&ctx, &run, "p");
    let mut log = journal.open_run(&ctx, &run).await.unwrap();
    log.append(&events[0]).unwrap();
    log.commit().await.unwrap();

    let blocker = rusqlite::Connection::open(&path).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    log.append(&events[1]).unwrap();
    log.flush().await.unwrap();
    log.append(&events[2]).unwrap();
    let error = log.commit().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.kind().is_retryable());
    log.append(&events[3]).unwrap();
    blocker.execute_batch("ROLLBACK").unwrap();
    log.commit().await.unwrap();
    assert_eq!(journal.events(&ctx, &run).await.unwrap().len(), 4);
    log.close().await.unwrap();
    assert!(journal.verify(&ctx, &Verify::default()).await.unwrap().is_clean());
}
