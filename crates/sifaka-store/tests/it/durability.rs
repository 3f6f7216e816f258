//! What was acknowledged is in the files, at every moment.

use std::fs;

use sifaka_core::journal::{RunStatus, Verify};
use sifaka_core::{Id, Journal};
use sifaka_store::{SqliteJournal, SqliteOptions};
use sifaka_testkit::journal::{still_context, whole_run, write};

use crate::sqlite::fresh;

#[tokio::test]
async fn files_copied_after_any_commit_hold_everything_up_to_it() {
    let (journal, folder) = fresh();
    let (ctx, _) = still_context();
    let run = Id::new(&ctx);
    let events = whole_run(&ctx, &run, "p");
    let mut log = journal.open_run(&ctx, &run).await.unwrap();
    for (at, event) in events.iter().enumerate() {
        log.append(event).unwrap();
        log.commit().await.unwrap();

        // As a crash leaves them: without the lock files of a process, and nothing closed.
        let copy = tempfile::tempdir().unwrap();
        for name in ["journal.db", "journal.db-wal"] {
            fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
        }
        let copied =
            SqliteJournal::open(copy.path().join("journal.db"), SqliteOptions::default()).unwrap();
        let found = copied.verify(&ctx, &Verify::default()).await.unwrap();
        assert!(found.is_clean(), "{:?}", found.problems);
        assert_eq!(copied.events(&ctx, &run).await.unwrap().len(), at + 1);
        write(&ctx, &copied, &run, &events[at + 1..]).await.unwrap();
        let runs = copied.runs(&ctx, &Default::default()).await.unwrap();
        assert_eq!((runs[0].status, runs[0].events), (RunStatus::Finished, 7));
        assert!(copied.verify(&ctx, &Verify::default()).await.unwrap().is_clean());
    }
    log.close().await.unwrap();
}
