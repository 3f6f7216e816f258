//! From the file's words to a chain.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use regex::{NoExpand, Regex};
use sifaka_chain::{Chain, ChainBuilder, Redaction, redact_with};
use sifaka_core::policy::{Fresh, Repair};
use sifaka_core::{Error, Journal, Model, Problem, Registry, Result, Spec, model_fn};

use super::chain::ChainConfig;
use super::component::Component;
use super::problems;

/// What stands in the record for what was taken out.
const REDACTED: &str = "[redacted]";

impl ChainConfig {
    /// Builds the chain under a name; relative paths start from `base`. Blocks while it reads
    /// templates and whatever files the components need.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) with every problem at once.
    pub fn build(
        &self,
        name: &str,
        base: &Path,
        registry: &Registry,
        journal: Option<Arc<dyn Journal>>,
    ) -> Result<Chain> {
        let mut reader = Reader { problems: Vec::new(), blurred: Vec::new() };
        let mut builder = Chain::builder(self.read_model(registry, &mut reader)).name(name);
        builder = self.add_components(builder, registry, &mut reader);
        builder = self.set_options(builder, base, &mut reader);
        if let Some(journal) = journal {
            builder = builder.journal(journal);
        }
        let built = builder.build();
        if reader.problems.is_empty() {
            return built;
        }
        // The rest is checked all the same, so that nobody has to mend the file twice; what may
        // only be wrong because a component is missing is left out.
        if let Err(error) = built {
            let rest = error.all_problems().iter();
            reader.problems.extend(rest.filter(|p| !reader.blurred.contains(&&*p.place)).cloned());
        }
        Err(Error::problems("chain", reader.problems))
    }

    fn read_model(&self, registry: &Registry, reader: &mut Reader) -> Arc<dyn Model> {
        let found = match &self.model {
            Some(model) => reader.part("model", model, "name", |spec| registry.model(spec)),
            None => {
                let hint = "name one, such as model = \"mock\" or --model mock";
                reader.problems.push(Problem::new("model", "no model is named", hint));
                None
            }
        };
        found.unwrap_or_else(|| {
            reader.blurred.push("budget.cost");
            Arc::new(model_fn("missing", |_| async { "" }))
        })
    }

    fn add_components(
        &self,
        mut builder: ChainBuilder,
        registry: &Registry,
        reader: &mut Reader,
    ) -> ChainBuilder {
        for (n, model) in self.fallbacks.iter().enumerate() {
            let place = format!("fallbacks[{n}]");
            if let Some(model) = reader.part(&place, model, "name", |spec| registry.model(spec)) {
                builder = builder.fallback(model);
            }
        }
        // A chain knows its components by name; what is written here tells them apart further.
        let parts = [&self.checks, &self.critics, &self.retrievers, &self.fallbacks];
        let more = [&self.model_retrievers, &self.critic_retrievers];
        builder = builder.describe(format!(
            "{:?} {parts:?} {more:?} {:?} {:?}",
            self.model, self.policy, self.redact
        ));
        for (n, check) in self.checks.iter().enumerate() {
            let place = format!("checks[{n}]");
            match reader.part(&place, check, "check", |spec| registry.validator(spec)) {
                Some(check) => builder = builder.validate(check),
                None => reader.blurred.push("critics_when"),
            }
        }
        for (n, critic) in self.critics.iter().enumerate() {
            let place = format!("critics[{n}]");
            if let Some(critic) =
                reader.part(&place, critic, "critic", |spec| registry.critic(spec))
            {
                builder = builder.critic(critic);
            }
        }
        let lists = [
            ("retrievers", &self.retrievers),
            ("model_retrievers", &self.model_retrievers),
            ("critic_retrievers", &self.critic_retrievers),
        ];
        for (list, retrievers) in lists {
            for (n, retriever) in retrievers.iter().enumerate() {
                let place = format!("{list}[{n}]");
                let found =
                    reader.part(&place, retriever, "retriever", |spec| registry.retriever(spec));
                let Some(found) = found else { continue };
                builder = match list {
                    "retrievers" => builder.retriever(found),
                    "model_retrievers" => builder.model_retriever(found),
                    _ => builder.critic_retriever(found),
                };
            }
        }
        builder
    }

