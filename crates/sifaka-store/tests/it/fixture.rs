//! Files written by earlier versions open, verify, fold and go on.

use sifaka_core::journal::{RunStatus, Verify};
use sifaka_core::{Context, Hash, Id, Journal, Thought};
use sifaka_store::{SqliteJournal, SqliteOptions};
use sifaka_testkit::journal::{
    generated, numbered, retrieved, started, still_context, whole_run, write,
};

/// The head that was printed when the first version's file was made.
const HEAD_V1: &str = include_str!("../fixtures/journal-v1.head");
const FILE_V1: &[u8] = include_bytes!("../fixtures/journal-v1.db");

#[tokio::test]
async fn a_journal_of_the_first_version_opens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    std::fs::write(&path, FILE_V1).unwrap();
    let journal = SqliteJournal::open(&path, SqliteOptions::default()).unwrap();
    let ctx = Context::new();
    let head = Hash::parse(HEAD_V1.trim()).unwrap();
    let found = journal.verify(&ctx, &Verify { head: Some(head), run: None }).await.unwrap();
    assert!(found.is_clean(), "{:?}", found.problems);
    assert_eq!((found.runs, found.events, found.erased, found.blobs), (4, 19, 7, 1));

    let statuses: Vec<(String, RunStatus)> = (journal.runs(&ctx, &Default::default()).await)
        .unwrap()
        .into_iter()
        .map(|run| (run.run_id.to_string(), run.status))
        .collect();
    let expected = [
        ("left", RunStatus::Open),
        ("with-blob", RunStatus::Open),
        ("finished", RunStatus::Finished),
        ("erased", RunStatus::Erased),
    ];
    assert_eq!(statuses, expected.map(|(id, status)| (id.to_owned(), status)));
    let thought = journal.thought(&ctx, "finished").await.unwrap().unwrap();
    assert_eq!(thought.text(), Some("second text"));
    assert_eq!(thought.iterations().count(), 2);

    let left = Id::parse("left").unwrap();
    let more = numbered(&ctx, &left, 2, vec![sifaka_testkit::journal::chosen(true, 1.0)]);
    write(&ctx, &journal, &left, &more).await.unwrap();
    let fold = journal.fold(&ctx, &left).await.unwrap().unwrap();
    assert_eq!(fold.best().map(|(best, _)| best).and_then(Thought::text), Some("so far"));
    assert!(journal.verify(&ctx, &Verify::default()).await.unwrap().is_clean());
}

/// Writes the file of the present version. Run it once when the schema changes, under a new name;
/// files of earlier versions stay as they are.
#[tokio::test]
#[ignore = "writes a fixture; run by hand when the schema changes"]
async fn write_fixture() {
    let Some(folder) = std::env::var_os("SIFAKA_WRITE_FIXTURE") else {
        panic!("set SIFAKA_WRITE_FIXTURE to the folder to write to");
    };
    let path = std::path::Path::new(&folder).join("journal-v1.db");
    assert!(!path.exists(), "a fixture is never written again");
    let (ctx, clock) = still_context();
    let journal = SqliteJournal::open(&path, SqliteOptions::default()).unwrap();
    let [erased, finished, with_blob, left] =
        ["erased", "finished", "with-blob", "left"].map(|id| Id::parse(id).unwrap());
    let step = || clock.advance(std::time::Duration::from_secs(1));
    write(&ctx, &journal, &erased, &whole_run(&ctx, &erased, "secret")).await.unwrap();
    step();
    write(&ctx, &journal, &finished, &whole_run(&ctx, &finished, "Say hello.")).await.unwrap();
    step();
    let kinds =
        vec![started(&with_blob, "blob"), retrieved(&"large ".repeat(3000)), generated("x")];
    write(&ctx, &journal, &with_blob, &numbered(&ctx, &with_blob, 0, kinds)).await.unwrap();
    step();
    let kinds = vec![started(&left, "left"), generated("so far")];
    write(&ctx, &journal, &left, &numbered(&ctx, &left, 0, kinds)).await.unwrap();
    journal.erase(&ctx, &erased, "asked for").await.unwrap();
    let head = journal.head(&ctx).await.unwrap();
    std::fs::write(path.with_extension("head"), format!("{head}\n")).unwrap();
    drop(journal);
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.pragma_update(None, "journal_mode", "delete").unwrap();
    // Small pages make a small file; everything else is as it was.
    raw.execute_batch("PRAGMA page_size = 512; VACUUM").unwrap();
}
