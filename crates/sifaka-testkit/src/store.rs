//! What every store must do. Each trial gets a store with nothing in it; what a store says it
//! cannot do it must refuse.
//!
//! [`store_trials!`](crate::store_trials) makes a test of each.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use sifaka_core::store::{Change, Find, Record, Search, Sort};
use sifaka_core::{Context, ErrorKind, Filter, Result, Store};

use crate::clock::ManualClock;

/// Makes a test of every trial. `$fresh` is called for each, and gives an empty store and
/// whatever has to live as long as it does.
///
/// ```ignore
/// sifaka_testkit::store_trials!(|| (MyStore::new(), ()));
/// ```
#[macro_export]
macro_rules! store_trials {
    ($fresh:expr) => {
        $crate::store_trials!(@each $fresh;
            gives_back_what_was_put,
            keeps_the_first_created,
            deletes,
            takes_keys_as_data,
            lists_keys_in_order,
            filters_and_counts,
            sorts_and_pages,
            pages_are_stable_under_writes,
            lets_records_expire,
            searches_by_words,
            searches_by_vector,
            applies_batches,
            is_healthy,
        );
    };
    (@each $fresh:expr; $($trial:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $trial() -> sifaka_core::Result<()> {
                let (store, _keep) = ($fresh)();
                $crate::store::$trial(&store).await
            }
        )*
    };
}

fn context() -> (Context, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    (Context::builder().clock(Arc::clone(&clock) as _).build(), clock)
}

/// A record with these fields to filter by.
pub fn with_fields(ctx: &Context, namespace: &str, key: &str, fields: &Value) -> Record {
    let metadata: Map<String, Value> = fields.as_object().cloned().unwrap_or_default();
    Record { metadata, ..Record::new(ctx, namespace, key, json!({"key": key})) }
}

fn keys(records: &[Record]) -> Vec<&str> {
    records.iter().map(|record| record.key.as_str()).collect()
}

/// What was put is given back, equal, in its namespace and nowhere else.
pub async fn gives_back_what_was_put(store: &dyn Store) -> Result<()> {
    let (ctx, _) = context();
    let body = json!({"text": "größe 🧪 \u{0}", "n": [1, 2.5, null], "deep": {"a": {"b": true}}});
    let record = Record {
        text: Some("größe".into()),
        vector: Some(vec![0.5, -1.25, 3.0e-8]),
        metadata: json!({"n": 3, "s": "x"}).as_object().cloned().unwrap_or_default(),
        ..Record::new(&ctx, "thought", "a", body)
    };
    store.put(&ctx, record.clone()).await?;
    assert_eq!(store.get(&ctx, "thought", "a").await?.as_ref(), Some(&record));
    store.put(&ctx, record.clone()).await?;
    assert_eq!(store.get(&ctx, "thought", "a").await?.as_ref(), Some(&record));
    assert_eq!(store.count(&ctx, "thought", &Filter::All).await?, 1, "twice is once");
    assert!(store.get(&ctx, "document", "a").await?.is_none());
    assert!(store.get(&ctx, "thought", "b").await?.is_none());
    Ok(())
}

/// Putting again replaces everything but when it was created.
pub async fn keeps_the_first_created(store: &dyn Store) -> Result<()> {
    let (ctx, clock) = context();
    let first = Record::new(&ctx, "n", "k", json!(1));
    store.put(&ctx, first.clone()).await?;
    clock.advance(Duration::from_secs(9));
    let second = Record::new(&ctx, "n", "k", json!(2));
    store.put(&ctx, second.clone()).await?;
    let expected = Record { created: first.created, ..second };
    assert_eq!(store.get(&ctx, "n", "k").await?, Some(expected));
    Ok(())
}

/// What was deleted is gone, and only that.
pub async fn deletes(store: &dyn Store) -> Result<()> {
    let (ctx, _) = context();
    for key in ["a", "b"] {
        store.put(&ctx, Record::new(&ctx, "n", key, json!(null))).await?;
    }
    assert!(store.delete(&ctx, "n", "a").await?);
    assert!(!store.delete(&ctx, "n", "a").await?);
    assert!(!store.delete(&ctx, "m", "b").await?);
    assert!(store.get(&ctx, "n", "a").await?.is_none());
    assert!(store.get(&ctx, "n", "b").await?.is_some());
    Ok(())
}

