//! Whatever is changed behind the journal's back, verifying finds it.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::types::Value;
use sifaka_core::event::EndReason;
use sifaka_core::journal::{Verification, Verify};
use sifaka_core::{Event, EventKind, Hash, Id, Journal};
use sifaka_store::{SqliteJournal, SqliteOptions};
use sifaka_testkit::journal::{
    generated, numbered, retrieved, started, still_context, whole_run, write,
};

/// A small journal with a run of every sort, and its head.
fn sample() -> &'static (Vec<u8>, Hash) {
    static SAMPLE: OnceLock<(Vec<u8>, Hash)> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let head = block_on(make_sample(&path));
        (std::fs::read(path).unwrap(), head)
    })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}

async fn make_sample(path: &Path) -> Hash {
    let (ctx, _) = still_context();
    let journal = SqliteJournal::open(path, SqliteOptions::default()).unwrap();
    let [closed, resumed, open, erased] =
        ["closed", "resumed", "open", "erased"].map(|id| Id::parse(id).unwrap());
    write(&ctx, &journal, &erased, &whole_run(&ctx, &erased, "e")).await.unwrap();
    let mut events = whole_run(&ctx, &closed, "c");
    events[0] = tagged(&events[0]);
    write(&ctx, &journal, &closed, &events).await.unwrap();
    let large = retrieved(&"large ".repeat(4000));
    let kinds = vec![started(&resumed, "r"), large, generated("x")];
    write(&ctx, &journal, &resumed, &numbered(&ctx, &resumed, 0, kinds)).await.unwrap();
    let again = EventKind::RunResumed { chain_id: "trial@1".into(), changed: true };
    let end = EventKind::RunFinished {
        reason: EndReason::Cancelled,
        best: resumed.clone(),
        score: sifaka_core::Score { passed: false, value: 0.1 },
        usage: Default::default(),
        seconds: Default::default(),
    };
    let more = numbered(&ctx, &resumed, 3, vec![again, end]);
    write(&ctx, &journal, &resumed, &more).await.unwrap();
    let mut log = journal.open_run(&ctx, &open).await.unwrap();
    for event in &whole_run(&ctx, &open, "o")[..3] {
        log.append(event).unwrap();
    }
    log.commit().await.unwrap();
    drop(log);
    journal.erase(&ctx, &erased, "asked for").await.unwrap();
    journal.head(&ctx).await.unwrap()
}

/// The same beginning, with two tags.
fn tagged(first: &Event) -> Arc<Event> {
    let mut first = first.clone();
    if let EventKind::RunStarted { tags, .. } = &mut first.kind {
        tags.extend([("team".to_owned(), "a".to_owned()), ("kind".to_owned(), "b".to_owned())]);
    }
    Arc::new(first)
}

/// What verifying says after `change` was made to the file.
fn after(change: impl FnOnce(&Connection) -> rusqlite::Result<()>) -> Option<Verification> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let (bytes, head) = sample();
    std::fs::write(&path, bytes).unwrap();
    let raw = Connection::open(&path).unwrap();
    raw.pragma_update(None, "foreign_keys", false).unwrap();
    change(&raw).ok()?;
    drop(raw);
    block_on(async {
        let journal = SqliteJournal::open(&path, SqliteOptions::default()).unwrap();
        let (ctx, _) = still_context();
        let what = Verify { head: Some(*head), run: None };
        Some(journal.verify(&ctx, &what).await.unwrap())
    })
}

fn problems(sql: &str) -> Vec<String> {
    after(|raw| raw.execute_batch(sql)).unwrap().problems
}

#[test]
fn the_untouched_journal_is_clean() {
    let found = after(|_| Ok(())).unwrap();
    assert!(found.is_clean(), "{:?}", found.problems);
    assert_eq!((found.runs, found.events, found.erased, found.blobs), (4, 22, 7, 1));
}

