//! What every call carries: cancellation, deadline, budget, clock, randomness and an observer.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
pub use tokio_util::sync::CancellationToken;

use crate::budget::{Budget, Ledger};
use crate::clock::{Clock, SystemClock};
use crate::event::EventKind;
use crate::model::{Model, Request, Response};
use crate::{Error, ErrorKind, Result};

/// Hears of what happens inside a call: retries, breakers, fallbacks, stored calls.
///
/// Called synchronously from inside the call, so it must be quick and must not block. What it
/// hears becomes an event of the run.
pub trait Observer: Send + Sync {
    /// Takes one occurrence.
    fn observe(&self, kind: EventKind);
}

/// Stands between a component and the models it asks: limits, retries and records each call.
#[async_trait::async_trait]
pub trait Caller: Send + Sync {
    /// Asks `model` on behalf of the context's component.
    async fn call(&self, ctx: &Context, model: &dyn Model, request: &Request) -> Result<Response>;
}

/// Carried by every call, first argument of every trait method.
///
/// Cheap to clone. A child made by one of the `with_…` methods shares everything it does not
/// replace, so that signatures never have to grow.
#[derive(Clone)]
pub struct Context {
    shared: Arc<Shared>,
    cancel: CancellationToken,
    deadline: Option<Duration>,
    observer: Option<Arc<dyn Observer>>,
    caller: Option<Arc<dyn Caller>>,
    component: Arc<str>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    ledger: Arc<Ledger>,
    seed: u64,
    drawn: AtomicU64,
}

impl Context {
    /// A context without deadline or limits, on the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Starts a context with parts of your own.
    #[must_use]
    pub fn builder() -> ContextBuilder {
        ContextBuilder::default()
    }

    /// The wall clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Time that never goes backward, for measuring durations.
    #[must_use]
    pub fn monotonic(&self) -> Duration {
        self.shared.clock.monotonic()
    }

    /// The clock itself.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    /// The next random number of this context's sequence; the same seed gives the same sequence.
    #[must_use]
    pub fn random(&self) -> u64 {
        // SplitMix64 over a counter: lock-free, and one stream however many clones draw from it.
        let drawn = self.shared.drawn.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let mut z = self.shared.seed.wrapping_add(drawn.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A random number in `0.0..1.0`.
    #[must_use]
    pub fn random_unit(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
        let unit = (self.random() >> 11) as f64 / (1_u64 << 53) as f64;
        unit
    }

    /// What has been spent and what may still be.
    #[must_use]
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.shared.ledger
    }

    /// The token that ends this call early.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Name of the component the call is for, as it stands in events and errors.
    #[must_use]
    pub fn component(&self) -> &str {
        &self.component
    }

    /// How long until the deadline; `None` without one, zero when it has passed.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_sub(self.monotonic()))
    }

    /// Tells the observer, if there is one.
    pub fn observe(&self, kind: EventKind) {
        if let Some(observer) = &self.observer {
            observer.observe(kind);
        }
    }

    /// Whether anybody listens to [`observe`](Self::observe).
    #[must_use]
    pub fn is_observed(&self) -> bool {
        self.observer.is_some()
    }

    /// Fails when the call was cancelled or its deadline has passed. Long computations ask now and
    /// then.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`] or [`ErrorKind::DeadlineExceeded`].
    pub fn check(&self) -> Result<()> {
        if self.cancel.is_cancelled() {
            return Err(self.cancelled());
        }
        if self.remaining().is_some_and(|left| left.is_zero()) {
            return Err(self.deadline_exceeded());
        }
        Ok(())
    }

