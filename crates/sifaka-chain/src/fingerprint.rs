//! A chain's name with a hash of its configuration, so that a changed chain is noticed.

use std::fmt::Write;
use std::sync::Arc;

use sifaka_core::Hash;

use crate::chain::Parts;

pub(crate) fn chain_id(parts: &Parts, description: &str) -> Arc<str> {
    let options = &parts.options;
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "{:?}|{:?}|{}|{}|{:?}|{}|{}|{}|{:?}|{:?}|{:?}|{:?}|{:?}|{:?}|",
        parts.model.name(),
        options.system,
        options.max_iterations,
        options.samples,
        options.critics_when,
        options.use_retrieval_for_generation,
        options.retrieve_every_iteration,
        options.retrieve_limit,
        options.stop,
        options.guide,
        options.budget,
        options.sampling,
        options.stop_texts,
        options.seed,
    );
    for check in &parts.checks {
        let constraints = check.validator.constraints();
        let _ = write!(
            text,
            "v{:?}{:?}{:?}{:?}{constraints:?}|",
            check.name, check.severity, check.weight, check.on_unknown
        );
    }
    for critic in &parts.critics {
        let _ = write!(text, "c{:?}|", critic.name());
    }
    for (kind, list) in [("m", &parts.model_retrievers), ("r", &parts.critic_retrievers)] {
        for retriever in list {
            let _ = write!(text, "{kind}{:?}|", retriever.name());
        }
    }
    for writer in parts.writers.iter().skip(1) {
        let _ = write!(text, "f{:?}|", writer.model.name());
    }
    for tool in &parts.tools {
        let _ = write!(text, "u{:?}|", tool.spec().name);
    }
    let _ = write!(text, "e{:?}|d{description:?}|", options.resilience);
    let _ = write!(text, "x{}|", parts.redaction.is_some());
    let _ = write!(text, "p{:?}|", parts.policy.name());
    for name in parts.prompts.names() {
        let _ = write!(text, "t{name:?}{:?}|", parts.prompts.source(&name));
    }
    let hash = Hash::of(text.as_bytes()).to_string();
    Arc::from(format!("{}@{}", options.name, &hash[..8]))
}
