//! Following a run event by event.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use futures_core::Stream;
use futures_util::StreamExt;
use sifaka_core::{Error, ErrorKind, Event, Result};
use tokio::sync::mpsc;

use crate::outcome::Outcome;
use crate::run::Run;
use crate::runner;

/// How many events may wait for a slow reader before the run waits for it.
const QUEUE: usize = 64;

/// A run's events as they happen; see [`Run::stream`].
///
/// Results of steps that were paid for come only once they are safe in the journal. The run is
/// driven by reading: when the stream is dropped, the run ends where it is and can be resumed.
/// An error is the last item; [`outcome`](Self::outcome) gives the end result.
pub struct RunStream {
    run: Option<Pin<Box<dyn Future<Output = Result<Outcome>> + Send>>>,
    events: mpsc::Receiver<Arc<Event>>,
    outcome: Option<Outcome>,
}

impl RunStream {
    pub(crate) fn new(run: Run) -> Self {
        let (sender, events) = mpsc::channel(QUEUE);
        Self { run: Some(Box::pin(runner::execute(run, Some(sender)))), events, outcome: None }
    }

    /// Reads what is left and gives the outcome.
    ///
    /// # Errors
    /// The run's own.
    pub async fn outcome(mut self) -> Result<Outcome> {
        while let Some(event) = self.next().await {
            event?;
        }
        self.outcome.ok_or_else(|| {
            Error::new(ErrorKind::Internal, "chain", "stream", "the run had failed already")
        })
    }
}

impl Stream for RunStream {
    type Item = Result<Arc<Event>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Poll::Ready(Some(event)) = self.events.poll_recv(cx) {
                return Poll::Ready(Some(Ok(event)));
            }
            let Some(run) = self.run.as_mut() else { return Poll::Ready(None) };
            match run.as_mut().poll(cx) {
                Poll::Ready(result) => {
                    self.run = None;
                    match result {
                        Ok(outcome) => self.outcome = Some(outcome),
                        Err(error) => {
                            // What happened before the error is told first.
                            if let Ok(event) = self.events.try_recv() {
                                self.run = Some(Box::pin(std::future::ready(Err(error))));
                                return Poll::Ready(Some(Ok(event)));
                            }
                            return Poll::Ready(Some(Err(error)));
                        }
                    }
                }
                Poll::Pending => match self.events.poll_recv(cx) {
                    Poll::Ready(Some(event)) => return Poll::Ready(Some(Ok(event))),
                    Poll::Ready(None) | Poll::Pending => return Poll::Pending,
                },
            }
        }
    }
}

impl fmt::Debug for RunStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunStream").field("done", &self.run.is_none()).finish_non_exhaustive()
    }
}
