//! The layers at work around a call.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use sifaka_core::event::Transition;
use sifaka_core::{Clock, Context, Error, ErrorKind, EventKind, Failure, Result};

use crate::backoff::{Purse, delay};
use crate::circuit::{Change, Circuit, Permit, Rejected};
use crate::health::{Health, health};
use crate::limiter::Limiter;
use crate::options::{Resilience, Retry};

/// Protects the calls to one component: retry, circuit breaker, rate limit and timeout.
///
/// Cheap to clone; clones share the breaker, the rate limit and the retry budget, so there is one
/// guard for a component, however many runs use it. A call that succeeds at once costs no timer,
/// no lock and no allocation.
///
/// **Time.** Waiting is done on the clock of the call's context. The breaker and the rate limit
/// outlive single calls, and clocks of different contexts may count from different moments, so
/// these two read the clock of the first context that needed them, or the one given to
/// [`with_clock`](Self::with_clock).
///
/// **Cancellation.** A call ends with its context, wherever it is: waiting for its turn, for the
/// next try or for the answer. Dropping the future leaves nothing behind.
#[derive(Clone)]
pub struct Guard {
    inner: Arc<Inner>,
}

struct Inner {
    component: Arc<str>,
    options: Resilience,
    circuit: Option<Circuit>,
    limiter: Option<Limiter>,
    purse: Option<Purse>,
    clock: OnceLock<Arc<dyn Clock>>,
}

impl Guard {
    /// A guard for the component of that name, as it is to stand in events and errors.
    pub fn new(component: impl Into<Arc<str>>, options: &Resilience) -> Self {
        let budget = options.retry.as_ref().and_then(|retry| retry.budget.as_ref());
        Self {
            inner: Arc::new(Inner {
                component: component.into(),
                circuit: options.breaker.as_ref().map(Circuit::new),
                limiter: options.rate_limit.as_ref().map(Limiter::new),
                purse: budget.map(Purse::new),
                options: options.clone(),
                clock: OnceLock::new(),
            }),
        }
    }

    /// Has breaker and rate limit read this clock. Without effect once they have read another.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        self.inner.clock.get_or_init(|| clock);
        self
    }

    /// Whom it protects.
    #[must_use]
    pub fn component(&self) -> &str {
        &self.inner.component
    }

    /// How.
    #[must_use]
    pub fn options(&self) -> &Resilience {
        &self.inner.options
    }

    /// Whether the circuit breaker lets calls through; true without one.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.inner.circuit.as_ref().is_none_or(Circuit::is_closed)
    }

    /// Makes a call, again if need be. `f` is run once for every try; its future may borrow.
    ///
    /// # Errors
    /// An error that is not retryable comes back as it is, and so does one for whose next try no
    /// time is left before the deadline. Else
    /// - [`ErrorKind::RetriesExhausted`] when every try failed or the retry budget is spent, with
    ///   the last error as its source;
    /// - [`ErrorKind::CircuitOpen`] when the breaker keeps the call away;
    /// - [`ErrorKind::Timeout`] and [`ErrorKind::RateLimited`] when retries are off;
    /// - [`ErrorKind::Cancelled`] and [`ErrorKind::DeadlineExceeded`] as the context says.
    pub async fn call<'c, T, F, Fut>(&self, ctx: &'c Context, f: F) -> Result<T>
    where
        F: FnMut(&'c Context) -> Fut,
        Fut: Future<Output = Result<T>>,
    {
        self.call_within(ctx, self.inner.options.timeout, f).await
    }

    /// As [`call`](Self::call), with another limit for a single try, or none.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_within<'c, T, F, Fut>(
        &self,
        ctx: &'c Context,
        timeout: Option<Duration>,
        mut f: F,
    ) -> Result<T>
    where
        F: FnMut(&'c Context) -> Fut,
        Fut: Future<Output = Result<T>>,
    {
        let inner = &*self.inner;
        let mut last = None;
        let mut attempt = 1;
        loop {
            let error = match inner.attempt(ctx, timeout, &mut f).await {
                Ok(value) => {
                    if let Some(purse) = &inner.purse {
                        purse.refund();
                    }
                    return Ok(value);
                }
                Err(error) => error,
            };
            let wait = inner.after(ctx, attempt, error, &mut last)?;
            if let Err(ended) = ctx.sleep(wait).await {
                return Err(match last {
                    Some(error) => ended.with_source(error),
                    None => ended,
                });
            }
            attempt = attempt.saturating_add(1);
        }
    }

    /// Waits for `future` at most so long, and tells of it when that was not enough. For the parts
    /// of an answer that comes in parts; nothing is retried.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`], the context's end, or the future's own.
    pub async fn wait<T>(
        &self,
        ctx: &Context,
        timeout: Option<Duration>,
        future: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.inner.timed(ctx, timeout, future).await
    }

    /// Tells the breaker of an error that came after the call had begun to answer, such as a
    /// stream that broke off.
    pub fn report(&self, ctx: &Context, error: &Error) {
        let permit = self.inner.circuit.as_ref().and_then(Circuit::admit_closed);
        if let Some(permit) = permit {
            self.inner.judge(ctx, permit, Some(error));
        }
    }
}