#[test]
fn problems_name_run_event_and_what() {
    let of = "(SELECT run_no FROM runs WHERE run_id = 'closed')";
    for (sql, expected) in [
        (
            format!("UPDATE events SET payload = 'x' WHERE run_no = {of} AND seq = 2"),
            "run closed, event 2: it cannot be read",
        ),
        (
            format!("UPDATE events SET payload = X'78' WHERE run_no = {of} AND seq = 2"),
            "run closed, event 2: its content was changed",
        ),
        (
            format!("UPDATE events SET time = time + 1 WHERE run_no = {of} AND seq = 2"),
            "run closed, event 2: its header was changed",
        ),
        (
            format!("DELETE FROM events WHERE run_no = {of} AND seq = 2"),
            "run closed, event 3: an event is missing or out of order",
        ),
        (
            format!("DELETE FROM events WHERE run_no = {of} AND seq = 6"),
            "run closed has 6 events; 7 were written",
        ),
        (
            format!("UPDATE events SET payload = NULL WHERE run_no = {of} AND seq = 2"),
            "run closed, event 2: its content is missing, and no tombstone says that it was erased",
        ),
        (
            format!("DELETE FROM events WHERE run_no = {of}"),
            "run closed has 0 events; 7 were written",
        ),
        ("DELETE FROM runs WHERE run_id = 'closed'".into(), "run closed is missing"),
        ("DELETE FROM chain WHERE n = 2".into(), "links 2 to 2 of the journal's chain are missing"),
        ("UPDATE bodies SET bytes = X'00'".into(), "was changed"),
        ("DELETE FROM bodies".into(), "is missing"),
        ("DELETE FROM blobs".into(), "run resumed, event 1: the body"),
        (
            "UPDATE runs SET score = 0.9 WHERE run_id = 'closed'".into(),
            "run closed: its entry in the list of runs does not fit its events",
        ),
        (
            "UPDATE runs SET events = events - 1 WHERE run_id = 'closed'".into(),
            "run closed has 7 events; its entry says 6",
        ),
        (
            "UPDATE runs SET closed = 0 WHERE run_id = 'closed'".into(),
            "run closed: its entry and the journal's chain differ on its end",
        ),
        (
            "UPDATE runs SET status = 3 WHERE run_id = 'closed'".into(),
            "run closed is marked as erased, without a tombstone",
        ),
        (
            "UPDATE events SET payload = X'7b7d' WHERE run_no = 1 AND seq = 0".into(),
            "run erased, event 0: it was erased, but its content is there",
        ),
        (
            format!("UPDATE prompts SET line = 'harmless' WHERE run_no = {of}"),
            "run closed: its prompt in the list of runs is not what was asked",
        ),
        (
            format!("DELETE FROM prompts WHERE run_no = {of}"),
            "run closed: its prompt in the list of runs is not what was asked",
        ),
        (
            "UPDATE prompts SET line = 'e' WHERE run_no = 1".into(),
            "run erased was erased, but its prompt is there",
        ),
        (
            "INSERT INTO prompts (run_no, line) VALUES (99, 'x')".into(),
            "1 prompts belong to runs that are missing",
        ),
        (
            format!("DELETE FROM tags WHERE run_no = {of}"),
            "run closed cannot be found by one of its tags",
        ),
        (
            format!("INSERT INTO tags (tag, run_no) VALUES (1, {of})"),
            "the index of tags has 1 entries that no event speaks of",
        ),
        (
            format!("DELETE FROM thoughts WHERE run_no = {of}"),
            "run closed cannot be found by its Thought ",
        ),
        (
            format!("INSERT INTO thoughts (thought_id, run_no) VALUES ('x', {of})"),
            "the index of thoughts has 1 entries that no event speaks of",
        ),
    ] {
        let problems = problems(&sql);
        let named = problems.iter().any(|problem| problem.contains(expected));
        assert!(named, "{sql}\nexpected: {expected}\ngot: {problems:#?}");
    }
}

/// An attacker who knows the schema cuts the tail off without a trace; a head that was printed
/// earlier still tells.
#[test]
fn a_tail_cut_off_cleanly_shows_against_a_head() {
    let cut = "
        DELETE FROM events WHERE run_no = (SELECT run_no FROM runs WHERE run_id = 'open');
        DELETE FROM prompts WHERE run_no = (SELECT run_no FROM runs WHERE run_id = 'open');
        DELETE FROM runs WHERE run_id = 'open';
        DELETE FROM chain WHERE n >= (SELECT n FROM chain WHERE run_id = 'open');
        UPDATE runs SET links = links - 1 WHERE run_id = 'erased';
        UPDATE runs SET status = 1 WHERE run_id = 'erased';";
    let problems = problems(cut);
    assert!(problems.iter().any(|problem| problem.contains("its tail was cut")), "{problems:#?}");
}

/// A change behind the journal's back.
#[derive(Clone, Debug)]
enum Change {
    /// One bit of one column of one row.
    Flip { table: &'static str, column: &'static str, row: usize, bit: usize },
    /// Two rows change places.
    Swap { row: usize, other: usize },
    /// One row goes.
    Delete { table: &'static str, row: usize },
}

fn change() -> impl Strategy<Value = Change> {
    let columns = prop::sample::select(vec![
        ("events", "run_no"),
        ("events", "seq"),
        ("events", "time"),
        ("events", "kind"),
        ("events", "payload_hash"),
        ("events", "hash"),
        ("events", "payload"),
        ("events", "payload"),
        ("chain", "n"),
        ("chain", "kind"),
        ("chain", "run_id"),
        ("chain", "events"),
        ("chain", "event"),
        ("chain", "time"),
        ("chain", "reason"),
        ("chain", "hash"),
        ("runs", "run_id"),
        ("runs", "chain_id"),
        ("runs", "started"),
        ("runs", "updated"),
        ("runs", "events"),
        ("runs", "last_hash"),
        ("runs", "closed"),
        ("runs", "status"),
        ("runs", "iterations"),
        ("runs", "links"),
        ("bodies", "bytes"),
        ("blobs", "hash"),
        ("prompts", "run_no"),
        ("prompts", "line"),
        ("tags", "tag"),
        ("tags", "run_no"),
        ("thoughts", "thought_id"),
        ("thoughts", "run_no"),
    ]);
    let tables = prop::sample::select(vec![
        "events", "chain", "runs", "bodies", "blobs", "prompts", "tags", "thoughts",
    ]);
    prop_oneof![
        8 => (columns, any::<usize>(), any::<usize>()).prop_map(|((table, column), row, bit)| {
            Change::Flip { table, column, row, bit }
        }),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(row, other)| Change::Swap { row, other }),
        1 => (tables, any::<usize>()).prop_map(|(table, row)| Change::Delete { table, row }),
    ]
}

