//! Between rows of the file and what they mean.

use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};
use sifaka_core::event::{Header, Sealed};
use sifaka_core::journal::RunStatus;
use sifaka_core::{Hash, Id, Result};

use super::failure::damaged;
use crate::link::{Link, LinkKind};
use crate::summary::Summary;

/// Erased, and the content overwritten by zeros in its place.
pub(super) const ERASED: i64 = 3;
/// Erased, and the space given back.
pub(super) const EMPTIED: i64 = 4;

pub(super) const fn status_code(status: RunStatus) -> i64 {
    match status {
        RunStatus::Open => 0,
        RunStatus::Finished => 1,
        RunStatus::Failed => 2,
        RunStatus::Erased => ERASED,
    }
}

const fn status_from(code: i64) -> Option<RunStatus> {
    match code {
        0 => Some(RunStatus::Open),
        1 => Some(RunStatus::Finished),
        2 => Some(RunStatus::Failed),
        ERASED | EMPTIED => Some(RunStatus::Erased),
        _ => None,
    }
}

/// A time as it is stored; `None` for one that is centuries away.
pub(super) fn nanos(time: Timestamp) -> Option<i64> {
    i64::try_from(time.as_nanosecond()).ok()
}

/// The same, with times that are centuries away brought near.
pub(super) fn near_nanos(time: Timestamp) -> i64 {
    let bound = if time.as_nanosecond() < 0 { i64::MIN } else { i64::MAX };
    nanos(time).unwrap_or(bound)
}

/// The time of a number of nanoseconds; every number is one.
pub(super) fn time(nanos: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(nanos)).unwrap_or_default()
}

/// A hash in a column; `None` when it holds anything else.
pub(super) fn hash(row: &Row<'_>, column: usize) -> Option<Hash> {
    let bytes = row.get_ref(column).ok()?.as_blob().ok()?;
    Some(Hash::from_bytes(bytes.try_into().ok()?))
}

/// The columns that [`StoredRun::read`] expects, in their order.
pub(super) const RUN_COLUMNS: &str = "run_no, run_id, chain_id, started, updated, status, \
     passed, score, iterations, events, last_hash, closed, links";

/// A row of `runs`.
#[derive(Clone, Debug)]
pub(super) struct StoredRun {
    pub(super) run_no: i64,
    pub(super) run_id: Id,
    pub(super) summary: Summary,
    pub(super) events: u64,
    pub(super) last_hash: Hash,
    pub(super) closed: u64,
    pub(super) links: i64,
}

impl StoredRun {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Option<Self>> {
        let run_id: String = row.get(1)?;
        let chain_id: Option<String> = row.get(2)?;
        let parts = (Id::parse(&run_id), status_from(row.get(5)?), hash(row, 10));
        let (Ok(run_id), Some(status), Some(last_hash)) = parts else { return Ok(None) };
        Ok(Some(Self {
            run_no: row.get(0)?,
            run_id,
            summary: Summary {
                chain_id: chain_id.map(Arc::from),
                started: time(row.get(3)?),
                updated: time(row.get(4)?),
                status,
                passed: row.get(6)?,
                score: row.get(7)?,
                iterations: row.get(8)?,
            },
            events: row.get(9)?,
            last_hash,
            closed: row.get(11)?,
            links: row.get(12)?,
        }))
    }

    /// The run of an id; `None` for an unknown one.
    pub(super) fn find(
        connection: &Connection,
        run: &Id,
    ) -> rusqlite::Result<Option<Result<Self>>> {
        let sql = format!("SELECT {RUN_COLUMNS} FROM runs WHERE run_id = ?1");
        let found =
            connection.prepare_cached(&sql)?.query_row([run.as_str()], Self::read).optional()?;
        Ok(found.map(|run_row| run_row.ok_or_else(|| damaged(&format!("the entry of run {run}")))))
    }

    pub(super) fn is_erased(&self) -> bool {
        self.summary.status == RunStatus::Erased
    }
}

/// The columns that [`StoredEvent::read`] expects, in their order.
pub(super) const EVENT_COLUMNS: &str = "seq, time, kind, payload_hash, hash, payload";

/// A row of `events`.
pub(super) struct StoredEvent {
    pub(super) sealed: Sealed,
    /// Whether the payload is nothing but zeros, as erasing leaves it.
    pub(super) is_blank: bool,
}

impl StoredEvent {
    /// `None` when a column holds what it never should.
    pub(super) fn read(row: &Row<'_>, run: &Id, previous: Hash) -> Option<Self> {
        let payload = match row.get_ref(5).ok()? {
            ValueRef::Null => None,
            ValueRef::Blob(bytes) => Some(bytes.to_vec()),
            _ => return None,
        };
        let header = Header {
            run_id: run.clone(),
            seq: row.get(0).ok()?,
            time: time(row.get(1).ok()?),
            kind: Arc::from(row.get_ref(2).ok()?.as_str().ok()?),
            previous,
            payload_hash: hash(row, 3)?,
        };
        let is_blank = payload.as_ref().is_none_or(|bytes| bytes.iter().all(|byte| *byte == 0));
        Some(Self { sealed: Sealed { header, payload, hash: hash(row, 4)? }, is_blank })
    }
}

/// The columns that [`read_link`] expects, in their order.
pub(super) const LINK_COLUMNS: &str = "n, kind, run_id, events, event, time, reason, hash";

/// A row of `chain`; `None` when a column holds what it never should.
pub(super) fn read_link(row: &Row<'_>) -> Option<(Link, Hash)> {
    let link = Link {
        n: row.get(0).ok()?,
        kind: LinkKind::from_code(row.get(1).ok()?)?,
        run_id: row.get(2).ok()?,
        events: row.get(3).ok()?,
        event: hash(row, 4)?,
        time: row.get(5).ok()?,
        reason: row.get(6).ok()?,
    };
    Some((link, hash(row, 7)?))
}

/// Number and hash of the newest link.
pub(super) fn newest_link(connection: &Connection) -> rusqlite::Result<(i64, Hash)> {
    let newest = connection
        .prepare_cached("SELECT n, hash FROM chain ORDER BY n DESC LIMIT 1")?
        .query_row([], |row| Ok((row.get(0)?, hash(row, 1).unwrap_or(Hash::ZERO))))
        .optional()?;
    Ok(newest.unwrap_or((0, Hash::ZERO)))
}

/// A lease as it is stored.
pub(super) struct StoredLease {
    pub(super) holder: String,
    pub(super) log: i64,
    pub(super) since: i64,
    pub(super) expires: i64,
}

impl StoredLease {
    pub(super) fn find(connection: &Connection, run: &Id) -> rusqlite::Result<Option<Self>> {
        connection
            .prepare_cached("SELECT holder, log, since, expires FROM leases WHERE run_id = ?1")?
            .query_row([run.as_str()], |row| {
                Ok(Self {
                    holder: row.get(0)?,
                    log: row.get(1)?,
                    since: row.get(2)?,
                    expires: row.get(3)?,
                })
            })
            .optional()
    }
}
