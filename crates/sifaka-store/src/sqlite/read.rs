//! Reading: on connections of its own, on threads that may block.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};
use sifaka_core::event::Sealed;
use sifaka_core::journal::{Resolved, Retention, RunQuery, RunSummary};
use sifaka_core::{EventKind, Hash, Id, Result};

use super::failure::damaged;
use super::row::{EVENT_COLUMNS, RUN_COLUMNS, StoredEvent, StoredRun, near_nanos};
use super::writer::Refusal;
use crate::summary::{ENOUGH, asked, choose, content_fits};

/// A tag as the file has it: eight bytes of its hash.
pub(super) fn tag_code(key: &str, value: &str) -> i64 {
    let mut bytes = Vec::with_capacity(8 + key.len() + value.len());
    bytes.extend_from_slice(&(key.len() as u64).to_le_bytes());
    bytes.extend_from_slice(key.as_bytes());
    bytes.extend_from_slice(value.as_bytes());
    let mut code = [0; 8];
    code.copy_from_slice(&Hash::of(&bytes).as_bytes()[..8]);
    i64::from_le_bytes(code)
}

/// A run's events, those that were erased without payload.
pub(super) fn sealed(connection: &Connection, run: &Id) -> Result<Vec<Sealed>, Refusal> {
    let Some(stored) = StoredRun::find(connection, run)?.transpose()? else {
        return Ok(Vec::new());
    };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {EVENT_COLUMNS} FROM events WHERE run_no = ?1 ORDER BY seq"
    ))?;
    let mut rows = statement.query([stored.run_no])?;
    let mut events = Vec::with_capacity(usize::try_from(stored.events).unwrap_or(0).min(4096));
    let mut previous = Hash::ZERO;
    while let Some(row) = rows.next()? {
        let Some(StoredEvent { mut sealed, .. }) = StoredEvent::read(row, run, previous) else {
            return Err(damaged(&format!("event {} of run {run}", events.len())).into());
        };
        if stored.is_erased() {
            sealed.payload = None;
        }
        previous = sealed.hash;
        events.push(sealed);
    }
    Ok(events)
}

pub(super) fn runs(connection: &Connection, query: &RunQuery) -> Result<Vec<RunSummary>, Refusal> {
    let looks_inside = query.contains.is_some() || query.tag.is_some();
    let columns = RUN_COLUMNS.replace("run_no", "r.run_no");
    let tag = query.tag.as_ref().map(|(key, value)| tag_code(key, value));
    // What an event has to say is asked of the event; the rest is the database's to answer.
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {columns}, p.line FROM runs r LEFT JOIN prompts p ON p.run_no = r.run_no
         WHERE (?1 IS NULL OR r.chain_id = ?1)
           AND (?2 IS NULL OR r.passed = ?2)
           AND (?3 IS NULL OR r.started < ?3)
           AND (?4 IS NULL OR EXISTS (SELECT 1 FROM tags WHERE tag = ?4 AND run_no = r.run_no))
         ORDER BY r.started DESC, r.run_no DESC LIMIT ?5 OFFSET ?6"
    ))?;
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let limit = if query.limit == 0 || looks_inside { -1 } else { count(query.limit) };
    let offset = if looks_inside { 0 } else { count(query.offset) };
    let before = query.before.map(near_nanos);
    let mut rows =
        statement.query(params![query.chain, query.passed, before, tag, limit, offset])?;
    let mut found = Vec::new();
    let mut left_out = 0;
    while let Some(row) = rows.next()? {
        let Some(run) = StoredRun::read(row)? else { return Err(damaged("a run's entry").into()) };
        if looks_inside {
            if !fits(connection, &run, query)? {
                continue;
            }
            if left_out < query.offset {
                left_out += 1;
                continue;
            }
        }
        let is_erased = run.is_erased();
        let prompt = if is_erased { None } else { row.get(13)? };
        found.push(run.summary.into_run(run.run_id, run.events, prompt));
        if looks_inside && found.len() == query.limit {
            break;
        }
    }
    Ok(found)
}

