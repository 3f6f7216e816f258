//! Watching a store.

use futures_util::{FutureExt, StreamExt};
use serde_json::json;
use sifaka_core::store::{Change, Record};
use sifaka_core::{Context, ErrorKind, Store};
use sifaka_store::MemoryStore;

#[tokio::test]
async fn a_watcher_hears_of_its_namespace_in_order() {
    let ctx = Context::new();
    let store = MemoryStore::new();
    let record = Record::new(&ctx, "n", "k", json!(1));
    store.put(&ctx, record.clone()).await.unwrap();
    let mut changes = store.watch(&ctx, "n").await.unwrap();
    assert!(changes.next().now_or_never().is_none(), "what was before is not told");

    store.put(&ctx, Record::new(&ctx, "other", "k", json!(1))).await.unwrap();
    store.put(&ctx, record.clone()).await.unwrap(); // the same again is no change
    let changed = Record { body: json!(2), ..record };
    store.put(&ctx, changed.clone()).await.unwrap();
    store.delete(&ctx, "n", "k").await.unwrap();
    store.delete(&ctx, "n", "k").await.unwrap();
    let put = changes.next().await.unwrap().unwrap();
    assert_eq!(put, Change::Put(Box::new(changed)));
    let deleted = changes.next().await.unwrap().unwrap();
    assert_eq!(deleted, Change::Delete { namespace: "n".into(), key: "k".into() });
    assert!(changes.next().now_or_never().is_none());
    drop(store);
    assert!(changes.next().await.is_none(), "it ends with the store");
}

#[tokio::test]
async fn a_watcher_that_is_too_slow_is_told_so() {
    let ctx = Context::new();
    let store = MemoryStore::new();
    let mut changes = store.watch(&ctx, "n").await.unwrap();
    for n in 0..3000 {
        store.put(&ctx, Record::new(&ctx, "n", "k", json!(n))).await.unwrap();
    }
    let error = changes.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overloaded);
    assert!(error.message().contains("changes"), "{error}");
    assert!(changes.next().await.unwrap().is_ok(), "and then goes on");
}