    fn set_options(
        &self,
        mut builder: ChainBuilder,
        base: &Path,
        reader: &mut Reader,
    ) -> ChainBuilder {
        /// Calls the builder's method of the option's name with what the file says, if anything.
        macro_rules! set {
            ($($option:ident),*) => {
                $(if let Some(value) = &self.$option {
                    builder = builder.$option(value.clone());
                })*
            };
        }
        set!(system, max_iterations, samples, seed, timings, retrieve_limit);
        set!(use_retrieval_for_generation, retrieve_every_iteration);
        if let Some(when) = self.critics_when {
            builder = builder.critics_when(when.into());
        }
        if let Some(guide) = self.guide {
            builder = builder.guide(guide.into());
        }
        builder = match self.policy.as_deref() {
            None | Some("repair") => builder.policy(Repair),
            Some(text) => match fresh(text) {
                Some(fresh) => builder.policy(fresh),
                None => {
                    let message = format!("{text:?} is not a policy");
                    let hint = "use repair, fresh, or fresh:3 for three candidates";
                    reader.problems.push(Problem::new("policy", message, hint));
                    builder
                }
            },
        };
        if let Some(folder) = &self.templates {
            builder = builder.templates(base.join(folder));
        }
        if let Some(redaction) = redaction(&self.redact, &mut reader.problems) {
            builder = builder.redact(redaction);
        }
        builder
            .sampling(self.sampling)
            .stop_texts(self.stop_texts.iter().cloned())
            .budget(self.budget.read(&mut reader.problems))
            .stop(self.stop.read(&mut reader.problems))
            .resilience(self.resilience.clone())
    }
}

/// The rule that these patterns make together, if there are any.
pub(super) fn redaction(patterns: &[String], problems: &mut Vec<Problem>) -> Option<Redaction> {
    let mut rules = Vec::with_capacity(patterns.len());
    for (n, pattern) in patterns.iter().enumerate() {
        match Regex::new(pattern) {
            Ok(rule) => rules.push(rule),
            Err(error) => {
                // Above the last line the error draws a picture, which has no place here.
                let error = error.to_string();
                let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
                problems.push(Problem::new(
                    format!("redact[{n}]"),
                    format!("{pattern:?} is not a regular expression: {why}"),
                    "mend it; characters with a meaning of their own need a backslash",
                ));
            }
        }
    }
    if rules.is_empty() {
        return None;
    }
    Some(redact_with(move |text| {
        let mut out = Cow::Borrowed(text);
        for rule in &rules {
            let changed = match rule.replace_all(&out, NoExpand(REDACTED)) {
                Cow::Owned(changed) => Some(changed),
                Cow::Borrowed(_) => None,
            };
            if let Some(changed) = changed {
                out = Cow::Owned(changed);
            }
        }
        out
    }))
}

/// Collects what is wrong while a chain is read.
struct Reader {
    problems: Vec<Problem>,
    /// Options that cannot be judged because a component they depend on is missing.
    blurred: Vec<&'static str>,
}

impl Reader {
    fn part<T: ?Sized>(
        &mut self,
        place: &str,
        component: &Component,
        key: &str,
        make: impl FnOnce(&Spec) -> Result<Arc<T>>,
    ) -> Option<Arc<T>> {
        match component.spec(key).and_then(|spec| make(&spec)) {
            Ok(part) => Some(part),
            Err(error) => {
                self.problems.extend(problems::of_part(place, &error));
                None
            }
        }
    }
}

fn fresh(text: &str) -> Option<Fresh> {
    let rest = text.strip_prefix("fresh")?;
    if rest.is_empty() {
        return Some(Fresh(1));
    }
    let samples: u32 = rest.strip_prefix(':')?.parse().ok()?;
    (samples > 0).then_some(Fresh(samples))
}
