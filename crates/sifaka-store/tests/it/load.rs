//! Many runs at once.

use std::sync::Arc;

use proptest::prelude::*;
use sifaka_core::journal::Verify;
use sifaka_core::{Event, Id, Journal};
use sifaka_store::{MemoryJournal, SqliteJournal, SqliteOptions};
use sifaka_testkit::journal::{still_context, whole_run, write};

use crate::sqlite::fresh;

async fn sixty_four_at_once(journal: Arc<dyn Journal>) {
    let (ctx, _) = still_context();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..64 {
        let (journal, ctx) = (Arc::clone(&journal), ctx.clone());
        tasks.spawn(async move {
            let run = Id::new(&ctx);
            let events = whole_run(&ctx, &run, &format!("number {n}"));
            let mut log = journal.open_run(&ctx, &run).await.unwrap();
            for event in &events {
                log.append(event).unwrap();
                if event.kind.is_paid_for() {
                    log.commit().await.unwrap();
                } else {
                    log.flush().await.unwrap();
                }
            }
            log.close().await.unwrap();
            let stored = journal.events(&ctx, &run).await.unwrap();
            assert_eq!(stored, events.iter().map(|e| Event::clone(e)).collect::<Vec<_>>());
        });
    }
    tasks.join_all().await;
    let found = journal.verify(&ctx, &Verify::default()).await.unwrap();
    assert!(found.is_clean(), "{:?}", found.problems);
    assert_eq!((found.runs, found.events), (64, 64 * 7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_runs_at_once_in_a_file() {
    let (journal, _folder) = fresh();
    sixty_four_at_once(Arc::new(journal)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_runs_at_once_in_memory() {
    sixty_four_at_once(Arc::new(MemoryJournal::new())).await;
}

#[tokio::test]
async fn a_queue_that_is_smaller_than_an_event_still_moves() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions { queue_bytes: 1, readers: 1, ..SqliteOptions::default() };
    let journal = SqliteJournal::open(folder.path().join("journal.db"), options).unwrap();
    sixty_four_at_once(Arc::new(journal)).await;
}

#[tokio::test]
async fn a_journal_may_go_before_its_logs() {
    let (journal, folder) = fresh();
    let path = journal.path().to_owned();
    let (ctx, _) = still_context();
    let run = Id::new(&ctx);
    let events = whole_run(&ctx, &run, "p");
    let mut log = journal.open_run(&ctx, &run).await.unwrap();
    drop(journal);
    for event in &events {
        log.append(event).unwrap();
    }
    log.flush().await.unwrap();
    drop(log); // what was handed over is written before this returns
    let journal = SqliteJournal::open(path, SqliteOptions::default()).unwrap();
    assert_eq!(journal.events(&ctx, &run).await.unwrap().len(), 7);
    write(&ctx, &journal, &run, &[]).await.unwrap();
    drop(folder);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any run that a chain could write comes back as it was and verifies, whichever journal it
    /// is in and wherever it was committed.
    #[test]
    fn any_run_comes_back(
        random in sifaka_testkit::runs::run(),
        commits in prop::collection::vec(0_u8..3, 64),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (file, _folder) = fresh();
            let journals: [&dyn Journal; 2] = [&file, &MemoryJournal::new()];
            for journal in journals {
                let (ctx, _) = still_context();
                let run = random.events[0].run_id.clone();
                let mut log = journal.open_run(&ctx, &run).await.unwrap();
                for (event, commit) in random.events.iter().zip(commits.iter().cycle()) {
                    log.append(&Arc::new(event.clone())).unwrap();
                    match commit {
                        0 => log.flush().await.unwrap(),
                        1 => log.commit().await.unwrap(),
                        _ => {}
                    }
                }
                log.close().await.unwrap();
                let lasting = random.events.iter().filter(|e| !e.kind.is_transient());
                let mut previous = sifaka_core::Hash::ZERO;
                let sealed = journal.sealed(&ctx, &run).await.unwrap();
                assert_eq!(sealed.len(), lasting.clone().count());
                for (event, sealed) in lasting.zip(&sealed) {
                    assert_eq!(sealed.problem(previous, event.seq), None);
                    assert_eq!(sealed.header.time, event.time);
                    assert_eq!(&*sealed.header.kind, event.kind.name());
                    previous = sealed.hash;
                }
                let fold = journal.fold(&ctx, &run).await.unwrap().unwrap();
                assert_eq!(fold.next_seq(), sealed.len() as u64);
                let found = journal.verify(&ctx, &Verify::default()).await.unwrap();
                assert!(found.is_clean(), "{:?}", found.problems);
            }
        });
    }
}