/// No character of a key or namespace has a meaning.
pub async fn takes_keys_as_data(store: &dyn Store) -> Result<()> {
    let (ctx, _) = context();
    let hostile = [
        "../../etc/passwd",
        "a/b",
        "a:b",
        "*",
        "%",
        "_",
        "' OR 1=1 --",
        "\"",
        "\\",
        "{}",
        "🧪",
        " ",
        "a\nb",
        "A",
        "a",
    ];
    for key in hostile {
        store.put(&ctx, Record::new(&ctx, "n:*'", key, json!(key))).await?;
    }
    for key in hostile {
        let record = store.get(&ctx, "n:*'", key).await?;
        assert_eq!(record.map(|record| record.body), Some(json!(key)), "{key:?}");
    }
    assert_eq!(store.count(&ctx, "n:*'", &Filter::All).await?, hostile.len() as u64);
    assert!(store.delete(&ctx, "n:*'", "*").await?);
    assert_eq!(store.count(&ctx, "n:*'", &Filter::All).await?, hostile.len() as u64 - 1);
    assert_eq!(store.count(&ctx, "n", &Filter::All).await?, 0);
    let value = "x' OR 'a'='a";
    store.put(&ctx, with_fields(&ctx, "f", "k", &json!({"a'b": value}))).await?;
    assert_eq!(store.count(&ctx, "f", &Filter::eq("a'b", value)).await?, 1);
    assert_eq!(store.count(&ctx, "f", &Filter::eq("a'b", "x")).await?, 0);
    Ok(())
}

/// Keys come in order, a page at a time.
pub async fn lists_keys_in_order(store: &dyn Store) -> Result<()> {
    let (ctx, _) = context();
    for key in ["c", "a", "e", "b", "d"] {
        store.put(&ctx, Record::new(&ctx, "n", key, json!(0))).await?;
    }
    assert_eq!(store.list(&ctx, "n", None, 2).await?, ["a", "b"]);
    assert_eq!(store.list(&ctx, "n", Some("b"), 2).await?, ["c", "d"]);
    assert_eq!(store.list(&ctx, "n", Some("bb"), 9).await?, ["c", "d", "e"]);
    assert!(store.list(&ctx, "n", Some("e"), 9).await?.is_empty());
    assert!(store.list(&ctx, "m", None, 9).await?.is_empty());
    Ok(())
}

/// Filters find what fits them.
pub async fn filters_and_counts(store: &dyn Store) -> Result<()> {
    if !store.capabilities().filter {
        return Ok(());
    }
    let (ctx, _) = context();
    for (key, fields) in [
        ("a", json!({"n": 1, "s": "red", "l": ["x"]})),
        ("b", json!({"n": 2.5, "s": "green"})),
        ("c", json!({"s": "red", "l": ["x", "y"]})),
    ] {
        store.put(&ctx, with_fields(&ctx, "n", key, &fields)).await?;
    }
    for (filter, expected) in [
        (Filter::All, vec!["a", "b", "c"]),
        (Filter::eq("s", "red"), vec!["a", "c"]),
        (Filter::eq("n", 1.0), vec!["a"]),
        (Filter::In("s".into(), vec![json!("green"), json!("blue")]), vec!["b"]),
        (Filter::Between("n".into(), Some(json!(2)), None), vec!["b"]),
        (Filter::Contains("l".into(), "y".into()), vec!["c"]),
        (Filter::Exists("n".into()), vec!["a", "b"]),
        (Filter::eq("s", "red").and(Filter::Exists("n".into())), vec!["a"]),
        (Filter::Or(vec![Filter::eq("n", 1), Filter::eq("n", 2.5)]), vec!["a", "b"]),
        (Filter::Not(Box::new(Filter::eq("s", "red"))), vec!["b"]),
    ] {
        let page = store.find(&ctx, &Find { filter: filter.clone(), ..Find::all("n", 9) }).await?;
        assert_eq!(keys(&page.records), expected, "{filter:?}");
        assert_eq!(page.next, None);
        assert_eq!(store.count(&ctx, "n", &filter).await?, expected.len() as u64, "{filter:?}");
    }
    Ok(())
}

