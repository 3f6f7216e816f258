//! Keeping the record of a run: fold, journal, the caller's stream and timings.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sifaka_core::event::{EventKind, Fold};
use sifaka_core::journal::RunLog;
use sifaka_core::model::Delta;
use sifaka_core::{Context, Error, Event, Hash, Id, Observer, Result};
use sifaka_telemetry::Timings;
use tokio::sync::{mpsc, oneshot};

use crate::chain::Parts;
use crate::redact::Redaction;

/// How many components may wait to have a call recorded.
const REQUESTS: usize = 16;

/// A component's wish to have something on record before it goes on.
pub(super) struct Request {
    pub(super) kind: EventKind,
    pub(super) done: oneshot::Sender<()>,
}

/// Hears of retries and breakers from inside calls.
#[derive(Default)]
struct Inbox(Mutex<Vec<EventKind>>);

impl Observer for Inbox {
    fn observe(&self, kind: EventKind) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(kind);
    }
}

/// Everything that follows a run's events.
pub(super) struct Recorder {
    run_id: Id,
    pub(super) log: Option<Box<dyn RunLog>>,
    out: Option<mpsc::Sender<Arc<Event>>>,
    /// Events the caller is told of once they are safe.
    held: Vec<Arc<Event>>,
    dirty: bool,
    broken: bool,
    timings: Option<Timings>,
    storage: Duration,
    inbox: Arc<Inbox>,
    redaction: Option<Redaction>,
    requests: mpsc::Sender<Request>,
    pub(super) requested: mpsc::Receiver<Request>,
}

impl Recorder {
    pub(super) fn new(parts: &Parts, run_id: Id, out: Option<mpsc::Sender<Arc<Event>>>) -> Self {
        let (requests, requested) = mpsc::channel(REQUESTS);
        Self {
            run_id,
            log: None,
            out,
            held: Vec::new(),
            dirty: false,
            broken: false,
            timings: parts.options.timings.then(Timings::default),
            storage: Duration::ZERO,
            inbox: Arc::default(),
            redaction: parts.redaction.clone(),
            requests,
            requested,
        }
    }

    pub(super) fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&self.inbox) as Arc<dyn Observer>
    }

    pub(super) fn requests(&self) -> mpsc::Sender<Request> {
        self.requests.clone()
    }

    /// Whether the journal failed, so that nothing more can be put on record.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Whether somebody follows the run as it goes.
    pub(super) fn is_followed(&self) -> bool {
        self.out.is_some()
    }

    /// Where to send text as it comes.
    pub(super) fn teller(&self, ctx: &Context, seq: u64) -> Option<Teller> {
        let out = self.out.clone()?;
        Some(Teller { out, run_id: self.run_id.clone(), seq, ctx: ctx.clone() })
    }

    /// Folds an event, appends it to the journal and tells the caller: at once, or once it is
    /// safe if it is the result of something paid for.
    pub(super) async fn emit(
        &mut self,
        ctx: &Context,
        fold: &mut Fold,
        kind: EventKind,
    ) -> Result<()> {
        let observed = {
            let mut inbox = self.inbox.0.lock().unwrap_or_else(PoisonError::into_inner);
            if inbox.is_empty() { Vec::new() } else { std::mem::take(&mut *inbox) }
        };
        for kind in observed {
            self.emit_one(ctx, fold, kind).await?;
        }
        self.emit_one(ctx, fold, kind).await
    }

    async fn emit_one(&mut self, ctx: &Context, fold: &mut Fold, kind: EventKind) -> Result<()> {
        let event = Arc::new(Event {
            run_id: self.run_id.clone(),
            seq: fold.next_seq(),
            time: ctx.now(),
            kind,
        });
        fold.apply(&event)?;
        if let Some(timings) = &mut self.timings {
            timings.observe(&event.kind);
        }
        if let Some(log) = &mut self.log {
            let appended = match &self.redaction {
                None => log.append(&event),
                Some(rule) => rule.apply(&event).and_then(|event| log.append(&Arc::new(event))),
            };
            appended.map_err(|error| broke(&mut self.broken, error))?;
            self.dirty = true;
        }
        if self.out.is_some() {
            if event.kind.is_paid_for() || !self.held.is_empty() {
                self.held.push(event);
            } else {
                self.tell(event).await;
            }
        }
        Ok(())
    }

    /// Waits until everything so far is safe, then tells the caller what was held back. The run
    /// does this before it waits for anything outside.
    pub(super) async fn settle(&mut self, ctx: &Context) -> Result<()> {
        if self.dirty
            && let Some(log) = &mut self.log
        {
            let started = ctx.monotonic();
            let committed = log.commit().await;
            self.storage += ctx.monotonic().saturating_sub(started);
            committed.map_err(|error| broke(&mut self.broken, error))?;
            self.dirty = false;
        }
        self.tell_held().await;
        Ok(())
    }

    async fn tell(&mut self, event: Arc<Event>) {
        if let Some(out) = &self.out
            && out.send(event).await.is_err()
        {
            // Nobody listens any more; the run goes on for whoever awaits it.
            self.out = None;
        }
    }

    /// Makes everything safe and ends the log, in one go, then tells the caller the rest. Gives
    /// the journal's head, if there is a journal.
    pub(super) async fn close(&mut self, ctx: &Context) -> Result<Option<Hash>> {
        let head = match self.log.take() {
            None => None,
            Some(log) => {
                let started = ctx.monotonic();
                let closed = log.close().await;
                self.storage += ctx.monotonic().saturating_sub(started);
                Some(closed.map_err(|error| broke(&mut self.broken, error))?)
            }
        };
        self.dirty = false;
        self.tell_held().await;
        Ok(head)
    }

    async fn tell_held(&mut self) {
        for event in std::mem::take(&mut self.held) {
            self.tell(event).await;
        }
    }

    /// The timings of the run.
    pub(super) fn timings(&mut self) -> Timings {
        let mut timings = self.timings.take().unwrap_or_default();
        if !self.storage.is_zero() {
            timings.add_storage(self.storage);
        }
        timings
    }
}

fn broke(broken: &mut bool, error: Error) -> Error {
    *broken = true;
    error
}

/// Tells the caller of text as it comes.
pub(super) struct Teller {
    out: mpsc::Sender<Arc<Event>>,
    run_id: Id,
    seq: u64,
    ctx: Context,
}

impl Teller {
    pub(super) async fn delta(&self, delta: Delta) {
        let event = Event {
            run_id: self.run_id.clone(),
            seq: self.seq,
            time: self.ctx.now(),
            kind: EventKind::Delta(delta),
        };
        // Nobody listening is not the run's concern; it goes on for whoever awaits it.
        let _ = self.out.send(Arc::new(event)).await;
    }
}
