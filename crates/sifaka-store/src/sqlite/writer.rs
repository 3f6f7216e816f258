//! The thread that writes: everything that waits goes into one transaction, and is acknowledged
//! when that is on disk.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, params};
use sifaka_core::clock::SystemClock;
use sifaka_core::{Clock, Error, Hash, Id, Result};

use super::failure::sqlite_failure;
use super::lease::{Holders, Lease};
use super::queue::{Queue, Room, Taken};
use super::request::{Grant, Request, Stored};
use super::row::near_nanos;

/// The most of a slow disk's time that counts when others are waited for.
const LONGEST_GATHERING: Duration = Duration::from_millis(10);

/// Leases are not renewed more often than this, however short they are.
const QUICKEST_RENEWAL: Duration = Duration::from_millis(10);

/// Owns the connection that writes.
pub(super) struct Writer {
    pub(super) path: PathBuf,
    pub(super) connection: Connection,
    pub(super) queue: Arc<Queue>,
    pub(super) holders: Holders,
    /// How long a lease lasts without being renewed.
    pub(super) lease: Duration,
    /// Number of the next log that is opened.
    pub(super) next_log: i64,
    /// Logs that are open, with their runs.
    open: HashMap<i64, Id>,
    /// How far the runs of open logs are stored. Holds while we have their leases.
    pub(super) known: HashMap<i64, Known>,
    /// Whether a commit waits for the disk.
    is_durable: bool,
    /// For leases: they are between processes, so a run's own clock has no say in them.
    clock: SystemClock,
    renewed: Duration,
    /// How long the disk took for the last group.
    synced_in: Duration,
}

/// How far a run is stored.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub(super) run_no: i64,
    pub(super) events: u64,
    pub(super) last_hash: Hash,
}

/// What came of a request.
pub(super) enum Done {
    Granted(i64, Stored),
    Appended,
    Closed(Hash),
    Released,
    Erased(bool),
}

