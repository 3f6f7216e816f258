//! Components that fail as told, and an ear for what happens.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sifaka_core::event::Transition;
use sifaka_core::{Context, Error, ErrorKind, EventKind, Observer, Result};
use sifaka_resilience::{Resilience, Retry};

#[derive(Default)]
pub(crate) struct Ear(Mutex<Vec<(String, Transition)>>);

impl Observer for Ear {
    fn observe(&self, kind: EventKind) {
        if let EventKind::Resilience { component, transition } = kind {
            self.0.lock().unwrap().push((component.to_string(), transition));
        }
    }
}

impl Ear {
    pub(crate) fn all(&self) -> Vec<(String, Transition)> {
        self.0.lock().unwrap().clone()
    }

    /// The names of the transitions, in the order they came.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.all().iter().map(|(_, transition)| name(transition)).collect()
    }

    /// The delays before retries, in milliseconds.
    pub(crate) fn delays(&self) -> Vec<u64> {
        let delay = |transition: &Transition| match transition {
            Transition::Retrying { delay, .. } => Some(delay.0 / 1_000_000),
            _ => None,
        };
        self.all().iter().filter_map(|(_, transition)| delay(transition)).collect()
    }
}

fn name(transition: &Transition) -> &'static str {
    match transition {
        Transition::Retrying { .. } => "retrying",
        Transition::RetriesExhausted { .. } => "exhausted",
        Transition::CircuitOpened { .. } => "opened",
        Transition::CircuitHalfOpened => "half-opened",
        Transition::CircuitClosed => "closed",
        Transition::CircuitRejected => "rejected",
        Transition::RateLimited { .. } => "rate-limited",
        Transition::TimedOut { .. } => "timed-out",
        Transition::FellBack { .. } => "fell-back",
        _ => "other",
    }
}

pub(crate) fn listening() -> (Context, Arc<Ear>) {
    let ear = Arc::new(Ear::default());
    let ctx = Context::builder().seed(1).observer(Arc::clone(&ear) as Arc<dyn Observer>).build();
    (ctx, ear)
}

pub(crate) fn down() -> Error {
    error(ErrorKind::Unavailable)
}

pub(crate) fn error(kind: ErrorKind) -> Error {
    Error::new(kind, "service", "ask", "it is down").suggest("start it")
}

/// Fails with these errors, one a call, and answers with the number of the call after that.
pub(crate) fn failing<'c>(
    errors: impl IntoIterator<Item = Error>,
) -> impl FnMut(&'c Context) -> std::future::Ready<Result<u32>> {
    let mut errors = errors.into_iter();
    let mut calls = 0;
    move |_| {
        calls += 1;
        std::future::ready(errors.next().map_or(Ok(calls), Err))
    }
}

/// Retries without jitter and without a budget.
pub(crate) fn plain_retry() -> Retry {
    Retry { jitter: 0.0, budget: None, ..Retry::default() }
}

/// Only these retries.
pub(crate) fn only_retry(retry: Retry) -> Resilience {
    Resilience::none().with_retry(retry)
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// What `future` gave, and how long that took on the context's clock.
pub(crate) async fn timed<T>(ctx: &Context, future: impl Future<Output = T>) -> (T, Duration) {
    let begun = ctx.monotonic();
    let value = future.await;
    (value, ctx.monotonic().saturating_sub(begun))
}
