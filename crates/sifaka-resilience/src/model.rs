//! A model behind a guard.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};
use sifaka_core::model::{Capabilities, Delta, DeltaStream, Price, Request, Response, TokenCount};
use sifaka_core::{Context, Error, ErrorKind, Model, Result};

use crate::guard::Guard;
use crate::options::Resilience;

/// A model whose calls go through a [`Guard`].
///
/// `generate` is tried again as a whole. A stream is tried again until its first delta has come;
/// after that the text is out and an error ends it. Instead of the timeout of a call, a stream has
/// the `idle_timeout`, before the first delta and between two.
#[derive(Clone)]
pub struct GuardedModel {
    model: Arc<dyn Model>,
    guard: Guard,
}

impl GuardedModel {
    /// Protects `model` under its own name.
    #[must_use]
    pub fn new(model: Arc<dyn Model>, options: &Resilience) -> Self {
        let guard = Guard::new(model.name(), options);
        Self::with_guard(model, guard)
    }

    /// Protects `model` with a guard it may share with others, such as models of one provider.
    #[must_use]
    pub fn with_guard(model: Arc<dyn Model>, guard: Guard) -> Self {
        Self { model, guard }
    }

    /// The guard.
    #[must_use]
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// What is left of a stream after its first delta, held to the idle timeout.
    fn rest<'a>(&'a self, ctx: &'a Context, rest: DeltaStream<'a>) -> DeltaStream<'a> {
        Box::pin(stream::unfold(Some(rest), async move |rest| {
            let mut rest = rest?;
            let limit = self.guard.options().idle_timeout;
            let next = async { rest.next().await.unwrap_or_else(|| Err(cut_off(self.name()))) };
            let item = self.guard.wait(ctx, limit, next).await;
            if let Err(error) = &item {
                self.guard.report(ctx, error);
            }
            let more = matches!(&item, Ok(delta) if !matches!(delta, Delta::Done(_)));
            Some((item, more.then_some(rest)))
        }))
    }
}

/// A stream that ended without saying that it is done.
fn cut_off(model: &str) -> Error {
    Error::new(ErrorKind::Unavailable, model, "stream", "the answer was cut off")
        .suggest("try again; if it happens often, look at the connection or a proxy in between")
}

/// Waits for a stream's first delta, so that what goes wrong before it can be tried again.
pub(crate) async fn first_delta<'a>(
    model: &str,
    mut deltas: DeltaStream<'a>,
) -> Result<(Delta, DeltaStream<'a>)> {
    match deltas.next().await {
        Some(first) => Ok((first?, deltas)),
        None => Err(cut_off(model)),
    }
}

#[async_trait]
impl Model for GuardedModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.model.capabilities()
    }

    async fn generate(&self, ctx: &Context, request: &Request) -> Result<Response> {
        self.guard.call(ctx, |ctx| self.model.generate(ctx, request)).await
    }

    fn stream<'a>(&'a self, ctx: &'a Context, request: &'a Request) -> DeltaStream<'a> {
        let begun = async move {
            let limit = self.guard.options().idle_timeout;
            let ask = |ctx| first_delta(self.name(), self.model.stream(ctx, request));
            let (first, rest) = self.guard.call_within(ctx, limit, ask).await?;
            let rest = match first {
                Delta::Done(_) => stream::empty().boxed(),
                _ => self.rest(ctx, rest),
            };
            Ok::<_, Error>(stream::iter([Ok(first)]).chain(rest))
        };
        Box::pin(stream::once(begun).try_flatten())
    }

    fn count_tokens(&self, text: &str) -> TokenCount {
        self.model.count_tokens(text)
    }

    fn price(&self) -> Option<Price> {
        self.model.price()
    }
}

impl fmt::Debug for GuardedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedModel")
            .field("model", &self.model)
            .field("guard", &self.guard)
            .finish()
    }
}