async fn all_pages(ctx: &Context, store: &dyn Store, mut find: Find) -> Result<Vec<String>> {
    let mut found = Vec::new();
    loop {
        let page = store.find(ctx, &find).await?;
        assert!(page.records.len() <= find.limit);
        found.extend(page.records.into_iter().map(|record| record.key));
        match page.next {
            Some(next) => find.after = Some(next),
            None => return Ok(found),
        }
    }
}

/// Pages of any size put together give every record once, in the order asked for.
pub async fn sorts_and_pages(store: &dyn Store) -> Result<()> {
    if !store.capabilities().sort {
        return Ok(());
    }
    let (ctx, clock) = context();
    for (key, fields) in [
        ("d", json!({"n": 2})),
        ("a", json!({"n": 10})),
        ("c", json!({"n": 2})),
        ("b", json!({})),
        ("e", json!({"n": -1})),
    ] {
        clock.advance(Duration::from_secs(1));
        store.put(&ctx, with_fields(&ctx, "n", key, &fields)).await?;
    }
    let by = |field: &str, descending| Some(Sort { field: field.into(), descending });
    for (sort, expected) in [
        (None, ["a", "b", "c", "d", "e"]),
        (by("n", false), ["e", "c", "d", "a", "b"]),
        (by("n", true), ["a", "c", "d", "e", "b"]),
        (by("created", false), ["d", "a", "c", "b", "e"]),
        (by("updated", true), ["e", "b", "c", "a", "d"]),
    ] {
        for limit in 1..=6 {
            let find = Find { sort: sort.clone(), ..Find::all("n", limit) };
            assert_eq!(all_pages(&ctx, store, find).await?, expected, "{sort:?} by {limit}");
        }
    }
    Ok(())
}

/// What is written between two pages neither repeats nor hides what was there all along.
pub async fn pages_are_stable_under_writes(store: &dyn Store) -> Result<()> {
    if !store.capabilities().sort {
        return Ok(());
    }
    let (ctx, _) = context();
    for n in 0..6 {
        let key = format!("k{n}");
        store.put(&ctx, with_fields(&ctx, "n", &key, &json!({"n": n * 10}))).await?;
    }
    let sort = Some(Sort { field: "n".into(), descending: false });
    let find = Find { sort, ..Find::all("n", 3) };
    let page = store.find(&ctx, &find).await?;
    assert_eq!(keys(&page.records), ["k0", "k1", "k2"]);
    store.delete(&ctx, "n", "k2").await?;
    store.put(&ctx, with_fields(&ctx, "n", "early", &json!({"n": 5}))).await?;
    let page = store.find(&ctx, &Find { after: page.next, ..find.clone() }).await?;
    assert_eq!(keys(&page.records), ["k3", "k4", "k5"]);
    let broken = store.find(&ctx, &Find { after: Some("not a cursor".into()), ..find }).await;
    assert_eq!(broken.err().map(|error| error.kind()), Some(ErrorKind::InvalidInput));
    Ok(())
}

/// An expired record is not there, whoever looks.
pub async fn lets_records_expire(store: &dyn Store) -> Result<()> {
    if !store.capabilities().expiry {
        return Ok(());
    }
    let (ctx, clock) = context();
    let brief = Record {
        expires: Some(ctx.now() + Duration::from_secs(60)),
        text: Some("word".into()),
        ..Record::new(&ctx, "n", "brief", json!(1))
    };
    store.put(&ctx, brief.clone()).await?;
    store.put(&ctx, Record::new(&ctx, "n", "lasting", json!(1))).await?;
    clock.advance(Duration::from_secs(59));
    assert!(store.get(&ctx, "n", "brief").await?.is_some());
    clock.advance(Duration::from_secs(1));
    assert!(store.get(&ctx, "n", "brief").await?.is_none());
    assert_eq!(store.list(&ctx, "n", None, 9).await?, ["lasting"]);
    assert_eq!(store.count(&ctx, "n", &Filter::All).await?, 1);
    assert_eq!(store.find(&ctx, &Find::all("n", 9)).await?.records.len(), 1);
    assert!(!store.delete(&ctx, "n", "brief").await?);
    let again = Record { expires: None, ..brief };
    store.put(&ctx, again.clone()).await?;
    clock.advance(Duration::from_secs(3600));
    assert!(store.get(&ctx, "n", "brief").await?.is_some(), "put again without an end");
    Ok(())
}

