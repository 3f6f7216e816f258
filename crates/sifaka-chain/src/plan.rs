//! What a run would do, without doing it.

use std::sync::Arc;

use serde::Serialize;
use sifaka_core::model::Price;
use sifaka_core::prompt::Task;
use sifaka_core::{Context, Cost, Error, Result, Thought, Usage};

use crate::chain::Parts;
use crate::runner::window;

/// A run foreseen: the first prompt, the steps, and what it may cost.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The chain.
    pub chain_id: Arc<str>,
    /// The model.
    pub model: String,
    /// The standing instructions.
    pub system: Option<Arc<str>>,
    /// The first prompt, without what will be retrieved.
    pub prompt: String,
    /// How many tokens the first prompt has, and whether that is exact.
    pub prompt_tokens: u64,
    /// Whether the count is exact.
    pub exact: bool,
    /// The steps of a round, in order.
    pub steps: Vec<String>,
    /// The most generations there can be.
    pub max_generations: u32,
    /// The most it may cost: the budget's cap, if it has one. Nothing else bounds a run.
    pub max_cost: Option<Cost>,
    /// About what it costs if every generation is needed and every answer is as long as it may
    /// be, with one candidate in each round after the first. Retrieved documents, feedback, what
    /// critics and checks spend, and retries come on top. `None` when the price or the longest
    /// answer is not known.
    pub estimated_cost: Option<Cost>,
    /// The estimate in words, or why there is none.
    pub cost_note: Option<String>,
}

impl Plan {
    pub(crate) fn of(parts: &Parts, prompt: &Arc<str>) -> Result<Self> {
        if prompt.trim().is_empty() {
            return Err(empty_prompt());
        }
        let options = &parts.options;
        let ctx = Context::new();
        let mut thought = Thought::new(&ctx, Arc::clone(prompt));
        if let Some(system) = &options.system {
            thought = thought.with_system_prompt(Arc::clone(system));
        }
        let count = |text: &str| parts.model.count_tokens(text).tokens;
        let task = Task {
            thought: &thought,
            previous: None,
            window: window(parts, &*parts.model),
            count: &count,
        };
        let assembled = parts.prompts.assemble(&task)?;
        let tokens = parts.model.count_tokens(&assembled.text);
        let system_tokens = options.system.as_deref().map_or(0, count);
        let generations = options.max_iterations.saturating_add(1);
        let (estimated_cost, cost_note) = cost(parts, tokens.tokens + system_tokens, generations);
        Ok(Self {
            chain_id: Arc::clone(&parts.id),
            model: parts.model.name().to_owned(),
            system: options.system.clone(),
            prompt: assembled.text,
            prompt_tokens: tokens.tokens + system_tokens,
            exact: tokens.exact,
            steps: steps(parts),
            max_generations: generations,
            max_cost: options.budget.cost,
            estimated_cost,
            cost_note: Some(cost_note),
        })
    }
}

fn steps(parts: &Parts) -> Vec<String> {
    let mut steps = Vec::new();
    let options = &parts.options;
    if options.use_retrieval_for_generation {
        for retriever in &parts.model_retrievers {
            steps.push(format!("retrieve for the model with {}", retriever.name()));
        }
    }
    let samples = match options.samples {
        1 => String::new(),
        n => format!(", {n} candidates"),
    };
    steps.push(format!("write with {}{samples}", parts.model.name()));
    for retriever in &parts.critic_retrievers {
        steps.push(format!("retrieve about the text with {}", retriever.name()));
    }
    for check in &parts.checks {
        steps.push(format!("check {}", check.name));
    }
    for critic in &parts.critics {
        steps.push(format!("ask the critic {} ({:?})", critic.name(), options.critics_when));
    }
    steps.push(match options.max_iterations {
        0 => "end".to_owned(),
        n => format!("improve by {}, at most {n} times", parts.policy.name()),
    });
    steps
}

fn cost(parts: &Parts, prompt_tokens: u64, generations: u32) -> (Option<Cost>, String) {
    let Some(price) = parts.model.price() else {
        return (None, format!("the price of {} is not known", parts.model.name()));
    };
    let capabilities = parts.model.capabilities();
    let longest = parts.options.sampling.max_tokens.or(capabilities.max_output_tokens);
    let Some(longest) = longest else {
        return (None, "the longest answer is not known; set max_tokens".to_owned());
    };
    let samples = parts.options.samples;
    let requests = samples.div_ceil(capabilities.max_candidates.max(1));
    let cost = estimate(price, prompt_tokens, longest, generations, (samples, requests));
    let plural = if generations == 1 { "" } else { "s" };
    let note = format!(
        "about {cost} for {generations} generation{plural}, without documents, critics and retries"
    );
    (Some(cost), note)
}

/// The prompt is paid for once a request; every improvement prompt may hold the whole previous
/// answer besides the first prompt.
fn estimate(
    price: Price,
    prompt: u64,
    longest: u64,
    generations: u32,
    (samples, requests): (u32, u32),
) -> Cost {
    let later = u64::from(generations.saturating_sub(1));
    let first = prompt.saturating_mul(requests.into());
    let improved = prompt.saturating_add(longest).saturating_mul(later);
    price.of(&Usage {
        input_tokens: first.saturating_add(improved),
        output_tokens: longest.saturating_mul(u64::from(samples).saturating_add(later)),
        ..Usage::default()
    })
}

pub(crate) fn empty_prompt() -> Error {
    Error::invalid_input("chain", "the prompt is empty")
        .suggest("say what should be written: chain.run(\"Summarise …\")")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_counts_once_for_each_request() {
        let price = Price {
            input_per_million: Cost::from_dollars(1.0),
            output_per_million: Cost::from_dollars(2.0),
            cached_per_million: None,
        };
        let dollars = |generations, sent| estimate(price, 1000, 100, generations, sent).dollars();
        // Five candidates, at most two a request: the prompt is sent three times.
        assert!((dollars(1, (5, 3)) - (3000.0 + 2.0 * 500.0) / 1e6).abs() < 1e-12);
        // Two improvements, each with the previous answer in its prompt.
        assert!((dollars(3, (1, 1)) - (3200.0 + 2.0 * 300.0) / 1e6).abs() < 1e-12);
        assert!(estimate(price, u64::MAX, u64::MAX, 9, (9, 9)) > Cost::default());
    }
}
