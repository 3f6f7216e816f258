//! Components at work side by side.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt, poll};
use sifaka_core::{Context, Error, ErrorKind, Result};

use super::Runner;
use super::record::Request;

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Futures that are worked on together.
pub(super) struct Wave<'a, T> {
    fresh: Vec<Boxed<'a, T>>,
    waiting: FuturesUnordered<Boxed<'a, T>>,
}

impl<'a, T> Wave<'a, T> {
    pub(super) fn new() -> Self {
        Self { fresh: Vec::new(), waiting: FuturesUnordered::new() }
    }

    pub(super) fn push(&mut self, future: impl Future<Output = T> + Send + 'a) {
        self.fresh.push(Box::pin(future));
    }
}

impl Runner<'_> {
    /// What has ended since the last call, at least one; `None` when all have. Components that are
    /// done at once come together and cost no waiting. Before it does wait, everything on record
    /// is made safe; while it waits it records what components ask for.
    pub(super) async fn ready<T>(&mut self, wave: &mut Wave<'_, T>) -> Result<Option<Vec<T>>> {
        let mut ready = Vec::with_capacity(wave.fresh.len());
        for mut future in wave.fresh.drain(..) {
            match poll!(future.as_mut()) {
                std::task::Poll::Ready(value) => ready.push(value),
                std::task::Poll::Pending => wave.waiting.push(future),
            }
        }
        if !ready.is_empty() {
            return Ok(Some(ready));
        }
        if wave.waiting.is_empty() {
            return Ok(None);
        }
        self.settle().await?;
        let inbox = self.record.inbox();
        loop {
            tokio::select! {
                biased;
                Some(request) = self.record.requested.recv() => {
                    let Request { kind, done } = request;
                    self.emit(kind).await?;
                    self.settle().await?;
                    // A component that was cancelled meanwhile does not wait for the answer.
                    let _ = done.send(());
                }
                () = inbox.rings() => self.record.hear(&mut self.fold).await?,
                value = wave.waiting.next() => match value {
                    None => return Ok(None),
                    Some(value) => {
                        ready.push(value);
                        while let Some(Some(value)) = wave.waiting.next().now_or_never() {
                            ready.push(value);
                        }
                        return Ok(Some(ready));
                    }
                },
            }
        }
    }
}

impl Runner<'_> {
    /// Waits for a call, and puts on record what is heard from inside it meanwhile.
    pub(super) async fn attend<T>(&mut self, call: impl Future<Output = T>) -> Result<T> {
        let inbox = self.record.inbox();
        tokio::pin!(call);
        loop {
            tokio::select! {
                biased;
                value = &mut call => return Ok(value),
                () = inbox.rings() => self.record.hear(&mut self.fold).await?,
            }
        }
    }
}

/// The words of a panic.
pub(super) fn panic_words(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}

/// Runs a component's future to its end, the run's end, or its panic, which becomes an error.
pub(super) async fn contain<T>(
    ctx: &Context,
    future: impl Future<Output = Result<T>>,
) -> Result<T> {
    match AssertUnwindSafe(ctx.run(future)).catch_unwind().await {
        Ok(result) => result,
        Err(panic) => {
            let words = panic_words(&*panic);
            Err(Error::new(
                ErrorKind::Internal,
                ctx.component(),
                "call",
                format!("it panicked: {words}"),
            )
            .suggest("this is a mistake in the component, not in the text"))
        }
    }
}

/// Whether an error ends the run rather than one component's work.
pub(super) fn ends_the_run(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::DeadlineExceeded)
}