/// Words find the records that have them, best first; a store that cannot says so.
pub async fn searches_by_words(store: &dyn Store) -> Result<()> {
    let (ctx, _) = context();
    for (key, text, lang) in [
        ("a", "the release notes of the compiler", "en"),
        ("b", "the notes", "en"),
        ("c", "nothing of the kind", "en"),
        ("d", "release notes", "de"),
    ] {
        let record = with_fields(&ctx, "n", key, &json!({"lang": lang}));
        store.put(&ctx, Record { text: Some(text.into()), ..record }).await?;
    }
    let search = Search {
        namespace: "n".into(),
        text: Some("Release NOTES!".into()),
        filter: Filter::eq("lang", "en"),
        limit: 9,
        ..Search::default()
    };
    let result = store.search(&ctx, &search).await;
    if !store.capabilities().text_search {
        assert_eq!(result.err().map(|error| error.kind()), Some(ErrorKind::Unsupported));
        return Ok(());
    }
    let hits = result?;
    let found: Vec<&str> = hits.iter().map(|hit| hit.record.key.as_str()).collect();
    assert_eq!(found, ["a", "b"], "what has none of the words is not found");
    assert!(hits[0].score > hits[1].score);
    assert!(hits.iter().all(|hit| (0.0..=1.0).contains(&hit.score)));
    assert_eq!(store.search(&ctx, &Search { limit: 1, ..search }).await?.len(), 1);
    Ok(())
}

/// A vector finds the records nearest to it, best first; a store that cannot says so.
pub async fn searches_by_vector(store: &dyn Store) -> Result<()> {
    let (ctx, _) = context();
    for (key, vector) in
        [("near", vec![1.0, 0.1]), ("same", vec![2.0, 0.0]), ("away", vec![-1.0, 0.0])]
    {
        let record = Record::new(&ctx, "n", key, json!(0));
        store.put(&ctx, Record { vector: Some(vector), ..record }).await?;
    }
    let search = Search {
        namespace: "n".into(),
        vector: Some(vec![1.0, 0.0]),
        limit: 2,
        ..Search::default()
    };
    let result = store.search(&ctx, &search).await;
    if !store.capabilities().vector_search {
        assert_eq!(result.err().map(|error| error.kind()), Some(ErrorKind::Unsupported));
        return Ok(());
    }
    let hits = result?;
    let found: Vec<&str> = hits.iter().map(|hit| hit.record.key.as_str()).collect();
    assert_eq!(found, ["same", "near"]);
    assert!(hits.iter().all(|hit| (0.0..=1.0).contains(&hit.score)));
    let wrong = Search { vector: Some(vec![1.0, 0.0, 0.0]), ..search };
    let error = store.search(&ctx, &wrong).await.err();
    assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::InvalidInput), "another length");
    Ok(())
}

/// A batch is applied in its order.
pub async fn applies_batches(store: &dyn Store) -> Result<()> {
    let (ctx, _) = context();
    store.put(&ctx, Record::new(&ctx, "n", "old", json!(0))).await?;
    let put = |key: &str, n: u64| Change::Put(Box::new(Record::new(&ctx, "n", key, json!(n))));
    let delete = |key: &str| Change::Delete { namespace: "n".into(), key: key.into() };
    let changes = vec![put("a", 1), put("b", 1), delete("old"), put("a", 2), delete("b")];
    store.batch(&ctx, changes).await?;
    assert_eq!(store.list(&ctx, "n", None, 9).await?, ["a"]);
    assert_eq!(store.get(&ctx, "n", "a").await?.map(|record| record.body), Some(json!(2)));
    store.batch(&ctx, Vec::new()).await
}

/// A store that was just made can be used.
pub async fn is_healthy(store: &dyn Store) -> Result<()> {
    let (ctx, _) = context();
    store.health(&ctx).await?;
    assert!(!store.name().is_empty());
    Ok(())
}