    /// Runs `future` until it ends, the call is cancelled or its deadline passes, whichever is
    /// first. A future that is ready at once costs no timer.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`], [`ErrorKind::DeadlineExceeded`], or the future's own.
    pub async fn run<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        self.check()?;
        let ended = async {
            match self.remaining() {
                Some(left) => tokio::select! {
                    () = self.cancel.cancelled() => self.cancelled(),
                    () = self.shared.clock.sleep(left) => self.deadline_exceeded(),
                },
                None => {
                    self.cancel.cancelled().await;
                    self.cancelled()
                }
            }
        };
        tokio::select! {
            biased;
            result = future => result,
            error = ended => Err(error),
        }
    }

    /// Waits, unless the call ends first.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn sleep(&self, duration: Duration) -> Result<()> {
        self.run(async {
            self.shared.clock.sleep(duration).await;
            Ok(())
        })
        .await
    }

    /// Asks a model. Inside a run the call is held to the budget, retried, timed and recorded, and
    /// an answer that is on record already is not paid for again; outside of one it is just made.
    ///
    /// Every component that needs a model asks it through here.
    ///
    /// # Errors
    /// The model's own, and what the run's limits say.
    pub async fn generate(&self, model: &dyn Model, request: &Request) -> Result<Response> {
        match &self.caller {
            Some(caller) => caller.call(self, model, request).await,
            None => self.run(model.generate(self, request)).await,
        }
    }

    /// The same context with models asked through `caller`.
    #[must_use]
    pub fn with_caller(&self, caller: Arc<dyn Caller>) -> Self {
        Self { caller: Some(caller), ..self.clone() }
    }

    /// The same context for another component.
    #[must_use]
    pub fn for_component(&self, name: impl Into<Arc<str>>) -> Self {
        Self { component: name.into(), ..self.clone() }
    }

    /// The same context with a deadline no later than `timeout` from now.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        let at = self.monotonic().saturating_add(timeout);
        let deadline = Some(self.deadline.map_or(at, |old| old.min(at)));
        Self { deadline, ..self.clone() }
    }

    /// A child that ends with this one, and can be ended alone.
    #[must_use]
    pub fn with_child_cancellation(&self) -> Self {
        Self { cancel: self.cancel.child_token(), ..self.clone() }
    }

    /// The same context with another observer.
    #[must_use]
    pub fn with_observer(&self, observer: Arc<dyn Observer>) -> Self {
        Self { observer: Some(observer), ..self.clone() }
    }

    fn cancelled(&self) -> Error {
        Error::new(ErrorKind::Cancelled, &*self.component, "call", "the call was cancelled")
    }

    fn deadline_exceeded(&self) -> Error {
        Error::new(ErrorKind::DeadlineExceeded, &*self.component, "call", "the deadline has passed")
            .suggest("allow more time, or ask for less text")
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("component", &self.component)
            .field("deadline", &self.deadline)
            .field("cancelled", &self.cancel.is_cancelled())
            .finish_non_exhaustive()
    }
}

/// Makes a [`Context`]; see [`Context::builder`].
#[derive(Default)]
pub struct ContextBuilder {
    clock: Option<Arc<dyn Clock>>,
    budget: Budget,
    ledger: Option<Arc<Ledger>>,
    seed: Option<u64>,
    cancel: Option<CancellationToken>,
    observer: Option<Arc<dyn Observer>>,
}

impl ContextBuilder {
    /// Takes time from `clock`.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Caps what calls may spend; its time becomes the deadline.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Goes on with a ledger that has spent already; its limits replace [`budget`](Self::budget)'s.
    #[must_use]
    pub fn ledger(mut self, ledger: Arc<Ledger>) -> Self {
        self.ledger = Some(ledger);
        self
    }

    /// Fixes the sequence of random numbers.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Ends calls when `token` is cancelled.
    #[must_use]
    pub fn cancel_on(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Tells `observer` what happens.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The context.
    #[must_use]
    pub fn build(self) -> Context {
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
        let ledger = self.ledger.unwrap_or_else(|| Arc::new(Ledger::new(self.budget)));
        let deadline = ledger.limits().time.map(|time| clock.monotonic().saturating_add(time));
        let seed = self.seed.unwrap_or_else(|| {
            // The standard library's hasher keys are random per process and bumped per instance.
            use std::hash::{BuildHasher, Hasher};
            std::collections::hash_map::RandomState::new().build_hasher().finish()
        });
        Context {
            shared: Arc::new(Shared { clock, ledger, seed, drawn: AtomicU64::new(0) }),
            cancel: self.cancel.unwrap_or_default(),
            deadline,
            observer: self.observer,
            caller: None,
            component: Arc::from("sifaka"),
        }
    }
}

impl fmt::Debug for ContextBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextBuilder").field("budget", &self.budget).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_sequence() {
        let draw = |seed| {
            let ctx = Context::builder().seed(seed).build();
            (0..5).map(|_| ctx.clone().random()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_ends_a_call() {
        let ctx = Context::new().with_timeout(Duration::from_secs(5));
        let error = ctx.run(std::future::pending::<Result<()>>()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
        assert!(ctx.check().is_err());
    }

    #[tokio::test]
    async fn cancelling_the_parent_ends_the_child() {
        let parent = Context::new();
        let child = parent.with_child_cancellation();
        child.cancellation().cancel();
        assert!(parent.check().is_ok());
        parent.cancellation().cancel();
        let error = child.sleep(Duration::from_secs(3600)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }
}