fn fits(connection: &Connection, run: &StoredRun, query: &RunQuery) -> rusqlite::Result<bool> {
    if run.is_erased() {
        return Ok(false);
    }
    let first: Option<Vec<u8>> = connection
        .prepare_cached("SELECT payload FROM events WHERE run_no = ?1 AND seq = 0")?
        .query_row([run.run_no], |row| row.get(0))
        .optional()?
        .flatten();
    let kind: Option<EventKind> = first.and_then(|payload| serde_json::from_slice(&payload).ok());
    let asked = kind.as_ref().and_then(asked);
    Ok(asked.is_some_and(|(prompt, tags)| content_fits(query, prompt, tags)))
}

pub(super) fn resolve(connection: &Connection, prefix: &str) -> Result<Resolved, Refusal> {
    let id = |text: &str| Id::parse(text).ok();
    let limit = i64::try_from(ENOUGH).unwrap_or(i64::MAX);
    // Sorted by bytes, everything that begins with the prefix stands together, right after it.
    let mut runs = Vec::new();
    let mut statement = connection
        .prepare_cached("SELECT run_id FROM runs WHERE run_id >= ?1 ORDER BY run_id LIMIT ?2")?;
    let mut rows = statement.query(params![prefix, limit])?;
    while let Some(row) = rows.next()? {
        let run: String = row.get(0)?;
        if !run.starts_with(prefix) {
            break;
        }
        let is_exact = run == prefix;
        runs.extend(id(&run));
        if is_exact {
            return Ok(choose(prefix, &runs, &[])?);
        }
    }
    let mut thoughts = Vec::new();
    let mut statement = connection.prepare_cached(
        "SELECT t.thought_id, r.run_id FROM thoughts t JOIN runs r ON r.run_no = t.run_no
         WHERE t.thought_id >= ?1 ORDER BY t.thought_id LIMIT ?2",
    )?;
    let mut rows = statement.query(params![prefix, limit])?;
    let mut exact = 0;
    while let Some(row) = rows.next()? {
        let (thought, run): (String, String) = (row.get(0)?, row.get(1)?);
        if !thought.starts_with(prefix) {
            break;
        }
        exact += usize::from(thought == prefix);
        thoughts.extend(id(&thought).zip(id(&run)));
    }
    if exact > 0 {
        // They come first, being the shortest.
        return Ok(choose(prefix, &[], &thoughts[..exact.min(thoughts.len())])?);
    }
    Ok(choose(prefix, &runs, &thoughts)?)
}

pub(super) fn blob(connection: &Connection, key: &Hash) -> Result<Option<Arc<[u8]>>, Refusal> {
    let bytes: Option<Option<Vec<u8>>> = connection
        .prepare_cached(
            "SELECT b.bytes FROM blobs h JOIN bodies b ON b.body_no = h.body_no WHERE h.hash = ?1",
        )?
        .query_row([key.as_bytes()], |row| row.get(0))
        .optional()?;
    match bytes.flatten() {
        Some(bytes) if Hash::of(&bytes) != *key => Err(damaged(&format!("the body {key}")).into()),
        bytes => Ok(bytes.map(Arc::from)),
    }
}

/// The runs that need not be kept, oldest first.
pub(super) fn beyond(connection: &Connection, keep: &Retention) -> Result<Vec<Id>, Refusal> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {RUN_COLUMNS} FROM runs WHERE status < 3 ORDER BY started DESC, run_no DESC"
    ))?;
    let mut rows = statement.query([])?;
    let mut victims = Vec::new();
    let mut place = 0;
    while let Some(row) = rows.next()? {
        let Some(run) = StoredRun::read(row)? else { return Err(damaged("a run's entry").into()) };
        let is_old = keep.newer_than.is_some_and(|time| run.summary.updated < time);
        let is_extra = keep.newest.is_some_and(|newest| place >= newest);
        place += 1;
        if is_old || is_extra {
            victims.push(run.run_id);
        }
    }
    victims.reverse();
    Ok(victims)
}
