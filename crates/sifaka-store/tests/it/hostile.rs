//! Lesson 14: ids, beginnings, tags and keys are data, whatever they look like.

use std::sync::Arc;

use serde_json::json;
use sifaka_core::journal::{RunQuery, Verify};
use sifaka_core::store::{Find, Record};
use sifaka_core::{Context, ErrorKind, Event, EventKind, Filter, Id, Journal, Store};
use sifaka_store::{MemoryJournal, MemoryStore, SqliteJournal, SqliteOptions};
use sifaka_testkit::journal::{started, still_context, whole_run, write};

/// Texts that were code to somebody once: SQL, patterns, paths, query expressions, formats.
const HOSTILE: &[&str] = &[
    "x'; DROP TABLE runs; --",
    "x' OR '1'='1",
    "\"quoted\" and `ticked`",
    "%",
    "_",
    "*",
    "[a-z]*",
    "?1",
    ":run",
    "$(touch owned)",
    "../../outside",
    "/etc/passwd",
    "..\\outside",
    "{\"$where\": \"1\"}",
    "@tag:{*} | -@id:(x)",
    "!!python/object/apply:os.system [id]",
    "cos\u{2028}system",
];

/// A run whose id, prompt, tag and label all are the same text.
fn hostile_run(ctx: &Context, run: &Id, text: &str) -> Vec<Arc<Event>> {
    let mut events = whole_run(ctx, run, text);
    let mut kind = started(run, text);
    if let EventKind::RunStarted { tags, .. } = &mut kind {
        tags.insert(text.to_owned(), text.to_owned());
    }
    events[0] = Arc::new(Event { kind, ..Event::clone(&events[0]) });
    events
}

async fn everything_is_data(journal: &dyn Journal) {
    let (ctx, _) = still_context();
    let ids: Vec<Id> = HOSTILE.iter().map(|text| Id::parse(text).unwrap()).collect();
    for (id, text) in ids.iter().zip(HOSTILE) {
        write(&ctx, journal, id, &hostile_run(&ctx, id, text)).await.unwrap();
    }
    let found = |query: RunQuery| {
        let ctx = &ctx;
        async move {
            let runs = journal.runs(ctx, &query).await.unwrap();
            runs.into_iter().map(|run| run.run_id).collect::<Vec<_>>()
        }
    };
    assert_eq!(found(RunQuery::default()).await.len(), HOSTILE.len());
    for (id, text) in ids.iter().zip(HOSTILE) {
        let text = (*text).to_owned();
        assert_eq!(journal.resolve(&ctx, &text).await.unwrap().run_id, *id, "{text}");
        assert_eq!(journal.events(&ctx, id).await.unwrap().len(), 7, "{text}");
        let tag = Some((text.clone(), text.clone()));
        let tagged = found(RunQuery { tag, ..RunQuery::default() }).await;
        assert_eq!(tagged, std::slice::from_ref(id), "{text}");
        let containing =
            found(RunQuery { contains: Some(text.clone()), ..RunQuery::default() }).await;
        let expected = HOSTILE.iter().filter(|other| other.contains(text.as_str())).count();
        assert_eq!(containing.len(), expected, "{text} is looked for as it stands");
        let chain = Some(text.clone());
        assert!(found(RunQuery { chain, ..RunQuery::default() }).await.is_empty(), "{text}");
        let beginning = format!("{text}%");
        let error = journal.resolve(&ctx, &beginning).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{beginning}");
    }
    assert!(journal.erase(&ctx, &ids[0], HOSTILE[0]).await.unwrap());
    let left = found(RunQuery { contains: Some("'".into()), ..RunQuery::default() }).await;
    assert_eq!(left, [ids[1].clone()], "one was erased and no other");
    let verified = journal.verify(&ctx, &Verify::default()).await.unwrap();
    assert!(verified.is_clean(), "{:?}", verified.problems);
    assert_eq!((verified.runs, verified.erased), (HOSTILE.len() as u64, 7));
}

#[tokio::test]
async fn lesson_14_the_file_takes_hostile_texts_for_data() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("inner").join("journal.db");
    let journal = SqliteJournal::open(&path, SqliteOptions::default()).unwrap();
    everything_is_data(&journal).await;
    drop(journal);
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "nothing was written outside: {names:?}");
}

#[tokio::test]
async fn lesson_14_the_journal_in_memory_takes_hostile_texts_for_data() {
    everything_is_data(&MemoryJournal::new()).await;
}

#[tokio::test]
async fn lesson_14_the_store_takes_hostile_texts_for_data() {
    let (ctx, _) = still_context();
    let store = MemoryStore::new();
    for namespace in HOSTILE {
        for text in HOSTILE {
            let mut record = Record::new(&ctx, *namespace, *text, json!({ "body": text }));
            record.text = Some((*text).to_owned());
            record.metadata.insert((*namespace).to_owned(), json!(text));
            store.put(&ctx, record).await.unwrap();
        }
    }
    let all = HOSTILE.len();
    for text in HOSTILE {
        let record = store.get(&ctx, text, text).await.unwrap().unwrap();
        assert_eq!(record.body, json!({ "body": text }), "{text}");
        assert_eq!(store.count(&ctx, text, &Filter::All).await.unwrap(), all as u64, "{text}");
        for filter in [Filter::eq(*text, *text), Filter::In((*text).to_owned(), vec![json!(text)])]
        {
            let find = Find { filter, ..Find::all(*text, all) };
            let found = store.find(&ctx, &find).await.unwrap().records;
            assert_eq!(found, std::slice::from_ref(&record), "{text}");
        }
        let contains = Filter::Contains((*text).to_owned(), (*text).to_owned());
        let expected = HOSTILE.iter().filter(|other| other.contains(text)).count();
        assert_eq!(store.count(&ctx, text, &contains).await.unwrap(), expected as u64, "{text}");
        let after = store.list(&ctx, text, Some(text), all).await.unwrap();
        assert!(after.iter().all(|key| key.as_str() > *text), "{text}: {after:?}");
        assert!(store.delete(&ctx, text, text).await.unwrap(), "{text}");
        assert_eq!(store.count(&ctx, text, &Filter::All).await.unwrap(), all as u64 - 1, "{text}");
    }
}
