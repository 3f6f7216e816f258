//! The one writer of a run.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use sifaka_core::body::BLOB_THRESHOLD;
use sifaka_core::journal::RunLog;
use sifaka_core::{Body, Clock, Error, ErrorKind, Event, EventKind, Hash, Id, Result};
use tokio::sync::oneshot;

use super::Handle;
use super::failure::writer_gone;
use super::lease::Lease;
use super::read::tag_code;
use super::request::{Batch, End, Grant, Request, Row};
use super::row::nanos;
use crate::summary::{Summary, asked, not_next, prompt_line, thoughts, wrong_run};

/// About what an event takes besides its payload.
const OVERHEAD: usize = 160;

type Answer = oneshot::Receiver<Result<()>>;

pub(super) struct SqliteLog {
    // Before the handle: the lease is given back through it.
    lease: Lease,
    handle: Arc<Handle>,
    run: Id,
    clock: Arc<dyn Clock>,
    next_seq: u64,
    last_hash: Hash,
    summary: Option<Summary>,
    /// Appended, and not handed over.
    buffer: Option<Batch>,
    /// Handed over, and not safe as far as we know; oldest first.
    pending: VecDeque<(Arc<Batch>, Answer)>,
    /// What could not be stored; tried again before anything newer.
    failed: VecDeque<Arc<Batch>>,
}

impl SqliteLog {
    pub(super) fn new(handle: Arc<Handle>, run: Id, clock: Arc<dyn Clock>, grant: Grant) -> Self {
        Self {
            lease: grant.lease,
            handle,
            run,
            clock,
            next_seq: grant.stored.events,
            last_hash: grant.stored.last_hash,
            summary: grant.stored.summary,
            buffer: None,
            pending: VecDeque::new(),
            failed: VecDeque::new(),
        }
    }

    /// Everything that has to be handed over, in order.
    fn take_unsent(&mut self) -> Vec<Arc<Batch>> {
        let mut unsent: Vec<Arc<Batch>> = self.failed.drain(..).collect();
        unsent.extend(self.buffer.take().map(Arc::new));
        unsent
    }

    fn unsent_bytes(&self) -> usize {
        let failed: usize = self.failed.iter().map(|batch| batch.bytes).sum();
        failed + self.buffer.as_ref().map_or(0, |batch| batch.bytes)
    }

    /// Hands everything over, with `more` behind it in the same transaction.
    async fn send(&mut self, more: Option<Request>) -> Result<()> {
        let bytes = self.unsent_bytes();
        if bytes == 0 && more.is_none() {
            return Ok(());
        }
        let queue = Arc::clone(&self.handle.queue);
        // Nothing is taken out before there is room for it: giving up here loses nothing.
        let room = queue.room(bytes).await?;
        let mut requests = Vec::with_capacity(2);
        for batch in self.take_unsent() {
            let (reply, answer) = oneshot::channel();
            requests.push(Request::Append { batch: Arc::clone(&batch), reply });
            self.pending.push_back((batch, answer));
        }
        requests.extend(more);
        queue.push(Some(room), requests)
    }

    /// Waits for every answer. What could not be stored is kept.
    async fn settle(&mut self) -> Result<()> {
        let mut first_error = None;
        // The front stays in its place while it is waited for: giving up here loses nothing.
        while let Some((_, answer)) = self.pending.front_mut() {
            let result = answer.await.unwrap_or_else(|_| Err(writer_gone()));
            if let (Some((batch, _)), Err(error)) = (self.pending.pop_front(), result) {
                self.failed.push_back(batch);
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }
}

#[async_trait]
impl RunLog for SqliteLog {
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
        let Some(time) = nanos(event.time) else {
            let message =
                format!("the time of event {}, {}, is too far away", event.seq, event.time);
            return Err(Error::new(ErrorKind::InvalidInput, "journal", "append", message)
                .suggest("see that the clock is right"));
        };
        let mut apart = Vec::new();
        let sealed = match event.kind.split_off_bodies(BLOB_THRESHOLD, &mut apart) {
            None => event.seal(self.last_hash)?,
            Some(kind) => Event { kind, ..Event::clone(event) }.seal(self.last_hash)?,
        };
        let summary = self.summary.get_or_insert_with(|| Summary::new(event.time));
        summary.apply(event.time, &event.kind);
        let batch = self.buffer.get_or_insert_with(|| Batch {
            run: self.run.clone(),
            log: self.lease.log(),
            first: event.seq,
            previous: self.last_hash,
            rows: Vec::new(),
            bodies: Vec::new(),
            pointers: Vec::new(),
            thoughts: Vec::new(),
            tags: Vec::new(),
            prompt: None,
            summary: summary.clone(),
            bytes: 0,
        });
        let payload = sealed.payload.unwrap_or_default();
        batch.bytes += OVERHEAD + payload.len();
        batch.rows.push(Row {
            time,
            kind: sealed.header.kind,
            payload_hash: sealed.header.payload_hash,
            hash: sealed.hash,
            payload,
        });
        batch.summary.clone_from(summary);
        batch.note(&event.kind, apart);
        self.last_hash = sealed.hash;
        self.next_seq += 1;
        Ok(())
    }

    async fn flush(&mut self) -> Result<()> {
        self.send(None).await
    }

    async fn commit(&mut self) -> Result<()> {
        self.flush().await?;
        self.settle().await
    }

    async fn close(mut self: Box<Self>) -> Result<Hash> {
        let (reply, head) = oneshot::channel();
        let end = End {
            run: self.run.clone(),
            log: self.lease.log(),
            events: self.next_seq,
            last_hash: self.last_hash,
            time: self.clock.now(),
        };
        self.send(Some(Request::Close { end, reply })).await?;
        self.settle().await?;
        let head = head.await.unwrap_or_else(|_| Err(writer_gone()))?;
        self.lease.end();
        Ok(head)
    }
}

impl Batch {
    /// Takes what is stored along with an event.
    fn note(&mut self, kind: &EventKind, apart: Vec<(sifaka_core::BlobRef, Body)>) {
        for (pointer, body) in apart {
            self.bytes += OVERHEAD + usize::try_from(body.len()).unwrap_or(usize::MAX / 4);
            self.bodies.push((pointer.blob, body));
        }
        kind.for_each_body(|body| {
            if let Body::Blob(pointer) = body {
                self.pointers.push(pointer.blob);
            }
        });
        // Only a run's first event says what was asked.
        if self.first == 0
            && self.rows.len() == 1
            && let Some((prompt, tags)) = asked(kind)
        {
            self.prompt = Some(prompt_line(prompt));
            self.tags = tags.iter().map(|(key, value)| tag_code(key, value)).collect();
        }
        // The run's own id is found among the runs.
        let others = thoughts(kind).into_iter().filter(|thought| *thought != self.run);
        self.thoughts.extend(others);
    }
}
