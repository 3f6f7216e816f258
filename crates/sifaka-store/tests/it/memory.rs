//! What is kept in memory does what every journal and every store must.

mod journal {
    use sifaka_store::MemoryJournal;

    sifaka_testkit::journal_trials!(|| (MemoryJournal::new(), ()));
}

mod bounded_journal {
    use sifaka_store::MemoryJournal;

    sifaka_testkit::journal_trials!(|| (MemoryJournal::bounded(100), ()));
}

mod store {
    use sifaka_store::MemoryStore;

    sifaka_testkit::store_trials!(|| (MemoryStore::new(), ()));
}

use std::sync::Arc;

use serde_json::json;
use sifaka_core::journal::{RunQuery, Verify};
use sifaka_core::store::{Record, Search};
use sifaka_core::{Context, ErrorKind, Id, Journal, Store};
use sifaka_store::{MemoryJournal, MemoryStore, StoreStatistics};
use sifaka_testkit::journal::{retrieved, still_context, whole_run, write};

#[tokio::test]
async fn a_bounded_journal_forgets_the_oldest_runs() {
    let (ctx, _) = still_context();
    let journal = MemoryJournal::bounded(2);
    let mut ids = Vec::new();
    let mut heads = Vec::new();
    let busy = Id::new(&ctx);
    let mut log = journal.open_run(&ctx, &busy).await.unwrap();
    log.append(&whole_run(&ctx, &busy, "busy")[0]).unwrap();
    log.commit().await.unwrap();
    for _ in 0..5 {
        let run = Id::new(&ctx);
        let mut events = whole_run(&ctx, &run, "p");
        let large = retrieved(&format!("{run}").repeat(1000));
        events.truncate(1);
        events.extend(sifaka_testkit::journal::numbered(&ctx, &run, 1, vec![large]));
        heads.push(write(&ctx, &journal, &run, &events).await.unwrap());
        journal.sealed(&ctx, &run).await.unwrap();
        ids.push(run);
    }
    let kept: Vec<Id> = (journal.runs(&ctx, &RunQuery::default()).await.unwrap())
        .into_iter()
        .map(|run| run.run_id)
        .collect();
    assert_eq!(kept, [ids[4].clone(), busy.clone()], "the one being written stays");
    let last = Verify { head: Some(heads[4]), run: None };
    let found = journal.verify(&ctx, &last).await.unwrap();
    assert!(found.is_clean(), "{:?}", found.problems);
    assert_eq!(found.blobs, 1, "bodies go with their runs");
    log.close().await.unwrap();
}

#[tokio::test]
async fn clones_share_the_record() {
    let (ctx, _) = still_context();
    let journal = MemoryJournal::new();
    let run = Id::new(&ctx);
    write(&ctx, &journal.clone(), &run, &whole_run(&ctx, &run, "p")).await.unwrap();
    assert_eq!(journal.events(&ctx, &run).await.unwrap().len(), 7);
}

#[tokio::test]
async fn what_was_not_used_for_longest_makes_room() {
    let ctx = Context::new();
    let store = MemoryStore::with_capacity(3);
    let put =
        async |key: &str| store.put(&ctx, Record::new(&ctx, "n", key, json!(0))).await.unwrap();
    for key in ["a", "b", "c"] {
        put(key).await;
    }
    assert!(store.get(&ctx, "n", "a").await.unwrap().is_some());
    put("d").await;
    assert!(store.get(&ctx, "n", "b").await.unwrap().is_none(), "a was used since");
    put("c").await;
    put("e").await;
    assert_eq!(store.list(&ctx, "n", None, 9).await.unwrap(), ["c", "d", "e"]);
    let expected = StoreStatistics { entries: 3, hits: 1, misses: 1, evictions: 2, expirations: 0 };
    assert_eq!(store.statistics(), expected);
}

#[tokio::test]
async fn searching_for_nothing_is_a_mistake() {
    let ctx = Context::new();
    let store = MemoryStore::new();
    let nothing = Search { namespace: "n".into(), limit: 1, ..Search::default() };
    let zero = Search { vector: Some(vec![0.0]), ..nothing.clone() };
    let nan = Search { vector: Some(vec![f32::NAN]), ..nothing.clone() };
    for search in [nothing, zero, nan] {
        let error = store.search(&ctx, &search).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
}

#[tokio::test]
async fn words_and_vector_count_half_each() {
    let ctx = Context::new();
    let store = MemoryStore::new();
    for (key, text, vector) in [
        ("both", "blue moon", vec![1.0, 0.0]),
        ("words", "blue moon", vec![-1.0, 0.0]),
        ("vector", "green", vec![1.0, 0.0]),
    ] {
        let (text, vector) = (Some(text.to_owned()), Some(vector));
        let record = Record::new(&ctx, "n", key, json!(0));
        store.put(&ctx, Record { text, vector, ..record }).await.unwrap();
    }
    let search = Search {
        namespace: "n".into(),
        text: Some("blue moon".into()),
        vector: Some(vec![1.0, 0.0]),
        limit: 9,
        ..Search::default()
    };
    let hits = store.search(&ctx, &search).await.unwrap();
    let scores: Vec<(&str, f64)> =
        hits.iter().map(|hit| (hit.record.key.as_str(), hit.score)).collect();
    assert_eq!(scores, [("both", 1.0), ("vector", 0.5), ("words", 0.5)]);
}

#[tokio::test]
async fn a_store_can_be_shared() {
    let ctx = Context::new();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    store.put(&ctx, Record::new(&ctx, "n", "k", json!(0))).await.unwrap();
    let other = Arc::clone(&store);
    let ctx2 = ctx.clone();
    let found = tokio::spawn(async move { other.get(&ctx2, "n", "k").await }).await.unwrap();
    assert!(found.unwrap().is_some());
}
