//! Erasing: the text goes, the proof stays.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, params};
use sifaka_core::{Error, ErrorKind, EventKind, Hash, Id, Result};

use super::failure::sqlite_failure;
use super::read::tag_code;
use super::row::{EMPTIED, ERASED, StoredRun, hash, near_nanos};
use super::writer::{Refusal, Writer};
use crate::link::LinkKind;
use crate::summary::asked;

/// Set while copies of texts may be left between the rows of a page.
const MOVED: &str = "moved";

impl Writer {
    /// Overwrites everything a run contained by zeros, where it stands. Says whether there was
    /// anything.
    pub(super) fn erase(
        &mut self,
        run: &Id,
        now: Timestamp,
        reason: &str,
    ) -> Result<bool, Refusal> {
        let Some(stored) = StoredRun::find(&self.connection, run)?.transpose()? else {
            return Ok(false);
        };
        if stored.is_erased() {
            return Ok(false);
        }
        self.refuse_if_written(run)?;
        let run_no = stored.run_no;
        self.erase_tags(run_no)?;
        self.connection
            .prepare_cached(
                "UPDATE events SET payload = zeroblob(length(payload))
                 WHERE run_no = ?1 AND payload IS NOT NULL",
            )?
            .execute([run_no])?;
        self.connection
            .prepare_cached(
                "UPDATE prompts SET line = zeroblob(length(CAST(line AS BLOB)))
                 WHERE run_no = ?1 AND line IS NOT NULL",
            )?
            .execute([run_no])?;
        self.erase_bodies(run_no)?;
        self.connection
            .prepare_cached(
                "UPDATE runs SET status = ?2, chain_id = NULL, passed = NULL, score = NULL,
                                 iterations = 0, links = links + 1
                 WHERE run_no = ?1",
            )?
            .execute([run_no, ERASED])?;
        let last = (stored.events, stored.last_hash);
        self.link(LinkKind::Erased, run, last, near_nanos(now), reason)?;
        Ok(true)
    }

    fn erase_tags(&self, run_no: i64) -> rusqlite::Result<()> {
        let first: Option<Vec<u8>> = self
            .connection
            .prepare_cached("SELECT payload FROM events WHERE run_no = ?1 AND seq = 0")?
            .query_row([run_no], |row| row.get(0))
            .optional()?
            .flatten();
        let kind: Option<EventKind> = first.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        match kind.as_ref().and_then(asked) {
            Some((_, tags)) => {
                for (key, value) in tags {
                    self.connection
                        .prepare_cached("DELETE FROM tags WHERE tag = ?1 AND run_no = ?2")?
                        .execute([tag_code(key, value), run_no])?;
                }
            }
            // The event does not say which; look at all.
            None => {
                self.connection.execute("DELETE FROM tags WHERE run_no = ?1", [run_no])?;
            }
        }
        Ok(())
    }

    /// Erases bodies that no other run refers to.
    fn erase_bodies(&self, run_no: i64) -> rusqlite::Result<()> {
        let hashes: Vec<Hash> = self
            .connection
            .prepare_cached("SELECT hash FROM blob_refs WHERE run_no = ?1")?
            .query_map([run_no], |row| Ok(hash(row, 0)))?
            .filter_map(rusqlite::Result::transpose)
            .collect::<rusqlite::Result<_>>()?;
        self.connection
            .prepare_cached("DELETE FROM blob_refs WHERE run_no = ?1")?
            .execute([run_no])?;
        for hash in hashes {
            let bytes = hash.as_bytes();
            let is_used = self
                .connection
                .prepare_cached("SELECT 1 FROM blob_refs WHERE hash = ?1")?
                .exists([bytes])?;
            if !is_used {
                self.connection
                    .prepare_cached(
                        "UPDATE bodies SET bytes = zeroblob(length(bytes))
                         WHERE body_no = (SELECT body_no FROM blobs WHERE hash = ?1)",
                    )?
                    .execute([bytes])?;
                self.connection
                    .prepare_cached("DELETE FROM blobs WHERE hash = ?1")?
                    .execute([bytes])?;
            }
        }
        Ok(())
    }

    /// Gets erased text out of the files: the log beside the journal still has it.
    pub(super) fn scrub(&mut self) -> Result<()> {
        let fail = |error| sqlite_failure(&self.path, "erase", error);
        if self.flag(MOVED).map_err(fail)? {
            self.vacuum()?;
        }
        self.truncate_log()
    }

    fn truncate_log(&self) -> Result<()> {
        let busy: bool = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
            .map_err(|error| sqlite_failure(&self.path, "erase", error))?;
        if busy {
            let message = format!(
                "{}: the content was erased, but the log beside the journal still has it, \
                 because another program is reading",
                self.path.display()
            );
            return Err(Error::new(ErrorKind::Unavailable, "journal", "erase", message)
                .suggest("end the other program; the log goes when the last one closes it"));
        }
        Ok(())
    }

    /// Gives back the space of everything that was erased.
    pub(super) fn compact(&mut self) -> Result<()> {
        if let Err(error) = self.empty_erased() {
            self.roll_back();
            return Err(sqlite_failure(&self.path, "prune", error));
        }
        self.scrub()
    }

    fn empty_erased(&mut self) -> rusqlite::Result<()> {
        self.begin(true)?;
        let erased = "(SELECT run_no FROM runs WHERE status = ?1)";
        let connection = &self.connection;
        connection.execute(
            &format!("UPDATE events SET payload = NULL WHERE run_no IN {erased}"),
            [ERASED],
        )?;
        connection.execute(&format!("DELETE FROM prompts WHERE run_no IN {erased}"), [ERASED])?;
        connection
            .execute("DELETE FROM bodies WHERE body_no NOT IN (SELECT body_no FROM blobs)", [])?;
        connection.execute("UPDATE runs SET status = ?2 WHERE status = ?1", [ERASED, EMPTIED])?;
        // Rows moved together may have left copies behind; `vacuum` takes the flag away again.
        connection.execute("INSERT OR REPLACE INTO flags (name, value) VALUES (?1, 1)", [MOVED])?;
        self.commit()
    }

    fn vacuum(&self) -> Result<()> {
        let vacuum = || {
            self.connection.execute_batch("VACUUM")?;
            self.connection.execute("DELETE FROM flags WHERE name = ?1", params![MOVED])
        };
        vacuum().map(drop).map_err(|error| sqlite_failure(&self.path, "prune", error))
    }
}
