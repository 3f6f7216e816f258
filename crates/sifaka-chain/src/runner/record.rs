//! Keeping the record of a run: fold, journal, the caller's stream and timings.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use sifaka_core::event::{EventKind, Fold};
use sifaka_core::journal::RunLog;
use sifaka_core::model::Delta;
use sifaka_core::{Clock, Context, Error, Event, Hash, Id, Observer, Result};
use sifaka_telemetry::Timings;
use tokio::sync::{Notify, mpsc, oneshot};

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
pub(super) struct Inbox {
    clock: Arc<dyn Clock>,
    heard: Mutex<Vec<(Timestamp, EventKind)>>,
    bell: Notify,
}

impl Inbox {
    /// Completes when there is something to put on record.
    pub(super) async fn rings(&self) {
        self.bell.notified().await;
    }

    fn take(&self) -> Vec<(Timestamp, EventKind)> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.is_empty() { Vec::new() } else { std::mem::take(&mut *heard) }
    }
}

impl Observer for Inbox {
    fn observe(&self, kind: EventKind) {
        let heard = (self.clock.now(), kind);
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).push(heard);
        self.bell.notify_one();
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
    inbox: Arc<Inbox>,
    redaction: Option<Redaction>,
    requests: mpsc::Sender<Request>,
    pub(super) requested: mpsc::Receiver<Request>,
}

impl Recorder {
    pub(super) fn new(
        parts: &Parts,
        run_id: Id,
        clock: Arc<dyn Clock>,
        out: Option<mpsc::Sender<Arc<Event>>>,
    ) -> Self {
        let (requests, requested) = mpsc::channel(REQUESTS);
        Self {
            run_id,
            log: None,
            out,
            held: Vec::new(),
            dirty: false,
            broken: false,
            timings: parts.options.timings.then(Timings::default),
            inbox: Arc::new(Inbox { clock, heard: Mutex::default(), bell: Notify::new() }),
            redaction: parts.redaction.clone(),
            requests,
            requested,
        }
    }

    pub(super) fn inbox(&self) -> Arc<Inbox> {
        Arc::clone(&self.inbox)
    }

    /// Takes the timings of what happened before the run was left.
    pub(super) fn remember(&mut self, events: &[Event]) {
        if let Some(timings) = &mut self.timings {
            events.iter().for_each(|event| timings.observe(&event.kind));
        }
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
        self.hear(fold).await?;
        self.emit_one(ctx.now(), fold, kind).await
    }

    /// Puts on record what was heard from inside calls.
    pub(super) async fn hear(&mut self, fold: &mut Fold) -> Result<()> {
        let heard = self.inbox.take();
        if heard.is_empty() {
            return Ok(());
        }
        for (time, kind) in heard {
            self.emit_one(time, fold, kind).await?;
        }
        // It need not be safe before the call goes on, but it should be soon.
        let Some(log) = &mut self.log else { return Ok(()) };
        let flushed = log.flush().await;
        flushed.map_err(|error| broke(&mut self.broken, error))
    }

    async fn emit_one(&mut self, time: Timestamp, fold: &mut Fold, kind: EventKind) -> Result<()> {
        let run_id = self.run_id.clone();
        let event = Arc::new(Event { run_id, seq: fold.next_seq(), time, kind });
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
            if event.kind.is_acknowledged() || !self.held.is_empty() {
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
            self.waited(ctx.monotonic().saturating_sub(started));
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
                let waited = ctx.monotonic().saturating_sub(started);
                self.waited(waited);
                if let Some(timings) = &mut self.timings {
                    // The run's own figure was written before this wait.
                    timings.add_total(waited);
                }
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

    fn waited(&mut self, time: Duration) {
        if let Some(timings) = &mut self.timings {
            timings.add_storage(time);
        }
    }

    /// The timings of the run.
    pub(super) fn timings(&mut self) -> Timings {
        self.timings.take().unwrap_or_default()
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
