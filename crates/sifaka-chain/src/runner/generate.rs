//! Writing: the prompt, the call, the candidates.

use std::sync::Arc;

use serde_json::{Map, Value};
use sifaka_core::event::{CallPurpose, Cut, EventKind, Nanos, Prompted};
use sifaka_core::model::{Capabilities, Message, Request};
use sifaka_core::policy::Decision;
use sifaka_core::prompt::Task;
use sifaka_core::{Constraint, Error, ErrorKind, Result};

use super::call::{fill_usage, paid};
use super::stream::{self, Watching};
use super::wave::contain;
use super::{Runner, window};
use crate::options::Guide;

impl Runner<'_> {
    /// Has the model write until the iteration has all its candidates.
    pub(super) async fn generate(&mut self) -> Result<()> {
        let wanted = match self.fold.thought() {
            Some(thought) if thought.iteration() > 0 => self.fold.round().decision.samples(),
            _ => self.parts.options.samples,
        };
        let max = self.parts.model.capabilities().max_candidates.max(1);
        loop {
            let round = self.fold.round();
            let have = u32::try_from(round.completions.len()).unwrap_or(u32::MAX);
            // A Thought that was made elsewhere brings its text along.
            let brought_along = have == 0 && !round.candidates.is_empty();
            if have >= wanted || brought_along {
                return Ok(());
            }
            self.write((wanted - have).min(max), have).await?;
        }
    }

    async fn write(&mut self, candidates: u32, have: u32) -> Result<()> {
        let parts = self.parts;
        let (request, cut) = self.request(candidates, have)?;
        let model: Arc<str> = Arc::from(parts.model.name());
        let prompted = Box::new(prompted(&model, &request, CallPurpose::Generate, cut));
        self.emit(EventKind::Prompted(prompted)).await?;
        self.settle().await?;

        let ctx = self.ctx.for_component(Arc::clone(&model));
        let started = ctx.monotonic();
        let watching = Watching::of(parts);
        let teller = self.record.teller(&ctx, self.fold.next_seq());
        let streams = parts.model.capabilities().streaming || self.record.is_followed();
        let answered = if streams && (teller.is_some() || !watching.is_empty()) {
            let (teller, watching) = (teller.as_ref(), &watching);
            let request = &request;
            let idle = parts.options.resilience.idle_timeout;
            let once = |ctx| async move {
                let ask = stream::follow(ctx, &*parts.model, request, teller, watching, idle);
                paid(ctx, &*parts.model, request, contain(ctx, ask)).await
            };
            // A stream may be long; only its pauses are limited.
            parts.model_guard.call_within(&ctx, None, once).await
        } else {
            let request = &request;
            let once = |ctx| async move {
                let ask = parts.model.generate(ctx, request);
                paid(ctx, &*parts.model, request, contain(ctx, ask)).await
            };
            parts.model_guard.call(&ctx, once).await
        };
        let mut response = answered?;
        if response.completions.is_empty() {
            return Err(Error::new(
                ErrorKind::InvalidResponse,
                &*model,
                "generate",
                "the model gave no completion",
            )
            .suggest("try again, or another model"));
        }
        fill_usage(&*parts.model, &request, &mut response);
        let seconds = Nanos::from(ctx.monotonic().saturating_sub(started));
        self.emit(EventKind::Generated {
            model,
            completions: response.completions,
            usage: response.usage,
            provider: response.provider,
            raw: response.raw,
            seconds,
        })
        .await
    }

    fn request(&self, candidates: u32, have: u32) -> Result<(Request, Vec<Cut>)> {
        let parts = self.parts;
        let options = &parts.options;
        let Some(thought) = self.fold.thought() else {
            return Err(Error::new(ErrorKind::Internal, "chain", "generate", "no run has begun"));
        };
        let previous = match self.fold.round().decision {
            Decision::Repair => thought.parent(),
            _ => None,
        };
        let count = |text: &str| parts.model.count_tokens(text).tokens;
        let assembled = parts.prompts.assemble(&Task {
            thought,
            previous: previous.as_ref(),
            window: window(parts),
            count: &count,
        })?;
        let mut request = Request::new(Message::user(assembled.text));
        request.system.clone_from(&options.system);
        request.sampling = options.sampling;
        request.stop.clone_from(&options.stop_texts);
        request.candidates = candidates;
        // Each iteration and each batch of candidates has a seed of its own: asking the same with
        // the same seed would give the same text.
        let step = u64::from(thought.iteration()) << 16 | u64::from(have);
        request.seed = options.seed.map(|seed| seed.wrapping_add(step));
        if options.guide == Guide::Auto && !parts.constraints.is_empty() {
            let can = parts.model.capabilities();
            request.constraints =
                parts.constraints.iter().filter(|(_, c)| keeps(&can, c)).cloned().collect();
        }
        Ok((request, assembled.cut))
    }
}

/// Whether a model can keep a constraint while it writes.
fn keeps(can: &Capabilities, constraint: &Constraint) -> bool {
    can.guided
        || match constraint {
            Constraint::JsonSchema(_) => can.json_schema,
            Constraint::Regex(_) | Constraint::Choice(_) => can.regex,
            Constraint::Grammar { .. } => can.grammar,
            _ => false,
        }
}

/// A request as it stands on record.
pub(super) fn prompted(
    model: &Arc<str>,
    request: &Request,
    purpose: CallPurpose,
    cut: Vec<Cut>,
) -> Prompted {
    let mut options = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            options.insert(key.to_owned(), value);
        }
    };
    set("seed", request.seed.map(Value::from));
    set("logprobs", request.logprobs.map(Value::from));
    if !request.stop.is_empty() {
        set("stop", Some(Value::from(request.stop.clone())));
    }
    if !request.tools.is_empty() {
        set("tools", serde_json::to_value(&request.tools).ok());
    }
    if request.tool_choice.is_some() {
        set("tool_choice", serde_json::to_value(&request.tool_choice).ok());
    }
    if request.response_format.is_some() {
        set("response_format", serde_json::to_value(&request.response_format).ok());
    }
    if !request.extra_body.is_empty() {
        set("extra_body", Some(Value::Object(request.extra_body.clone())));
    }
    Prompted {
        model: Arc::clone(model),
        purpose,
        system: request.system.clone(),
        messages: request.messages.clone(),
        sampling: request.sampling,
        candidates: request.candidates,
        constraints: request
            .constraints
            .iter()
            .map(|(check, rule)| {
                (Arc::clone(check), serde_json::to_value(rule).unwrap_or_default())
            })
            .collect(),
        options,
        cut,
    }
}
