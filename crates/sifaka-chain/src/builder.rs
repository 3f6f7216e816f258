//! Building a chain, with every problem reported at once.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use sifaka_core::constraint::Range;
use sifaka_core::model::Sampling;
use sifaka_core::policy::{Policy, Repair};
use sifaka_core::prompt::Prompts;
use sifaka_core::{
    Budget, Constraint, Critic, Error, Journal, Model, OnUnknown, Problem, Result, Retriever,
    Severity, Tool, Validator,
};
use sifaka_resilience::{Guard, GuardedRetriever, Resilience};
use sifaka_telemetry::Aggregator;

use crate::chain::{Chain, Check, Parts, Writer};
use crate::fingerprint;
use crate::options::{CriticsWhen, Guide, Options, Stop};
use crate::redact::Redaction;

/// Builds a [`Chain`]; see [`Chain::builder`].
#[must_use]
pub struct ChainBuilder {
    options: Options,
    model: Arc<dyn Model>,
    checks: Vec<Check>,
    critics: Vec<Arc<dyn Critic>>,
    model_retrievers: Vec<Arc<dyn Retriever>>,
    critic_retrievers: Vec<Arc<dyn Retriever>>,
    tools: Vec<Arc<dyn Tool>>,
    policy: Arc<dyn Policy>,
    fallbacks: Vec<Arc<dyn Model>>,
    description: String,
    journal: Option<Arc<dyn Journal>>,
    redaction: Option<Redaction>,
    template_folders: Vec<PathBuf>,
    templates: Vec<(String, String)>,
    component_templates: Vec<(String, String)>,
}

impl ChainBuilder {
    pub(crate) fn new(model: Arc<dyn Model>) -> Self {
        Self {
            options: Options::default(),
            model,
            checks: Vec::new(),
            critics: Vec::new(),
            model_retrievers: Vec::new(),
            critic_retrievers: Vec::new(),
            tools: Vec::new(),
            policy: Arc::new(Repair),
            fallbacks: Vec::new(),
            description: String::new(),
            journal: None,
            redaction: None,
            template_folders: Vec::new(),
            templates: Vec::new(),
            component_templates: Vec::new(),
        }
    }

