//! The journal that is gone when the program ends.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use sifaka_core::event::Sealed;
use sifaka_core::journal::{
    Resolved, Retention, RunLog, RunQuery, RunSummary, Verification, Verify,
};
use sifaka_core::{Blobs, Clock, Context, Error, ErrorKind, Event, Hash, Id, Journal, Result};

use super::record::Records;
use crate::summary::{check_prefix, choose, not_next, wrong_run};

/// A journal in memory: for tests, and where nothing is to be kept.
///
/// It behaves like [`SqliteJournal`](crate::SqliteJournal), but for two things. Events are hashed
/// when somebody asks for the hashes, so that writing costs next to nothing; and the chain over
/// the whole journal binds the runs' names and lengths rather than their hashes, since nothing
/// outside the program can change them. [`events`](Journal::events) gives every body whole.
///
/// Clones share the same record.
#[derive(Clone, Default)]
pub struct MemoryJournal {
    records: Arc<Mutex<Records>>,
}

impl MemoryJournal {
    /// Keeps every run until the program ends.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps the newest `runs` runs besides those being written, and forgets older ones without
    /// a trace. For programs that run for long.
    #[must_use]
    pub fn bounded(runs: usize) -> Self {
        Self { records: Arc::new(Mutex::new(Records::bounded(runs))) }
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryJournal").finish_non_exhaustive()
    }
}

#[async_trait]
impl Blobs for MemoryJournal {
    async fn blob(&self, _ctx: &Context, hash: &Hash) -> Result<Option<Arc<[u8]>>> {
        Ok(self.lock().blob(hash))
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    fn name(&self) -> &str {
        "memory"
    }

    async fn open_run(&self, ctx: &Context, run: &Id) -> Result<Box<dyn RunLog>> {
        let next_seq = self.lock().open(run)?;
        Ok(Box::new(MemoryLog {
            journal: self.clone(),
            run: run.clone(),
            clock: Arc::clone(ctx.clock()),
            next_seq,
            buffer: Vec::new(),
        }))
    }

    async fn sealed(&self, _ctx: &Context, run: &Id) -> Result<Vec<Sealed>> {
        Ok(self.lock().sealed(run)?.to_vec())
    }

    async fn events(&self, _ctx: &Context, run: &Id) -> Result<Vec<Event>> {
        Ok(self.lock().events(run).iter().map(|event| Event::clone(event)).collect())
    }

    async fn runs(&self, _ctx: &Context, query: &RunQuery) -> Result<Vec<RunSummary>> {
        Ok(self.lock().list(query))
    }

    async fn resolve(&self, _ctx: &Context, prefix: &str) -> Result<Resolved> {
        check_prefix(prefix)?;
        let (runs, thoughts) = self.lock().beginning_with(prefix);
        choose(prefix, &runs, &thoughts)
    }

    async fn head(&self, _ctx: &Context) -> Result<Hash> {
        Ok(self.lock().head())
    }

    async fn verify(&self, _ctx: &Context, what: &Verify) -> Result<Verification> {
        if let Some(run) = &what.run
            && !self.lock().has(run)
        {
            return Err(unknown(run));
        }
        self.lock().verify(what)
    }

    async fn erase(&self, ctx: &Context, run: &Id, reason: &str) -> Result<bool> {
        self.lock().erase(run, ctx.now(), reason)
    }

    async fn prune(&self, ctx: &Context, keep: &Retention) -> Result<Vec<Id>> {
        let mut records = self.lock();
        let victims = records.beyond(keep);
        if !keep.dry_run {
            for run in &victims {
                records.erase(run, ctx.now(), "pruned")?;
            }
        }
        Ok(victims)
    }
}

fn unknown(run: &Id) -> Error {
    Error::new(ErrorKind::NotFound, "journal", "verify", format!("there is no run {run}"))
        .suggest("`sifaka list` shows the runs of this journal")
}

struct MemoryLog {
    journal: MemoryJournal,
    run: Id,
    clock: Arc<dyn Clock>,
    next_seq: u64,
    /// Appended, and not yet committed.
    buffer: Vec<Arc<Event>>,
}

impl MemoryLog {
    fn store(&mut self) {
        if !self.buffer.is_empty() {
            let time = self.clock.now();
            self.journal.lock().extend(&self.run, &mut self.buffer, time);
        }
    }
}

#[async_trait]
impl RunLog for MemoryLog {
    fn append(&mut self, event: &Arc<Event>) -> Result<()> {
        if event.kind.is_transient() {
            return Ok(());
        }
        if event.run_id != self.run {
            return Err(wrong_run(&self.run, &event.run_id));
        }
        if event.seq != self.next_seq {
            return Err(not_next(&self.run, event.seq, self.next_seq));
        }
        self.buffer.push(Arc::clone(event));
        self.next_seq += 1;
        Ok(())
    }

    async fn flush(&mut self) -> Result<()> {
        self.store();
        Ok(())
    }

    async fn commit(&mut self) -> Result<()> {
        self.store();
        Ok(())
    }

    async fn close(mut self: Box<Self>) -> Result<Hash> {
        self.store();
        let time = self.clock.now();
        Ok(self.journal.lock().close(&self.run, time))
    }
}

impl Drop for MemoryLog {
    fn drop(&mut self) {
        self.journal.lock().release(&self.run);
    }
}
