//! Writing: the prompt, the call, the candidates.

use std::sync::Arc;

use serde_json::{Map, Value};
use sifaka_core::event::{CallPurpose, Cut, EventKind, Nanos, Prompted, Transition};
use sifaka_core::model::{Capabilities, Message, Model, Request};
use sifaka_core::policy::Decision;
use sifaka_core::prompt::Task;
use sifaka_core::{Constraint, Error, ErrorKind, Failure, Result};
use sifaka_resilience::falls_back;

use super::call::paid;
use super::stream::{self, Watching};
use super::wave::contain;
use super::{Runner, window};
use crate::chain::Writer;
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
            if have >= wanted || round.is_brought_along {
                return Ok(());
            }
            self.write((wanted - have).min(max), have).await?;
        }
    }

    /// Asks the model, and those that stand in for it when it fails, one after the other.
    async fn write(&mut self, candidates: u32, have: u32) -> Result<()> {
        let parts = self.parts;
        let mut writers = parts.writers.iter().peekable();
        while let Some(writer) = writers.next() {
            let failed = match self.write_with(writer, candidates, have).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            match writers.peek() {
                Some(next) if falls_back(failed.kind()) && !self.record.is_broken() => {
                    let transition = Transition::FellBack {
                        to: Arc::from(next.model.name()),
                        failure: Failure::from(&failed),
                    };
                    let component = Arc::from(writer.guard.component());
                    self.emit(EventKind::Resilience { component, transition }).await?;
                }
                _ => return Err(failed),
            }
        }
        Err(Error::new(ErrorKind::Internal, "chain", "generate", "there is no model"))
    }

    async fn write_with(&mut self, writer: &Writer, candidates: u32, have: u32) -> Result<()> {
        let parts = self.parts;
        let model = &writer.model;
        let (request, cut) = self.request(model, candidates, have)?;
        let name: Arc<str> = Arc::from(model.name());
        let prompted = Box::new(prompted(&name, &request, CallPurpose::Generate, cut));
        self.emit(EventKind::Prompted(prompted)).await?;
        self.settle().await?;

        let ctx = self.ctx.for_component(Arc::clone(&name));
        let started = ctx.monotonic();
        let watching = Watching::of(parts);
        let teller = self.record.teller(&ctx, self.fold.next_seq());
        let streams = model.capabilities().streaming || self.record.is_followed();
        let (asked, follow) = (&request, stream::Follow::new(teller, &watching, parts));
        let answered = if streams && follow.is_needed() {
            let follow = &follow;
            let once = |ctx| async move {
                let ask = follow.read(ctx, &**model, asked);
                paid(ctx, &**model, asked, contain(ctx, ask)).await
            };
            // A stream may be long; only its pauses are limited.
            self.attend(writer.guard.call_within(&ctx, None, once)).await?
        } else {
            let once = |ctx| async move {
                let ask = model.generate(ctx, asked);
                paid(ctx, &**model, asked, contain(ctx, ask)).await
            };
            self.attend(writer.guard.call(&ctx, once)).await?
        };
        let response = answered?;
        if response.completions.is_empty() {
            return Err(Error::new(
                ErrorKind::InvalidResponse,
                &*name,
                "generate",
                "the model gave no completion",
            )
            .suggest("try again, or another model"));
        }
        let seconds = Nanos::from(ctx.monotonic().saturating_sub(started));
        self.emit(EventKind::Generated {
            model: name,
            completions: response.completions,
            usage: response.usage,
            provider: response.provider,
            raw: response.raw,
            seconds,
        })
        .await
    }

    fn request(
        &self,
        model: &Arc<dyn Model>,
        candidates: u32,
        have: u32,
    ) -> Result<(Request, Vec<Cut>)> {
        let parts = self.parts;
        let options = &parts.options;
        let Some(thought) = self.fold.thought() else {
            return Err(Error::new(ErrorKind::Internal, "chain", "generate", "no run has begun"));
        };
        let previous = match self.fold.round().decision {
            Decision::Repair => thought.parent(),
            _ => None,
        };
        let count = |text: &str| model.count_tokens(text).tokens;
        let assembled = parts.prompts.assemble(&Task {
            thought,
            previous: previous.as_ref(),
            window: window(parts, &**model),
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
        let asked_for = matches!(self.fold.round().decision, Decision::Constrained { .. });
        if (asked_for || options.guide == Guide::Auto) && !parts.constraints.is_empty() {
            let can = model.capabilities();
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