/// The key of a row, by its place.
fn key(raw: &Connection, table: &str, row: usize) -> rusqlite::Result<(String, Value)> {
    let column = match table {
        "events" => "event_no",
        "chain" => "n",
        "runs" | "prompts" => "run_no",
        "bodies" => "body_no",
        "tags" => "tag",
        "thoughts" => "thought_id",
        _ => "hash",
    };
    // What an erased run was asked and which Thoughts it had is forgotten on purpose.
    let table = match table {
        "prompts" | "thoughts" => {
            &format!("{table} WHERE run_no NOT IN (SELECT run_no FROM runs WHERE status >= 3)")
        }
        _ => table,
    };
    let count: usize = raw.query_row(&format!("SELECT count(*) FROM {table}"), [], |r| r.get(0))?;
    let sql = format!("SELECT {column} FROM {table} ORDER BY 1 LIMIT 1 OFFSET ?1");
    let value = raw.query_row(&sql, [row % count], |r| r.get(0))?;
    Ok((column.to_owned(), value))
}

fn flip(value: Value, bit: usize) -> Option<Value> {
    let flip_in = |mut bytes: Vec<u8>| {
        let at = bit.checked_rem(bytes.len() * 8)?;
        bytes[at / 8] ^= 1 << (at % 8);
        Some(bytes)
    };
    Some(match value {
        Value::Integer(number) => Value::Integer(number ^ (1 << (bit % 63))),
        // What is no text any more is stored as bytes, which is a change as well.
        Value::Text(text) => {
            let bytes = flip_in(text.into_bytes())?;
            String::from_utf8(bytes).map_or_else(|e| Value::Blob(e.into_bytes()), Value::Text)
        }
        Value::Blob(bytes) => Value::Blob(flip_in(bytes)?),
        Value::Null | Value::Real(_) => return None,
    })
}

/// Makes the change; `Err` when it cannot be made, or would not be one.
fn apply(raw: &Connection, change: &Change) -> rusqlite::Result<()> {
    let none = rusqlite::Error::QueryReturnedNoRows;
    match *change {
        Change::Flip { table, column, row, bit } => {
            let (name, key) = key(raw, table, row)?;
            let sql = format!("SELECT {column} FROM {table} WHERE {name} = ?1");
            let value = raw.query_row(&sql, [&key], |r| r.get(0))?;
            let flipped = flip(value, bit).ok_or(none)?;
            let sql = format!("UPDATE {table} SET {column} = ?1 WHERE {name} = ?2");
            raw.execute(&sql, [&flipped, &key]).map(drop)
        }
        Change::Swap { row, other } => {
            let ((_, one), (_, two)) = (key(raw, "events", row)?, key(raw, "events", other)?);
            if one == two {
                return Err(none);
            }
            // Their places change, and all else stays.
            let place = |key: &Value| {
                raw.query_row("SELECT run_no, seq FROM events WHERE event_no = ?1", [key], |r| {
                    Ok((r.get::<_, i64>(0)?, r.get::<_, i64>(1)?))
                })
            };
            let (first, second) = (place(&one)?, place(&two)?);
            let put = |key: &Value, (run_no, seq): (i64, i64)| {
                let sql = "UPDATE events SET run_no = ?1, seq = ?2 WHERE event_no = ?3";
                raw.execute(sql, rusqlite::params![run_no, seq, key])
            };
            put(&one, (-1, -1))?;
            put(&two, first)?;
            put(&one, second).map(drop)
        }
        Change::Delete { table, row } => {
            let (name, key) = key(raw, table, row)?;
            raw.execute(&format!("DELETE FROM {table} WHERE {name} = ?1"), [&key]).map(drop)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_single_change_is_found(change in change()) {
        if let Some(found) = after(|raw| apply(raw, &change)) {
            prop_assert!(!found.is_clean(), "{change:?} was not found");
        }
    }
}
