//! The chain itself: its parts, and how runs of it are begun.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use sifaka_core::policy::Policy;
use sifaka_core::prompt::Prompts;
use sifaka_core::{
    Constraint, Critic, Error, ErrorKind, Journal, Model, OnUnknown, Result, Retriever, Severity,
    Tool, Validator,
};
use sifaka_resilience::Guard;
use sifaka_telemetry::{Aggregator, Performance};
use tokio::task::JoinSet;

use crate::builder::ChainBuilder;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::redact::Redaction;
use crate::run::{ResumeFrom, Run};

/// Writes, checks, advises and goes round; see the [crate](crate) for an example.
///
/// Immutable and cheap to clone. Clones share their circuit breakers and timings, and nothing
/// else: no state leaks from one run into another.
#[derive(Clone)]
pub struct Chain {
    pub(crate) parts: Arc<Parts>,
}

/// What a chain is made of.
pub(crate) struct Parts {
    pub(crate) id: Arc<str>,
    pub(crate) options: Options,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) checks: Vec<Check>,
    /// The same validators, as critics are handed them.
    pub(crate) validators: Vec<Arc<dyn Validator>>,
    pub(crate) critics: Vec<Arc<dyn Critic>>,
    pub(crate) model_retrievers: Vec<Arc<dyn Retriever>>,
    pub(crate) critic_retrievers: Vec<Arc<dyn Retriever>>,
    /// The same retrievers as critics are handed them, each behind its guard.
    pub(crate) guarded_retrievers: Vec<Arc<dyn Retriever>>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) policy: Arc<dyn Policy>,
    pub(crate) prompts: Prompts,
    pub(crate) journal: Option<Arc<dyn Journal>>,
    pub(crate) redaction: Option<Redaction>,
    /// What the model is handed to keep while it writes, each with the check that asked for it.
    pub(crate) constraints: Arc<[(Arc<str>, Constraint)]>,
    pub(crate) aggregator: Aggregator,
    /// The model and those that stand in for it, each with its guard.
    pub(crate) writers: Vec<Writer>,
    pub(crate) retriever_guards: [Vec<Guard>; 2],
    /// Guards of the models that critics and validators bring along.
    pub(crate) other_guards: Mutex<HashMap<String, Guard>>,
}

/// A model that writes, and what protects it.
pub(crate) struct Writer {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) guard: Guard,
}

/// A validator with its place in the chain.
pub(crate) struct Check {
    pub(crate) validator: Arc<dyn Validator>,
    pub(crate) name: Arc<str>,
    pub(crate) severity: Option<Severity>,
    pub(crate) weight: Option<f64>,
    pub(crate) on_unknown: Option<OnUnknown>,
}

/// The most guards kept for models that critics bring along; beyond it they share one.
const MAX_OTHER_GUARDS: usize = 64;

impl Parts {
    /// The guard of a model that is asked through the context.
    pub(crate) fn guard_for(&self, model: &str) -> Guard {
        if let Some(writer) = self.writers.iter().find(|writer| writer.model.name() == model) {
            return writer.guard.clone();
        }
        let mut guards = self.other_guards.lock().unwrap_or_else(PoisonError::into_inner);
        let key = if guards.len() < MAX_OTHER_GUARDS { model } else { "other models" };
        guards
            .entry(key.to_owned())
            .or_insert_with(|| Guard::new(format!("model:{key}"), &self.options.resilience))
            .clone()
    }
}

impl Chain {
    /// Begins a chain around a model.
    pub fn builder(model: impl Model + 'static) -> ChainBuilder {
        ChainBuilder::new(Arc::new(model))
    }

    /// Runs it on a prompt: await what this gives, or ask it for a stream first.
    pub fn run(&self, prompt: impl Into<Arc<str>>) -> Run {
        Run::new(self.clone(), prompt.into())
    }

    /// Goes on with a run that was left: by its id, any of its Thoughts' ids, the unique
    /// beginning of either, or a Thought. What is on record already is not done or paid for again.
    pub fn resume(&self, from: impl Into<ResumeFrom>) -> Run {
        Run::resume(self.clone(), from.into())
    }

    /// Runs it on many prompts, at most `concurrency` at once; outcomes come in the order of the
    /// prompts.
    ///
    /// Must be called inside a tokio runtime. Dropping the future ends the runs.
    pub async fn run_many<P: Into<Arc<str>>>(
        &self,
        prompts: impl IntoIterator<Item = P>,
        concurrency: usize,
    ) -> Vec<Result<Outcome>> {
        let prompts: Vec<Arc<str>> = prompts.into_iter().map(Into::into).collect();
        let mut outcomes: Vec<Option<Result<Outcome>>> = prompts.iter().map(|_| None).collect();
        let mut waiting = prompts.into_iter().enumerate();
        let mut running = JoinSet::new();
        let mut places = HashMap::new();
        loop {
            while running.len() < concurrency.max(1) {
                let Some((place, prompt)) = waiting.next() else { break };
                let chain = self.clone();
                let task = running.spawn(async move { chain.run(prompt).await });
                places.insert(task.id(), place);
            }
            let (id, outcome) = match running.join_next_with_id().await {
                None => break,
                Some(Ok((id, outcome))) => (id, outcome),
                Some(Err(error)) => (error.id(), Err(lost(&error.to_string()))),
            };
            if let Some(place) = places.remove(&id).and_then(|place| outcomes.get_mut(place)) {
                *place = Some(outcome);
            }
        }
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| Err(lost("it")))).collect()
    }

    /// Runs it on a prompt from code that is not async.
    ///
    /// # Errors
    /// As a run; and when called from async code, which would block.
    pub fn run_blocking(&self, prompt: impl Into<Arc<str>>) -> Result<Outcome> {
        self.run(prompt).blocking()
    }

    /// What a run would do, without doing it.
    ///
    /// # Errors
    /// As the beginning of a run: an empty prompt, a template that fails, a prompt that does not
    /// fit.
    pub fn plan(&self, prompt: impl Into<Arc<str>>) -> Result<Plan> {
        Plan::of(&self.parts, &prompt.into())
    }

    /// The chain's name with a fingerprint of its configuration, as it stands in records.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.parts.id
    }

    /// Where the time of all runs of this chain and its clones went.
    #[must_use]
    pub fn performance(&self) -> Performance {
        self.parts.aggregator.performance()
    }

    /// The chain's model.
    #[must_use]
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.parts.model
    }

    /// The chain's journal, if it has one.
    #[must_use]
    pub fn journal(&self) -> Option<&Arc<dyn Journal>> {
        self.parts.journal.as_ref()
    }

    /// The chain's prompt templates.
    #[must_use]
    pub fn prompts(&self) -> &Prompts {
        &self.parts.prompts
    }
}

fn lost(what: &str) -> Error {
    Error::new(ErrorKind::Internal, "chain", "run", format!("{what} did not end"))
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain")
            .field("id", &self.parts.id)
            .field("model", &self.parts.model)
            .field("validators", &self.parts.validators)
            .field("critics", &self.parts.critics)
            .finish_non_exhaustive()
    }
}