/// Why a request was not done.
pub(super) enum Refusal {
    /// It cannot be done. Nothing was written for it.
    Refused(Error),
    /// The file failed.
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl Writer {
    pub(super) fn new(
        path: PathBuf,
        connection: Connection,
        queue: Arc<Queue>,
        lease: Duration,
    ) -> Self {
        let holders = Holders::new(&path);
        Self {
            path,
            connection,
            queue,
            holders,
            lease,
            next_log: 1,
            open: HashMap::new(),
            known: HashMap::new(),
            is_durable: true,
            clock: SystemClock::new(),
            renewed: Duration::ZERO,
            synced_in: Duration::ZERO,
        }
    }

    /// Writes until the queue is closed and empty.
    pub(super) fn run(mut self) {
        // However this thread ends, nobody waits for it in vain.
        let _closing = Closing(Arc::clone(&self.queue));
        loop {
            let every = (self.lease / 3).max(QUICKEST_RENEWAL);
            let since = self.clock.monotonic().saturating_sub(self.renewed);
            let limit = (!self.open.is_empty()).then(|| every.saturating_sub(since));
            if limit.is_some_and(|left| left.is_zero()) {
                self.renew();
                continue;
            }
            match self.queue.take(limit) {
                Taken::Requests(mut requests, mut rooms) => {
                    self.gather(&mut requests, &mut rooms);
                    self.serve(requests);
                    drop(rooms);
                }
                Taken::Tick => {}
                Taken::End => break,
            }
        }
        if let Some(holder) = self.holders.own() {
            // Not needed: without its lock file a holder counts as gone.
            let _ = self.connection.execute("DELETE FROM leases WHERE holder = ?1", [holder]);
        }
    }

    /// Waits a little for other open logs, so that they share the wait for the disk: without it
    /// runs that answer one another fall into two groups that take turns, and sync twice as often.
    /// Never longer than half of what the disk takes, and not at all for one run alone.
    fn gather(&mut self, requests: &mut Vec<Request>, rooms: &mut Vec<Room>) {
        let limit = self.synced_in.min(LONGEST_GATHERING) / 2;
        let is_durable = requests.iter().any(Request::is_durable);
        if !is_durable || limit.is_zero() || requests.len() >= self.open.len() {
            return;
        }
        let missing = self.open.len() - requests.len();
        if let Taken::Requests(more, room) = self.queue.take_at_least(missing, Some(limit)) {
            requests.extend(more);
            rooms.extend(room);
        }
    }

    fn serve(&mut self, requests: Vec<Request>) {
        let (others, mut requests): (Vec<_>, Vec<_>) = requests.into_iter().partition(|request| {
            matches!(request, Request::Compact { .. } | Request::Settle { .. })
        });
        if !requests.is_empty() {
            match self.group(&requests) {
                Ok(done) => self.answer(requests, done),
                // One that fails must not fail the others: each for itself.
                Err(_) if requests.len() > 1 => {
                    for request in requests.drain(..) {
                        self.serve_alone(request);
                    }
                }
                Err(error) => {
                    let error = sqlite_failure(&self.path, "write", error);
                    self.answer(requests, vec![Err(error)]);
                }
            }
        }
        for request in others {
            // Nobody may be waiting any more.
            match request {
                Request::Compact { reply } => drop(reply.send(self.compact())),
                Request::Settle { reply } => drop(reply.send(Ok(()))),
                _ => {}
            }
        }
    }

    fn serve_alone(&mut self, request: Request) {
        let requests = vec![request];
        let done = match self.group(&requests) {
            Ok(done) => done,
            Err(error) => vec![Err(sqlite_failure(&self.path, "write", error))],
        };
        self.answer(requests, done);
    }

    /// All of them in one transaction. When the file fails, none.
    fn group(&mut self, requests: &[Request]) -> rusqlite::Result<Vec<Result<Done>>> {
        let is_durable = requests.iter().any(Request::is_durable);
        self.begin(is_durable)?;
        let mut done = Vec::with_capacity(requests.len());
        for request in requests {
            match self.perform(request) {
                Ok(one) => done.push(Ok(one)),
                Err(Refusal::Refused(error)) => done.push(Err(error)),
                Err(Refusal::Failed(error)) => {
                    self.roll_back();
                    return Err(error);
                }
            }
        }
        let before = self.clock.monotonic();
        self.commit().inspect_err(|_| self.roll_back())?;
        if is_durable {
            self.synced_in = self.clock.monotonic().saturating_sub(before);
        }
        Ok(done)
    }

    pub(super) fn begin(&mut self, is_durable: bool) -> rusqlite::Result<()> {
        if is_durable != self.is_durable {
            let mode = if is_durable { "full" } else { "normal" };
            self.connection.pragma_update(None, "synchronous", mode)?;
            self.is_durable = is_durable;
        }
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([]).map(drop)
    }

    pub(super) fn commit(&mut self) -> rusqlite::Result<()> {
        self.connection.prepare_cached("COMMIT")?.execute([]).map(drop)
    }

    pub(super) fn roll_back(&mut self) {
        self.known.clear();
        if !self.connection.is_autocommit() {
            // When this fails too, SQLite has rolled back by itself.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    fn perform(&mut self, request: &Request) -> Result<Done, Refusal> {
        match request {
            Request::Acquire { run, .. } => {
                let (log, stored) = self.acquire(run)?;
                Ok(Done::Granted(log, stored))
            }
            Request::Append { batch, .. } => self.append(batch).map(|()| Done::Appended),
            Request::Close { end, .. } => self.close(end).map(Done::Closed),
            Request::Release { run, log } => self.release(run, *log).map(|()| Done::Released),
            Request::Erase { run, time, reason, .. } => {
                self.erase(run, *time, reason).map(Done::Erased)
            }
            // No part of a transaction; `serve` keeps them out.
            Request::Compact { .. } | Request::Settle { .. } => Ok(Done::Released),
        }
    }

    /// Tells everybody what came of it, now that it is on disk. Whoever does not wait any more
    /// need not hear it.
    fn answer(&mut self, requests: Vec<Request>, done: Vec<Result<Done>>) {
        let erased = done.iter().any(|one| matches!(one, Ok(Done::Erased(true))));
        let mut scrubbed = if erased { Some(self.scrub()) } else { None };
        for (request, done) in requests.into_iter().zip(done) {
            match (request, done) {
                (Request::Acquire { run, reply }, Ok(Done::Granted(log, stored))) => {
                    if self.open.is_empty() {
                        self.renewed = self.clock.monotonic();
                    }
                    self.open.insert(log, run.clone());
                    let lease = Lease::new(Arc::clone(&self.queue), run, log);
                    // Dropped on the way, the lease gives itself back.
                    let _ = reply.send(Ok(Grant { lease, stored }));
                }
                (Request::Acquire { reply, .. }, Err(error)) => drop(reply.send(Err(error))),
                (Request::Append { reply, .. }, done) => drop(reply.send(done.map(drop))),
                (Request::Close { end, reply }, Ok(Done::Closed(head))) => {
                    self.forget(end.log);
                    drop(reply.send(Ok(head)));
                }
                (Request::Close { reply, .. }, Err(error)) => drop(reply.send(Err(error))),
                (Request::Release { log, .. }, _) => self.forget(log),
                (Request::Erase { reply, .. }, Ok(Done::Erased(was_there))) => {
                    let result = match scrubbed.take() {
                        Some(Err(error)) if was_there => Err(error),
                        other => {
                            scrubbed = other;
                            Ok(was_there)
                        }
                    };
                    drop(reply.send(result));
                }
                (Request::Erase { reply, .. }, Err(error)) => drop(reply.send(Err(error))),
                // Nothing else can be: `perform` answers in kind.
                _ => {}
            }
        }
    }

    fn forget(&mut self, log: i64) {
        self.open.remove(&log);
        self.known.remove(&log);
    }

    /// The time as leases have it.
    pub(super) fn lease_time(&self) -> i64 {
        near_nanos(self.clock.now())
    }

    /// Puts off the end of every lease we hold.
    fn renew(&mut self) {
        self.renewed = self.clock.monotonic();
        let Some(holder) = self.holders.own().map(str::to_owned) else { return };
        let renew = |writer: &mut Self| {
            writer.begin(false)?;
            let mut statement = writer.connection.prepare_cached(
                "UPDATE leases SET expires = ?1 WHERE run_id = ?2 AND holder = ?3 AND log = ?4",
            )?;
            let expires = writer.lease_time().saturating_add(span(writer.lease));
            for (log, run) in &writer.open {
                statement.execute(params![expires, run.as_str(), holder, log])?;
            }
            drop(statement);
            writer.commit()
        };
        if renew(self).is_err() {
            // Tried again a third of the lease later; the lock file speaks for us meanwhile.
            self.roll_back();
        }
    }
}

/// A duration in nanoseconds.
pub(super) fn span(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Closes the queue when the writer ends, and lets go of what nobody will do any more.
struct Closing(Arc<Queue>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
        // Those who wait learn of it when their requests are dropped.
        drop(self.0.take(None));
    }
}