impl Inner {
    /// One try: breaker, rate limit, timeout, call.
    async fn attempt<'c, T, F, Fut>(
        &self,
        ctx: &'c Context,
        timeout: Option<Duration>,
        f: &mut F,
    ) -> Result<T>
    where
        F: FnMut(&'c Context) -> Fut,
        Fut: Future<Output = Result<T>>,
    {
        let permit = match &self.circuit {
            Some(circuit) => Some(self.admit(ctx, circuit)?),
            None => None,
        };
        if let Some(limiter) = &self.limiter {
            self.take_turn(ctx, limiter).await?;
        }
        let result = self.timed(ctx, timeout, f(ctx)).await;
        if let Some(permit) = permit {
            self.judge(ctx, permit, result.as_ref().err());
        }
        result
    }

    fn admit<'s>(&self, ctx: &Context, circuit: &'s Circuit) -> Result<Permit<'s>> {
        if let Some(permit) = circuit.admit_closed() {
            return Ok(permit);
        }
        match circuit.admit(self.now(ctx)) {
            Ok((permit, change)) => {
                self.changed(ctx, change);
                Ok(permit)
            }
            Err(rejected) => {
                self.observe(ctx, || Transition::CircuitRejected);
                Err(self.circuit_open(rejected))
            }
        }
    }

    async fn take_turn(&self, ctx: &Context, limiter: &Limiter) -> Result<()> {
        let waited = limiter.take(self.now(ctx), ctx.remaining()).map_err(|wait| {
            let message = format!("its turn would come in {wait:.1?}, after the deadline");
            Error::new(ErrorKind::RateLimited, &*self.component, "wait", message)
                .with_retry_after(wait)
                .suggest("allow more time, or raise `rate_limit`")
        })?;
        if !waited.is_zero() {
            ctx.sleep(waited).await?;
            self.observe(ctx, || Transition::RateLimited { waited: waited.into() });
        }
        Ok(())
    }

    /// The call is polled before any timer is made, so an answer that is there at once costs none.
    async fn timed<T>(
        &self,
        ctx: &Context,
        timeout: Option<Duration>,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let Some(limit) = timeout else { return ctx.run(call).await };
        let mut call = pin!(call);
        let mut timer = None;
        ctx.run(poll_fn(|cx| {
            if let Poll::Ready(result) = call.as_mut().poll(cx) {
                return Poll::Ready(result);
            }
            let timer = timer.get_or_insert_with(|| ctx.clock().sleep(limit));
            timer.as_mut().poll(cx).map(|()| Err(self.timed_out(ctx, limit)))
        }))
        .await
    }

    fn timed_out(&self, ctx: &Context, limit: Duration) -> Error {
        self.observe(ctx, || Transition::TimedOut { after: limit.into() });
        let message = format!("no answer within {limit:.1?}");
        Error::new(ErrorKind::Timeout, &*self.component, "call", message)
            .suggest("raise the timeout, or ask for less at once")
    }

    fn judge(&self, ctx: &Context, permit: Permit<'_>, error: Option<&Error>) {
        let change = match error.map_or(Health::Well, |error| health(error.kind())) {
            Health::Well => permit.succeed(),
            Health::Unwell => permit.fail(self.now(ctx)),
            Health::Unknown => None,
        };
        self.changed(ctx, change);
    }

    /// What comes after a failed try: how long to wait for the next one, or the end.
    fn after(
        &self,
        ctx: &Context,
        attempt: u32,
        error: Error,
        last: &mut Option<Error>,
    ) -> Result<Duration> {
        let Some(retry) = self.options.retry.as_ref().filter(|retry| retry.max_attempts > 1) else {
            return Err(error);
        };
        if !error.kind().is_retryable() {
            return Err(match (error.kind(), last.take()) {
                // The breaker opened meanwhile: why the try before failed tells more.
                (ErrorKind::CircuitOpen, Some(before)) => error.with_source(before),
                _ => error,
            });
        }
        if attempt >= retry.max_attempts {
            return Err(self.exhausted(ctx, attempt, error, retry));
        }
        let wait = delay(retry, attempt, ctx.random_unit(), error.retry_after());
        if ctx.remaining().is_some_and(|left| wait >= left) {
            return Err(error);
        }
        if self.purse.as_ref().is_some_and(|purse| !purse.pay()) {
            return Err(self.exhausted(ctx, attempt, error, retry));
        }
        self.observe(ctx, || Transition::Retrying {
            attempt,
            delay: wait.into(),
            failure: Failure::from(&error),
        });
        *last = Some(error);
        Ok(wait)
    }

    fn exhausted(&self, ctx: &Context, attempts: u32, last: Error, retry: &Retry) -> Error {
        self.observe(ctx, || Transition::RetriesExhausted { attempts });
        let said = last.message();
        let (message, advice) = if attempts >= retry.max_attempts {
            let advice = "see whether the service is up, or raise `retry.max_attempts`";
            (format!("all {attempts} tries failed, the last with: {said}"), advice)
        } else {
            let advice = "wait until the service works again, or raise `retry.budget`";
            (format!("try {attempts} failed and the retry budget is spent: {said}"), advice)
        };
        let mut error = Error::new(ErrorKind::RetriesExhausted, last.component(), "call", message);
        for suggestion in last.suggestions() {
            error = error.suggest(suggestion.clone());
        }
        error = error.suggest(advice);
        if let Some(wait) = last.retry_after() {
            error = error.with_retry_after(wait);
        }
        if let Some(thought) = last.thought() {
            error = error.with_thought(thought.clone());
        }
        error.with_source(last)
    }

    fn circuit_open(&self, rejected: Rejected) -> Error {
        let message = match rejected.retry_in {
            Some(wait) => {
                format!("it failed too often and is left alone; the next try is in {wait:.1?}")
            }
            None => "it failed too often; a trial call is under way".to_owned(),
        };
        let error = Error::new(ErrorKind::CircuitOpen, &*self.component, "call", message)
            .suggest("wait and try again, or name a fallback");
        match rejected.retry_in {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        }
    }

    fn now(&self, ctx: &Context) -> Duration {
        self.clock.get_or_init(|| Arc::clone(ctx.clock())).monotonic()
    }

    fn changed(&self, ctx: &Context, change: Option<Change>) {
        let Some(change) = change else { return };
        self.observe(ctx, || match change {
            Change::Opened => {
                let open_for = self.options.breaker.map(|breaker| breaker.open_for);
                Transition::CircuitOpened { for_: open_for.unwrap_or_default().into() }
            }
            Change::HalfOpened => Transition::CircuitHalfOpened,
            Change::Closed => Transition::CircuitClosed,
        });
    }

    fn observe(&self, ctx: &Context, transition: impl FnOnce() -> Transition) {
        if ctx.is_observed() {
            let component = Arc::clone(&self.component);
            ctx.observe(EventKind::Resilience { component, transition: transition() });
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("component", &self.inner.component)
            .field("options", &self.inner.options)
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
