//! A whole run of 4 generations, 12 validations and 3 critiques with a model that answers at once.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot run may panic")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use sifaka_benches::looping_chain;
use sifaka_core::Journal;
use sifaka_store::{MemoryJournal, SqliteJournal, SqliteOptions};

fn run(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let mut group = c.benchmark_group("run of 4 generations, 12 validations, 3 critiques");
    for (name, timings) in [("memory journal", true), ("memory journal, no timings", false)] {
        group.bench_function(name, |b| {
            b.to_async(&runtime).iter_custom(|rounds| async move {
                let mut spent = Duration::ZERO;
                let mut left = rounds;
                while left > 0 {
                    // A fresh journal now and then, so that its growth is not what is measured.
                    let batch = left.min(256);
                    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
                    let chain =
                        looping_chain().unwrap().timings(timings).journal(journal).build().unwrap();
                    let start = Instant::now();
                    for _ in 0..batch {
                        assert!(chain.run("Explain what a sifaka is.").await.unwrap().passed());
                    }
                    spent += start.elapsed();
                    left -= batch;
                }
                spent
            });
        });
    }
    group.bench_function("no journal", |b| {
        let chain = looping_chain().unwrap().build().unwrap();
        b.to_async(&runtime)
            .iter(|| async { chain.run("Explain what a sifaka is.").await.unwrap() });
    });
    group.sample_size(20);
    for concurrent in [1_u64, 64] {
        group.bench_function(format!("SQLite journal, {concurrent} at once, per run"), |b| {
            b.to_async(&runtime).iter_custom(|rounds| async move {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("journal.db");
                let journal = SqliteJournal::open(&path, SqliteOptions::default()).unwrap();
                let journal: Arc<dyn Journal> = Arc::new(journal);
                let chain = looping_chain().unwrap().journal(journal).build().unwrap();
                let prompts = vec!["Explain what a sifaka is."; (rounds * concurrent) as usize];
                let start = Instant::now();
                for outcome in chain.run_many(prompts, concurrent as usize).await {
                    assert!(outcome.unwrap().passed());
                }
                start.elapsed() / concurrent as u32
            });
        });
    }
    group.finish();
}

criterion_group!(benches, run);
criterion_main!(benches);
