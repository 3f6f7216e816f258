//! Following a model as it writes, and stopping it when no continuation can pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use sifaka_core::model::{Completion, Delta, FinishReason, Model, Request, Response};
use sifaka_core::validator::Watch;
use sifaka_core::{Context, Error, ErrorKind, Result, Severity, Usage};

use super::record::Teller;
use crate::chain::{Check, Parts};

/// The checks that can decide before a text is whole.
pub(super) struct Watching<'c>(Vec<&'c Check>);

impl<'c> Watching<'c> {
    pub(super) fn of(parts: &'c Parts) -> Self {
        let decides = |check: &&Check| {
            check.severity != Some(Severity::Soft) && check.validator.watch().is_some()
        };
        Self(parts.checks.iter().filter(decides).collect())
    }

    fn start(&self) -> Vec<(Arc<str>, Box<dyn Watch>)> {
        self.0
            .iter()
            .filter_map(|check| Some((Arc::clone(&check.name), check.validator.watch()?)))
            .collect()
    }
}

/// A candidate while it is being written.
struct Draft {
    text: String,
    watchers: Vec<(Arc<str>, Box<dyn Watch>)>,
    stopped: Option<Arc<str>>,
}

/// Reads a model's stream, once for every try.
pub(super) struct Follow<'c> {
    teller: Option<Teller>,
    watching: &'c Watching<'c>,
    idle: Option<Duration>,
    /// How many candidates the caller was told text of in the try before.
    told: AtomicU32,
}

impl<'c> Follow<'c> {
    pub(super) fn new(teller: Option<Teller>, watching: &'c Watching<'c>, parts: &Parts) -> Self {
        let idle = parts.options.resilience.idle_timeout;
        Self { teller, watching, idle, told: AtomicU32::new(0) }
    }

    /// Whether somebody wants the text as it comes.
    pub(super) fn is_needed(&self) -> bool {
        self.teller.is_some() || !self.watching.0.is_empty()
    }

    /// Reads a stream to its end, tells of the text as it comes, and stops reading once no
    /// candidate can pass any more.
    pub(super) async fn read(
        &self,
        ctx: &Context,
        model: &dyn Model,
        request: &Request,
    ) -> Result<Response> {
        if let Some(teller) = &self.teller {
            // What an earlier try had told does not count any more.
            for index in 0..self.told.swap(0, Ordering::Relaxed) {
                teller.delta(Delta::Restart { index }).await;
            }
        }
        let mut drafts: Vec<Draft> = Vec::new();
        let mut stream = model.stream(ctx, request);
        loop {
            let delta = match self.idle {
                None => stream.next().await,
                Some(idle) => tokio::select! {
                    biased;
                    delta = stream.next() => delta,
                    () = ctx.clock().sleep(idle) => return Err(Error::new(
                        ErrorKind::Timeout,
                        model.name(),
                        "stream",
                        format!("nothing came for {:.0} s", idle.as_secs_f64()),
                    )),
                },
            };
            let Some(delta) = delta else { return Err(ended_early(model, &drafts)) };
            let delta = match delta? {
                Delta::Done(response) => return Ok(*response),
                delta => delta,
            };
            self.take(&delta, &mut drafts);
            if let Some(teller) = &self.teller {
                let told = u32::try_from(drafts.len()).unwrap_or(u32::MAX);
                self.told.fetch_max(told, Ordering::Relaxed);
                teller.delta(delta).await;
            }
            let whole = drafts.len() >= request.candidates.max(1) as usize;
            if whole && drafts.iter().all(|draft| draft.stopped.is_some()) {
                // Dropping the stream closes the connection: nothing more is written or paid for.
                drop(stream);
                return Ok(cut_short(model, request, drafts));
            }
        }
    }

    fn take(&self, delta: &Delta, drafts: &mut Vec<Draft>) {
        let fresh =
            || Draft { text: String::new(), watchers: self.watching.start(), stopped: None };
        match delta {
            Delta::Text { index, text } => {
                let index = *index as usize;
                while drafts.len() <= index.min(1024) {
                    drafts.push(fresh());
                }
                if let Some(draft) = drafts.get_mut(index) {
                    draft.text.push_str(text);
                    if draft.stopped.is_none() {
                        draft.stopped = draft
                            .watchers
                            .iter_mut()
                            .find_map(|(name, watch)| watch.push(text).map(|_| Arc::clone(name)));
                    }
                }
            }
            Delta::Restart { index } => {
                if let Some(draft) = drafts.get_mut(*index as usize) {
                    *draft = fresh();
                }
            }
            _ => {}
        }
    }
}

fn ended_early(model: &dyn Model, drafts: &[Draft]) -> Error {
    let so_far: Vec<&str> = drafts.iter().map(|draft| draft.text.as_str()).collect();
    Error::new(
        ErrorKind::Unavailable,
        model.name(),
        "stream",
        format!("the stream ended early, after: {}", so_far.join(" | ")),
    )
}

/// The response of a model that was stopped; its usage is our count of what came.
fn cut_short(model: &dyn Model, request: &Request, drafts: Vec<Draft>) -> Response {
    let mut usage = Usage {
        calls: 1,
        input_tokens: super::call::prompt_tokens(model, request),
        estimated: true,
        ..Usage::default()
    };
    let completions = drafts
        .into_iter()
        .map(|draft| {
            usage.output_tokens += model.count_tokens(&draft.text).tokens;
            let mut completion = Completion::new(draft.text);
            if let Some(check) = draft.stopped {
                completion.finish_reason = FinishReason::StoppedBy(check);
            }
            completion
        })
        .collect();
    Response { completions, usage, ..Response::default() }
}