    /// Names the chain, for records and timings.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.options.name = name.into();
        self
    }

    /// Adds a model that stands in when the ones before it fail, each after its own retries.
    pub fn fallback(mut self, model: impl Model + 'static) -> Self {
        self.fallbacks.push(Arc::new(model));
        self
    }

    /// Adds words that describe how the components were configured. They enter the chain's
    /// fingerprint, which knows components by their names alone.
    pub fn describe(mut self, description: impl AsRef<str>) -> Self {
        self.description.push_str(description.as_ref());
        self.description.push('\n');
        self
    }

    /// Standing instructions for the model.
    pub fn system(mut self, system: impl Into<Arc<str>>) -> Self {
        self.options.system = Some(system.into());
        self
    }

    /// Adds a check the text must pass.
    pub fn validate(self, validator: impl Validator + 'static) -> Self {
        self.add_check(Arc::new(validator), None, None, None)
    }

    /// Adds a check that only moves the score, with its share in it.
    pub fn validate_soft(self, validator: impl Validator + 'static, weight: f64) -> Self {
        self.add_check(Arc::new(validator), Some(Severity::Soft), Some(weight), None)
    }

    /// Adds a check the text must pass, with its share in the score and what "could not tell"
    /// means.
    pub fn validate_with(
        self,
        validator: impl Validator + 'static,
        weight: f64,
        on_unknown: OnUnknown,
    ) -> Self {
        self.add_check(Arc::new(validator), Some(Severity::Hard), Some(weight), Some(on_unknown))
    }

    fn add_check(
        mut self,
        validator: Arc<dyn Validator>,
        severity: Option<Severity>,
        weight: Option<f64>,
        on_unknown: Option<OnUnknown>,
    ) -> Self {
        let taken = |name: &str| self.checks.iter().any(|check| &*check.name == name);
        let wanted = validator.name().to_owned();
        let name = if taken(&wanted) {
            // One number more than there are checks is always free.
            (2..=self.checks.len() + 2).map(|n| format!("{wanted}-{n}")).find(|n| !taken(n))
        } else {
            None
        };
        let name = Arc::from(name.unwrap_or(wanted));
        self.checks.push(Check { validator, name, severity, weight, on_unknown });
        self
    }

    /// Adds a critic.
    pub fn critic(mut self, critic: impl Critic + 'static) -> Self {
        self.critics.push(Arc::new(critic));
        self
    }

    /// When critics are asked: on failure, unless this says otherwise.
    pub fn critics_when(mut self, when: CriticsWhen) -> Self {
        self.options.critics_when = when;
        self
    }

    /// Adds a retriever for the model before it writes and for critics afterwards.
    pub fn retriever(mut self, retriever: impl Retriever + 'static) -> Self {
        let retriever: Arc<dyn Retriever> = Arc::new(retriever);
        self.model_retrievers.push(Arc::clone(&retriever));
        self.critic_retrievers.push(retriever);
        self
    }

    /// Adds a retriever for the model alone.
    pub fn model_retriever(mut self, retriever: impl Retriever + 'static) -> Self {
        self.model_retrievers.push(Arc::new(retriever));
        self
    }

    /// Adds a retriever for critics and validators alone.
    pub fn critic_retriever(mut self, retriever: impl Retriever + 'static) -> Self {
        self.critic_retrievers.push(Arc::new(retriever));
        self
    }

    /// Whether what is retrieved goes into the model's prompt; it does, unless this says no.
    pub fn use_retrieval_for_generation(mut self, yes: bool) -> Self {
        self.options.use_retrieval_for_generation = yes;
        self
    }

    /// Retrieves before every iteration, with the feedback in the query, instead of once a run.
    pub fn retrieve_every_iteration(mut self, yes: bool) -> Self {
        self.options.retrieve_every_iteration = yes;
        self
    }

    /// The most documents each retriever gives: 5, unless this says otherwise.
    pub fn retrieve_limit(mut self, limit: usize) -> Self {
        self.options.retrieve_limit = limit;
        self
    }

    /// Adds a tool that critics may use.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// How many improvements may follow the first text: 3, unless this says otherwise; 0 writes
    /// once and checks.
    pub fn max_iterations(mut self, iterations: u32) -> Self {
        self.options.max_iterations = iterations;
        self
    }

    /// How many candidates the first iteration has: 1, unless this says otherwise.
    pub fn samples(mut self, samples: u32) -> Self {
        self.options.samples = samples;
        self
    }

    /// Rules that end a run early.
    pub fn stop(mut self, stop: Stop) -> Self {
        self.options.stop = stop;
        self
    }

    /// What a run may spend.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.options.budget = budget;
        self
    }

    /// What comes after an iteration that could be better: repair, unless this says otherwise.
    pub fn policy(mut self, policy: impl Policy + 'static) -> Self {
        self.policy = Arc::new(policy);
        self
    }

    /// How the model chooses its words.
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.options.sampling = sampling;
        self
    }

    /// Texts at which the model stops.
    pub fn stop_texts(mut self, texts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.options.stop_texts = texts.into_iter().map(Into::into).collect();
        self
    }

    /// Fixes the model's randomness; each iteration has a seed of its own that follows from it.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// Whether the checks guide the decoding of a model that can be driven.
    pub fn guide(mut self, guide: Guide) -> Self {
        self.options.guide = guide;
        self
    }

    /// Retries, breakers, rate limits and timeouts; on with their defaults, unless this says
    /// otherwise.
    pub fn resilience(mut self, resilience: Resilience) -> Self {
        self.options.resilience = resilience;
        self
    }

    /// Keeps every run in this journal.
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Rewrites texts before they are journalled.
    pub fn redact(mut self, redaction: Redaction) -> Self {
        self.redaction = Some(redaction);
        self
    }

    /// Puts a template of yours in place of ours.
    pub fn template(mut self, name: impl Into<String>, source: impl Into<String>) -> Self {
        self.templates.push((name.into(), source.into()));
        self
    }

    /// Puts every `NAME.md` of a folder in place of our template of that name.
    pub fn templates(mut self, folder: impl Into<PathBuf>) -> Self {
        self.template_folders.push(folder.into());
        self
    }

    /// Adds a template that a component brings along.
    pub fn component_template(
        mut self,
        name: impl Into<String>,
        source: impl Into<String>,
    ) -> Self {
        self.component_templates.push((name.into(), source.into()));
        self
    }

    /// Whether timings are kept; they are, unless this says no.
    pub fn timings(mut self, yes: bool) -> Self {
        self.options.timings = yes;
        self
    }

    /// The chain.
    ///
    /// Blocks while it reads template folders.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](sifaka_core::ErrorKind::Configuration) with every problem and
    /// what to do about it.
    pub fn build(self) -> Result<Chain> {
        let mut problems = Vec::new();
        self.check_options(&mut problems);
        let constraints = self.collect_constraints(&mut problems);
        let prompts = self.collect_prompts(&mut problems);
        let prompts = match prompts {
            Some(prompts) if problems.is_empty() => prompts,
            _ => return Err(Error::problems("chain", problems)),
        };
        let guard =
            |kind: &str, name: &str| Guard::new(format!("{kind}:{name}"), &self.options.resilience);
        let for_model: Vec<Guard> = self
            .model_retrievers
            .iter()
            .map(|retriever| guard("retriever", retriever.name()))
            .collect();
        // One guard for a retriever, whoever asks it.
        let for_critics: Vec<Guard> = self
            .critic_retrievers
            .iter()
            .map(|retriever| {
                let shared = self.model_retrievers.iter().zip(&for_model);
                let mut shared = shared.filter(|(other, _)| Arc::ptr_eq(other, retriever));
                shared.next().map_or_else(
                    || guard("retriever", retriever.name()),
                    |(_, guard)| guard.clone(),
                )
            })
            .collect();
        let guarded_retrievers = self
            .critic_retrievers
            .iter()
            .zip(&for_critics)
            .map(|(retriever, guard)| {
                let inner = Arc::clone(retriever);
                Arc::new(GuardedRetriever::with_guard(inner, guard.clone())) as Arc<dyn Retriever>
            })
            .collect();
        let writers = std::iter::once(&self.model)
            .chain(&self.fallbacks)
            .map(|model| Writer { model: Arc::clone(model), guard: guard("model", model.name()) })
            .collect();
        let retriever_guards = [for_model, for_critics];
        let mut parts = Parts {
            id: Arc::from(""),
            validators: self.checks.iter().map(|check| Arc::clone(&check.validator)).collect(),
            options: self.options,
            model: self.model,
            checks: self.checks,
            critics: self.critics,
            model_retrievers: self.model_retrievers,
            critic_retrievers: self.critic_retrievers,
            tools: self.tools,
            policy: self.policy,
            prompts,
            journal: self.journal,
            redaction: self.redaction,
            constraints,
            aggregator: Aggregator::default(),
            writers,
            guarded_retrievers,
            retriever_guards,
            other_guards: Mutex::new(HashMap::new()),
        };
        parts.id = fingerprint::chain_id(&parts, &self.description);
        Ok(Chain { parts: Arc::new(parts) })
    }

    fn check_options(&self, problems: &mut Vec<Problem>) {
        let mut problem = |place: &str, message: String, suggestion: &str| {
            problems.push(Problem::new(place, message, suggestion));
        };
        let options = &self.options;
        if options.name.trim().is_empty() || options.name.contains('@') {
            let message = format!("{:?} is not a name", options.name);
            problem("name", message, "use a word without @");
        }
        if options.samples == 0 {
            problem("samples", "0 samples give no text".into(), "ask for at least 1");
        }
        if options.budget.calls == Some(0) || options.budget.tokens == Some(0) {
            let message = "nothing may be spent, so nothing can be written".into();
            problem("budget", message, "allow at least one call and its tokens");
        }
        let writers = std::iter::once(&self.model).chain(&self.fallbacks);
        for model in writers.filter(|model| model.price().is_none()) {
            if options.budget.cost.is_none() {
                break;
            }
            let message = format!("the price of {} is not known", model.name());
            problem("budget.cost", message, "give the price, or cap tokens or calls instead");
        }
        if options.stop.plateau == Some(0) {
            let message = "a plateau over 0 iterations is always reached".into();
            problem("stop.plateau", message, "use at least 1");
        }
        let sampling = &options.sampling;
        let outside = |value: Option<f64>, low: f64, high: f64| {
            value.is_some_and(|v| v.is_nan() || v < low || v > high)
        };
        if outside(sampling.temperature, 0.0, 10.0) {
            let value = sampling.temperature.unwrap_or_default();
            let message = format!("{value} is out of range");
            problem("sampling.temperature", message, "use 0 to 10; 0 to 1 is usual");
        }
        if outside(sampling.top_p, 0.0, 1.0) || outside(sampling.min_p, 0.0, 1.0) {
            problem("sampling", "a probability is out of range".into(), "use 0 to 1");
        }
        if sampling.max_tokens == Some(0) {
            let message = "no token may be written".into();
            problem("sampling.max_tokens", message, "allow at least 1");
        }
        if !self.critics.is_empty() && options.max_iterations == 0 {
            let message = "there are critics, but no iteration that could heed them".into();
            problem("max_iterations", message, "allow at least 1, or leave the critics out");
        }
        if self.checks.is_empty()
            && !self.critics.is_empty()
            && matches!(options.critics_when, CriticsWhen::OnFailure)
        {
            let message = "critics are asked on failure, but nothing can fail".into();
            problem("critics_when", message, "add a check, or ask critics always");
        }
        for check in &self.checks {
            if check.weight.is_some_and(|w| !w.is_finite() || w < 0.0) {
                let place = format!("validator {}", check.name);
                problem(&place, "the weight is not a positive number".into(), "use 1.0 or so");
            }
        }
        problems.extend(options.resilience.problems());
    }

    fn collect_constraints(&self, problems: &mut Vec<Problem>) -> Arc<[(Arc<str>, Constraint)]> {
        let mut constraints: Vec<(Arc<str>, Constraint)> = Vec::new();
        for check in &self.checks {
            if check.severity == Some(Severity::Soft) {
                continue;
            }
            for constraint in check.validator.constraints() {
                for (other, earlier) in &constraints {
                    if let Some(why) = contradiction(earlier, &constraint) {
                        problems.push(Problem::new(
                            format!("validators {other} and {}", check.name),
                            format!("no text can pass both: {why}"),
                            "change or drop one of them",
                        ));
                    }
                }
                constraints.push((Arc::clone(&check.name), constraint));
            }
        }
        constraints.into()
    }

    fn collect_prompts(&self, problems: &mut Vec<Problem>) -> Option<Prompts> {
        let mut note = |error: Error| {
            if error.all_problems().is_empty() {
                let hint = error.suggestions().join("; ");
                problems.push(Problem::new(error.component(), error.message(), hint));
            } else {
                problems.extend_from_slice(error.all_problems());
            }
        };
        let mut prompts = Prompts::built_in().map_err(&mut note).ok()?;
        for (name, source) in &self.component_templates {
            match prompts.with_template(name, source) {
                Ok(more) => prompts = more,
                Err(error) => note(error),
            }
        }
        for folder in &self.template_folders {
            match prompts.with_folder(folder) {
                Ok(more) => prompts = more,
                Err(error) => note(error),
            }
        }
        for (name, source) in &self.templates {
            match prompts.with_override(name, source) {
                Ok(more) => prompts = more,
                Err(error) => note(error),
            }
        }
        Some(prompts)
    }
}

/// Why two constraints cannot both hold, where that is plain to see.
fn contradiction(a: &Constraint, b: &Constraint) -> Option<String> {
    let ranges = |what: &str, x: &Range, y: &Range| {
        x.intersect(y).is_none().then(|| format!("{what}: {x} and {y}"))
    };
    match (a, b) {
        (Constraint::Count { unit: u, range: x }, Constraint::Count { unit: v, range: y })
            if u == v =>
        {
            ranges(u.name(), x, y)
        }
        (Constraint::Bullets(x), Constraint::Bullets(y)) => ranges("bullets", x, y),
        (Constraint::Case(x), Constraint::Case(y)) if x != y => {
            Some("all capitals and no capitals".to_owned())
        }
        _ => None,
    }
}

impl fmt::Debug for ChainBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChainBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}
