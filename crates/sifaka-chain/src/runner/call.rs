//! Calls to models: held to the budget, guarded, recorded, and not repeated on resume.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use sifaka_core::budget::{Estimate, Reservation};
use sifaka_core::event::{Call, CallPurpose, EventKind, Nanos};
use sifaka_core::model::{Model, Request, Response};
use sifaka_core::{Caller, Context, Cost, Error, ErrorKind, Hash, Result, Usage};
use tokio::sync::{mpsc, oneshot};

use super::generate::prompted;
use super::record;
use super::wave::contain;
use crate::chain::Parts;

/// Stands between components and the models they ask.
pub(super) struct Gate {
    parts: Arc<Parts>,
    requests: mpsc::Sender<record::Request>,
    /// Answers on record from before the run was left.
    recorded: Mutex<Vec<Call>>,
}

impl Gate {
    pub(super) fn new(
        parts: &Arc<Parts>,
        requests: mpsc::Sender<record::Request>,
        recorded: Vec<Call>,
    ) -> Self {
        Self { parts: Arc::clone(parts), requests, recorded: Mutex::new(recorded) }
    }

    fn answer_on_record(&self, component: &str, request: Hash) -> Option<Response> {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let place = recorded
            .iter()
            .position(|call| &*call.component == component && call.request == request)?;
        Some(recorded.remove(place).response)
    }
}

#[async_trait]
impl Caller for Gate {
    async fn call(&self, ctx: &Context, model: &dyn Model, request: &Request) -> Result<Response> {
        let hash = request_hash(model, request)?;
        if let Some(response) = self.answer_on_record(ctx.component(), hash) {
            return Ok(response);
        }
        let started = ctx.monotonic();
        let guard = self.parts.guard_for(model.name());
        let once = |ctx| async move {
            let ask = model.generate(ctx, request);
            paid(ctx, model, request, contain(ctx, ask)).await
        };
        let response = guard.call(ctx, once).await?;
        let name: Arc<str> = Arc::from(model.name());
        let kind = EventKind::Called {
            component: Arc::from(ctx.component()),
            prompt: Box::new(prompted(&name, request, CallPurpose::Advise, Vec::new())),
            model: name,
            request: hash,
            response: Box::new(response.clone()),
            seconds: Nanos::from(ctx.monotonic().saturating_sub(started)),
        };
        let (done, recorded) = oneshot::channel();
        let gone =
            || Error::new(ErrorKind::Cancelled, ctx.component(), "call", "the run has ended");
        self.requests.send(record::Request { kind, done }).await.map_err(|_| gone())?;
        recorded.await.map_err(|_| gone())?;
        Ok(response)
    }
}

/// Names a request by everything that matters to its answer.
fn request_hash(model: &dyn Model, request: &Request) -> Result<Hash> {
    let json = serde_json::to_vec(&(model.name(), request))
        .map_err(|error| Error::new(ErrorKind::Internal, "chain", "call", error.to_string()))?;
    Ok(Hash::of(&json))
}

/// How many tokens a request has.
pub(super) fn prompt_tokens(model: &dyn Model, request: &Request) -> u64 {
    let count = |text: &str| model.count_tokens(text).tokens;
    let messages: u64 = request.messages.iter().map(|message| count(&message.text())).sum();
    messages + request.system.as_deref().map_or(0, count)
}

/// One try: what it may take is set aside before, what it took is settled after.
pub(super) async fn paid(
    ctx: &Context,
    model: &dyn Model,
    request: &Request,
    answer: impl Future<Output = Result<Response>>,
) -> Result<Response> {
    let limits = ctx.ledger().limits();
    let counted = limits.tokens.is_some() || limits.cost.is_some();
    let mut estimate = Estimate { calls: 1, ..Estimate::default() };
    if counted {
        let input = prompt_tokens(model, request);
        let longest = request.sampling.max_tokens.or(model.capabilities().max_output_tokens);
        let output = longest.unwrap_or(0).saturating_mul(u64::from(request.candidates.max(1)));
        let usage = Usage { input_tokens: input, output_tokens: output, ..Usage::default() };
        estimate.tokens = usage.tokens();
        estimate.cost = model.price().map_or(Cost::ZERO, |price| price.of(&usage));
    }
    let charge = Charge(Some(ctx.ledger().reserve(estimate)?));
    let mut response = answer.await?;
    fill_usage(model, request, &mut response);
    charge.settle(response.usage);
    Ok(response)
}

/// A try under way. One that fails or is dropped still counts as a call: it may have been billed.
struct Charge(Option<Reservation>);

impl Charge {
    fn settle(mut self, usage: Usage) {
        if let Some(reservation) = self.0.take() {
            reservation.settle(usage);
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(reservation) = self.0.take() {
            reservation.settle(Usage { calls: 1, ..Usage::default() });
        }
    }
}

/// Fills in what the provider did not say: our count of tokens, marked as such, and the cost.
fn fill_usage(model: &dyn Model, request: &Request, response: &mut Response) {
    if response.usage.tokens() == 0 {
        response.usage.input_tokens = prompt_tokens(model, request);
        response.usage.output_tokens =
            response.completions.iter().map(|c| model.count_tokens(&c.text).tokens).sum();
        response.usage.estimated = true;
    }
    let usage = &mut response.usage;
    usage.calls = usage.calls.max(1);
    if usage.cost.is_none() {
        usage.cost = model.price().map(|price| price.of(usage));
    }
}
