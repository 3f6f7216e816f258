//! Erased text is nowhere in the files.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use sifaka_core::journal::{Retention, Verify};
use sifaka_core::{Context, Id, Journal};
use sifaka_store::{SqliteJournal, SqliteOptions};
use sifaka_testkit::journal::{
    generated, numbered, retrieved, started, still_context, whole_run, write,
};

use crate::sqlite::fresh;

/// How often a text occurs in the journal's files, log and index included.
fn occurrences(folder: &Path, text: &str) -> usize {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.is_file())
        .map(|path| {
            // What is not text is replaced; what is sought stays as it is.
            String::from_utf8_lossy(&fs::read(path).unwrap()).matches(text).count()
        })
        .sum()
}

/// A run that says its secret in every place that can hold a text.
async fn tell(ctx: &Context, journal: &SqliteJournal, secret: &str, filler: usize) -> Id {
    let run = Id::new(ctx);
    let mut first = started(&run, &format!("the prompt is {secret}"));
    if let sifaka_core::EventKind::RunStarted { tags, .. } = &mut first {
        tags.insert("who".into(), secret.to_owned());
    }
    let body = format!("{secret} {}", "0123456789".repeat(filler));
    let kinds = vec![first, generated(&body), retrieved(&body), retrieved(&body.repeat(30))];
    write(ctx, journal, &run, &numbered(ctx, &run, 0, kinds)).await.unwrap();
    run
}

#[tokio::test]
async fn the_bytes_of_an_erased_run_are_gone() {
    let (journal, folder) = fresh();
    let (ctx, _) = still_context();
    let before = tell(&ctx, &journal, "quokka", 10).await;
    let run = tell(&ctx, &journal, "axolotl", 300).await;
    let after = tell(&ctx, &journal, "quokka", 10).await;
    assert!(occurrences(folder.path(), "axolotl") > 30, "the search finds what is there");

    assert!(journal.erase(&ctx, &run, "asked for").await.unwrap());
    assert_eq!(occurrences(folder.path(), "axolotl"), 0, "while it is open");
    for run in [before, after] {
        assert_eq!(journal.events(&ctx, &run).await.unwrap().len(), 4);
    }
    assert!(journal.verify(&ctx, &Verify::default()).await.unwrap().is_clean());
    drop(journal);
    assert_eq!(occurrences(folder.path(), "axolotl"), 0, "and when it is closed");
    assert!(occurrences(folder.path(), "quokka") > 0);
}

#[tokio::test]
async fn pruning_gives_space_back() {
    let (journal, folder) = fresh();
    let (ctx, _) = still_context();
    for _ in 0..50 {
        tell(&ctx, &journal, "axolotl", 200).await;
    }
    let run = Id::new(&ctx);
    write(&ctx, &journal, &run, &whole_run(&ctx, &run, "stays")).await.unwrap();
    let path = folder.path().join("journal.db");
    let keep = Retention { newest: Some(1), ..Retention::default() };
    assert_eq!(journal.prune(&ctx, &keep).await.unwrap().len(), 50);
    let size = fs::metadata(&path).unwrap().len();
    assert!(size < 200_000, "{size}");
    assert_eq!(occurrences(folder.path(), "axolotl"), 0);
    let found = journal.verify(&ctx, &Verify::default()).await.unwrap();
    assert!(found.is_clean(), "{:?}", found.problems);
    assert_eq!((found.erased, found.events), (200, 207));
    assert_eq!(journal.events(&ctx, &run).await.unwrap().len(), 7);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Erasing in any order, with pruning in between, leaves no copy of an erased text in the
    /// slack of any page, and every other run whole.
    #[test]
    fn erased_texts_leave_no_copies(
        sizes in prop::collection::vec(0_usize..600, 4..24),
        order in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("journal.db");
            let journal = SqliteJournal::open(path, SqliteOptions::default()).unwrap();
            let (ctx, clock) = still_context();
            let mut runs = Vec::new();
            for (n, size) in sizes.iter().enumerate() {
                clock.advance(std::time::Duration::from_secs(1));
                let secret = format!("<secret-{n}>");
                let run = tell(&ctx, &journal, &secret, *size).await;
                runs.push((secret, run, true));
            }
            for (which, by_pruning) in order {
                if by_pruning {
                    // All but the newest half of those that are left.
                    let left = runs.iter().filter(|(_, _, there)| *there).count();
                    let keep = Retention { newest: Some(left / 2), ..Retention::default() };
                    let gone = journal.prune(&ctx, &keep).await.unwrap();
                    for (_, run, there) in &mut runs {
                        *there &= !gone.contains(run);
                    }
                } else {
                    let (_, run, there) = which.get(&runs);
                    assert_eq!(journal.erase(&ctx, run, "asked for").await.unwrap(), *there);
                    let at = which.index(runs.len());
                    runs[at].2 = false;
                }
                for (secret, run, there) in &runs {
                    let count = occurrences(folder.path(), secret);
                    assert_eq!(count > 0, *there, "{secret}: {count}");
                    let events = journal.events(&ctx, run).await.unwrap().len();
                    assert_eq!(events, if *there { 4 } else { 0 });
                }
            }
            let found = journal.verify(&ctx, &Verify::default()).await.unwrap();
            assert!(found.is_clean(), "{:?}", found.problems);
        });
    }
}
