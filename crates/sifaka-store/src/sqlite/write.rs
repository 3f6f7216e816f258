//! What a transaction writes for each request.

use rusqlite::{OptionalExtension, params};
use sifaka_core::{Error, ErrorKind, Hash, Id, Result};

use super::request::{Batch, End, Stored};
use super::row::{StoredLease, StoredRun, near_nanos, newest_link, status_code, time};
use super::writer::{Known, Refusal, Writer, span};
use crate::link::{Link, LinkKind};
use crate::summary::{being_written, not_next, was_erased};

impl Writer {
    /// Takes the lease of a run; gives the log's number and how far the run is stored.
    pub(super) fn acquire(&mut self, run: &Id) -> Result<(i64, Stored), Refusal> {
        self.refuse_if_written(run)?;
        let stored = match StoredRun::find(&self.connection, run)?.transpose()? {
            None => Stored { events: 0, last_hash: Hash::ZERO, summary: None },
            Some(found) if found.is_erased() => return Err(was_erased(run).into()),
            Some(found) => Stored {
                events: found.events,
                last_hash: found.last_hash,
                summary: Some(found.summary),
            },
        };
        let holder = self.holders.enlist()?;
        let log = self.next_log;
        self.next_log += 1;
        let since = self.lease_time();
        let expires = since.saturating_add(span(self.lease));
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO leases (run_id, holder, log, since, expires)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![run.as_str(), holder, log, since, expires])?;
        Ok((log, stored))
    }

    /// Fails while somebody who may still be there has the run's lease.
    pub(super) fn refuse_if_written(&self, run: &Id) -> Result<(), Refusal> {
        let Some(lease) = StoredLease::find(&self.connection, run)? else { return Ok(()) };
        let since = time(lease.since);
        if self.holders.own() == Some(lease.holder.as_str()) {
            let detail = format!(" in this program already, since {since:.0}");
            return Err(being_written(run, &detail).into());
        }
        if lease.expires > self.lease_time() && self.holders.is_alive(&lease.holder) {
            let until = time(lease.expires);
            let detail =
                format!(" by somebody else, since {since:.0} and until {until:.0} or longer");
            return Err(being_written(run, &detail).into());
        }
        Ok(())
    }

    /// Fails when the lease of a log was taken by somebody else.
    fn fence(&self, run: &Id, log: i64) -> Result<(), Refusal> {
        let lease = StoredLease::find(&self.connection, run)?;
        let is_ours = lease.is_some_and(|lease| {
            lease.log == log && self.holders.own() == Some(lease.holder.as_str())
        });
        if is_ours {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Conflict,
            "journal",
            "append",
            format!("run {run} was taken over by another writer after its lease ran out"),
        )
        .suggest("leave the run to the other writer, or resume it when that has ended")
        .into())
    }

    pub(super) fn append(&mut self, batch: &Batch) -> Result<(), Refusal> {
        self.fence(&batch.run, batch.log)?;
        let known = match self.known.get(&batch.log) {
            Some(known) => Some(*known),
            None => self.load(&batch.run)?,
        };
        let (events, last_hash) =
            known.map_or((0, Hash::ZERO), |known| (known.events, known.last_hash));
        if events == batch.next() && last_hash == batch.last_hash() {
            // An earlier try was stored although it seemed to fail.
            return Ok(());
        }
        if events != batch.first || last_hash != batch.previous {
            return Err(not_next(&batch.run, batch.first, events).into());
        }
        let run_no = match known {
            Some(known) => {
                self.update_run(known.run_no, batch)?;
                known.run_no
            }
            None => self.begin_run(batch)?,
        };
        self.insert_events(run_no, batch)?;
        self.insert_bodies(run_no, batch)?;
        for thought in &batch.thoughts {
            self.connection
                .prepare_cached(
                    "INSERT OR IGNORE INTO thoughts (thought_id, run_no) VALUES (?1, ?2)",
                )?
                .execute(params![thought.as_str(), run_no])?;
        }
        let known = Known { run_no, events: batch.next(), last_hash: batch.last_hash() };
        self.known.insert(batch.log, known);
        Ok(())
    }

    fn load(&self, run: &Id) -> Result<Option<Known>, Refusal> {
        let found = StoredRun::find(&self.connection, run)?.transpose()?;
        Ok(found.map(|run| Known {
            run_no: run.run_no,
            events: run.events,
            last_hash: run.last_hash,
        }))
    }

    fn begin_run(&mut self, batch: &Batch) -> Result<i64, Refusal> {
        let summary = &batch.summary;
        self.connection
            .prepare_cached(
                "INSERT INTO runs (run_id, chain_id, started, updated, status, passed, score,
                                   iterations, events, last_hash, closed, links)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, 1)",
            )?
            .execute(params![
                batch.run.as_str(),
                summary.chain_id.as_deref(),
                near_nanos(summary.started),
                near_nanos(summary.updated),
                status_code(summary.status),
                summary.passed,
                summary.score,
                summary.iterations,
                batch.next(),
                batch.last_hash().as_bytes(),
            ])?;
        let run_no = self.connection.last_insert_rowid();
        if let Some(prompt) = &batch.prompt {
            self.connection
                .prepare_cached("INSERT INTO prompts (run_no, line) VALUES (?1, ?2)")?
                .execute(params![run_no, prompt])?;
        }
        for tag in &batch.tags {
            self.connection
                .prepare_cached("INSERT OR IGNORE INTO tags (tag, run_no) VALUES (?1, ?2)")?
                .execute(params![tag, run_no])?;
        }
        let (event, time) = batch.rows.first().map_or((Hash::ZERO, 0), |row| (row.hash, row.time));
        self.link(LinkKind::Opened, &batch.run, (1, event), time, "")?;
        Ok(run_no)
    }

    fn update_run(&self, run_no: i64, batch: &Batch) -> rusqlite::Result<()> {
        let summary = &batch.summary;
        self.connection
            .prepare_cached(
                "UPDATE runs SET updated = ?1, status = ?2, passed = ?3, score = ?4,
                                 iterations = ?5, events = ?6, last_hash = ?7
                 WHERE run_no = ?8",
            )?
            .execute(params![
                near_nanos(summary.updated),
                status_code(summary.status),
                summary.passed,
                summary.score,
                summary.iterations,
                batch.next(),
                batch.last_hash().as_bytes(),
                run_no,
            ])
            .map(drop)
    }

    fn insert_events(&self, run_no: i64, batch: &Batch) -> rusqlite::Result<()> {
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO events (run_no, seq, time, kind, payload_hash, hash, payload)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        for (seq, row) in (batch.first..).zip(&batch.rows) {
            insert.execute(params![
                run_no,
                seq,
                row.time,
                &*row.kind,
                row.payload_hash.as_bytes(),
                row.hash.as_bytes(),
                row.payload,
            ])?;
        }
        Ok(())
    }

    fn insert_bodies(&self, run_no: i64, batch: &Batch) -> rusqlite::Result<()> {
        for (hash, body) in &batch.bodies {
            if let Some(bytes) = body.as_bytes()
                && !self.has_blob(hash)?
            {
                self.connection
                    .prepare_cached("INSERT INTO bodies (bytes) VALUES (?1)")?
                    .execute([bytes])?;
                self.connection
                    .prepare_cached("INSERT INTO blobs (hash, body_no) VALUES (?1, ?2)")?
                    .execute(params![hash.as_bytes(), self.connection.last_insert_rowid()])?;
            }
            self.refer(run_no, hash, false)?;
        }
        for hash in &batch.pointers {
            let is_elsewhere = !self.has_blob(hash)?;
            self.refer(run_no, hash, is_elsewhere)?;
        }
        Ok(())
    }

    fn has_blob(&self, hash: &Hash) -> rusqlite::Result<bool> {
        self.connection
            .prepare_cached("SELECT 1 FROM blobs WHERE hash = ?1")?
            .exists([hash.as_bytes()])
    }

    fn refer(&self, run_no: i64, hash: &Hash, is_elsewhere: bool) -> rusqlite::Result<()> {
        // Once the bytes are here they are not elsewhere any more.
        self.connection
            .prepare_cached(
                "INSERT INTO blob_refs (run_no, hash, elsewhere) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET elsewhere = min(elsewhere, excluded.elsewhere)",
            )?
            .execute(params![run_no, hash.as_bytes(), is_elsewhere])
            .map(drop)
    }

    /// Writes a run's last hash into the journal's own chain; gives the chain's head.
    pub(super) fn close(&mut self, end: &End) -> Result<Hash, Refusal> {
        self.fence(&end.run, end.log)?;
        let stored = StoredRun::find(&self.connection, &end.run)?.transpose()?;
        let events = stored.as_ref().map_or(0, |run| run.events);
        if events != end.events {
            return Err(not_next(&end.run, end.events, events).into());
        }
        self.release(&end.run, end.log)?;
        match stored {
            Some(run) if run.closed != run.events => {
                self.connection
                    .prepare_cached(
                        "UPDATE runs SET closed = events, links = links + 1 WHERE run_no = ?1",
                    )?
                    .execute([run.run_no])?;
                let last = (end.events, end.last_hash);
                Ok(self.link(LinkKind::Closed, &end.run, last, near_nanos(end.time), "")?)
            }
            _ => Ok(newest_link(&self.connection)?.1),
        }
    }

    pub(super) fn release(&mut self, run: &Id, log: i64) -> Result<(), Refusal> {
        let Some(holder) = self.holders.own() else { return Ok(()) };
        self.connection
            .prepare_cached("DELETE FROM leases WHERE run_id = ?1 AND holder = ?2 AND log = ?3")?
            .execute(params![run.as_str(), holder, log])?;
        Ok(())
    }

    /// Adds to the journal's own chain; gives the new head.
    pub(super) fn link(
        &self,
        kind: LinkKind,
        run: &Id,
        (events, event): (u64, Hash),
        time: i64,
        reason: &str,
    ) -> rusqlite::Result<Hash> {
        let (n, previous) = newest_link(&self.connection)?;
        let link = Link {
            n: n + 1,
            kind,
            run_id: run.as_str().to_owned(),
            events: i64::try_from(events).unwrap_or(i64::MAX),
            event,
            time,
            reason: reason.to_owned(),
        };
        let hash = link.hash(previous);
        self.connection
            .prepare_cached(
                "INSERT INTO chain (n, kind, run_id, events, event, time, reason, hash)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                link.n,
                link.kind.code(),
                link.run_id,
                link.events,
                link.event.as_bytes(),
                link.time,
                link.reason,
                hash.as_bytes(),
            ])?;
        Ok(hash)
    }

    /// Whether a flag is set.
    pub(super) fn flag(&self, name: &str) -> rusqlite::Result<bool> {
        let value: Option<bool> = self
            .connection
            .query_row("SELECT value FROM flags WHERE name = ?1", [name], |row| row.get(0))
            .optional()?;
        Ok(value.unwrap_or(false))
    }
}
