//! The contract of the journal: the record of every run.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::body::{Blobs, Hash};
use crate::event::{Event, Fold, Sealed};
use crate::policy::Statistics;
use crate::{Context, Error, ErrorKind, Id, Result, Thought};

/// An append-only, hash-chained record of runs.
///
/// **Contract.** What [`RunLog::commit`] acknowledged is never lost: not when the program is
/// killed, and for a durable journal not when the machine is. Each run is a chain of hashes; the
/// first and last hash of every run enter a second chain over the whole journal, so that a
/// missing run shows. A run has one writer at a time. Erasing leaves headers and hashes, so the
/// journal still verifies.
#[async_trait]
pub trait Journal: Blobs {
    /// Its name in messages, such as its path.
    fn name(&self) -> &str;

    /// Opens a run for writing, new or old.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] while somebody else writes to it.
    async fn open_run(&self, ctx: &Context, run: &Id) -> Result<Box<dyn RunLog>>;

    /// A run's events in order; those that were erased have no payload. Empty for an unknown run.
    async fn sealed(&self, ctx: &Context, run: &Id) -> Result<Vec<Sealed>>;

    /// Runs, newest first.
    async fn runs(&self, ctx: &Context, query: &RunQuery) -> Result<Vec<RunSummary>>;

    /// The run that a run's id, a Thought's id, or the unique beginning of either names.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], or
    /// [`ErrorKind::InvalidInput`] when several fit.
    async fn resolve(&self, ctx: &Context, prefix: &str) -> Result<Resolved>;

    /// The newest hash of the chain over the whole journal.
    async fn head(&self, ctx: &Context) -> Result<Hash>;

    /// Checks every hash of every run, or of one.
    async fn verify(&self, ctx: &Context, what: &Verify) -> Result<Verification>;

    /// Erases what a run contained; headers, hashes and a dated tombstone stay. Says whether
    /// there was anything to erase.
    async fn erase(&self, ctx: &Context, run: &Id, reason: &str) -> Result<bool>;

    /// Erases runs by age or number; says which.
    async fn prune(&self, ctx: &Context, keep: &Retention) -> Result<Vec<Id>>;

    /// How decisions of policies worked out in earlier runs of a chain, by its name; `None` from a
    /// journal that does not keep count.
    async fn statistics(&self, _ctx: &Context, _chain: &str) -> Result<Option<Statistics>> {
        Ok(None)
    }

    /// A run's events, without those that were erased. Every hash is checked on the way: what was
    /// changed is never shown as if it had been recorded so.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] with the first event that is not as it was
    /// written.
    async fn events(&self, ctx: &Context, run: &Id) -> Result<Vec<Event>> {
        let sealed = self.sealed(ctx, run).await?;
        let mut events = Vec::with_capacity(sealed.len());
        let mut previous = Hash::ZERO;
        for (seq, event) in (0..).zip(sealed) {
            if let Some(problem) = event.problem(previous, seq) {
                let message = format!("event {seq} of run {run}: {problem}");
                return Err(Error::new(ErrorKind::Corrupt, "journal", "read", message)
                    .suggest("run `sifaka verify` to see what else is not as it was written"));
            }
            previous = event.hash;
            events.extend(event.open()?);
        }
        Ok(events)
    }

    /// A run folded up; `None` for one that is unknown or was erased.
    async fn fold(&self, ctx: &Context, run: &Id) -> Result<Option<Fold>> {
        let events = self.events(ctx, run).await?;
        if events.is_empty() {
            return Ok(None);
        }
        Fold::of(&events).map(Some)
    }

    /// The Thought of an id or the unique beginning of one: for a run's id the run's newest.
    async fn thought(&self, ctx: &Context, id: &str) -> Result<Option<Thought>> {
        let Resolved { run_id, thought_id } = self.resolve(ctx, id).await?;
        let Some(fold) = self.fold(ctx, &run_id).await? else { return Ok(None) };
        Ok(match thought_id {
            Some(id) if id != run_id => fold.find(&id),
            _ => fold.thought().cloned(),
        })
    }
}

impl fmt::Debug for dyn Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Journal({})", self.name())
    }
}

/// The one writer of a run. Dropping it lets others write.
#[async_trait]
pub trait RunLog: Send {
    /// Adds an event. It is safe once [`commit`](Self::commit) says so.
    ///
    /// # Errors
    /// When the event cannot be written as JSON, or its number is not the next.
    fn append(&mut self, event: &Arc<Event>) -> Result<()>;

    /// Hands over what was appended without waiting until it is safe, so that writing overlaps
    /// with whatever comes next.
    async fn flush(&mut self) -> Result<()>;

    /// Waits until everything that was appended is safe.
    async fn commit(&mut self) -> Result<()>;

    /// Ends the log when the run is over: its last hash enters the journal's own chain. Gives the
    /// new head of that chain.
    async fn close(self: Box<Self>) -> Result<Hash>;
}

/// What an id, or the beginning of one, named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The run.
    pub run_id: Id,
    /// The Thought, when it named one.
    pub thought_id: Option<Id>,
}

/// Which runs to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// Only those of this chain.
    pub chain: Option<String>,
    /// Only those with this label.
    pub tag: Option<(String, String)>,
    /// Only those with this in the prompt.
    pub contains: Option<String>,
    /// Only those that passed, or that did not.
    pub passed: Option<bool>,
    /// Only those begun before this.
    pub before: Option<Timestamp>,
    /// Leave out so many.
    pub offset: usize,
    /// The most to give; 0 gives all.
    pub limit: usize,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It has no end: it is being worked on, or was left.
    Open,
    /// It gave an answer.
    Finished,
    /// It failed.
    Failed,
    /// Its content was erased.
    Erased,
}

/// A run in a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The run.
    pub run_id: Id,
    /// The chain that began it.
    pub chain_id: Option<String>,
    /// When it began.
    pub started: Timestamp,
    /// When its last event happened.
    pub updated: Timestamp,
    /// Where it stands.
    pub status: RunStatus,
    /// Whether the text it gave passed.
    pub passed: Option<bool>,
    /// The score of the text it gave.
    pub score: Option<f64>,
    /// How many iterations it had.
    pub iterations: u32,
    /// How many events it has.
    pub events: u64,
    /// What was asked, cut to a line; `None` when erased.
    pub prompt: Option<String>,
}

/// What to verify.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verify {
    /// Only this run; everything if `None`.
    pub run: Option<Id>,
    /// A head that was printed earlier and must still be part of the journal's chain.
    pub head: Option<Hash>,
}

/// What verifying found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// How many runs were checked.
    pub runs: u64,
    /// How many events.
    pub events: u64,
    /// How many of them have no payload any more, as tombstones say.
    pub erased: u64,
    /// How many stored bodies.
    pub blobs: u64,
    /// The newest hash of the journal's own chain.
    pub head: Option<Hash>,
    /// Everything that is wrong; empty when the record is intact.
    pub problems: Vec<String>,
}

impl Verification {
    /// Whether the record is intact.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }
}

/// What to keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Erase runs that ended before this.
    pub newer_than: Option<Timestamp>,
    /// Erase all but so many of the newest.
    pub newest: Option<usize>,
    /// Only say which, and erase nothing.
    pub dry_run: bool,
}
