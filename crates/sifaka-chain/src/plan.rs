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
    /// The most it may cost, if the price and the longest answer are known.
    pub max_cost: Option<Cost>,
    /// Why the cost is not known, if it is not.
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
        let task = Task { thought: &thought, previous: None, window: window(parts), count: &count };
        let assembled = parts.prompts.assemble(&task)?;
        let tokens = parts.model.count_tokens(&assembled.text);
        let system_tokens = options.system.as_deref().map_or(0, count);
        let generations = options.max_iterations.saturating_add(1);
        let (max_cost, cost_note) = cost(parts, tokens.tokens + system_tokens, generations);
        Ok(Self {
            chain_id: Arc::clone(&parts.id),
            model: parts.model.name().to_owned(),
            system: options.system.clone(),
            prompt: assembled.text,
            prompt_tokens: tokens.tokens + system_tokens,
            exact: tokens.exact,
            steps: steps(parts),
            max_generations: generations,
            max_cost,
            cost_note,
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

fn cost(parts: &Parts, prompt_tokens: u64, generations: u32) -> (Option<Cost>, Option<String>) {
    let Some(price) = parts.model.price() else {
        return (None, Some(format!("the price of {} is not known", parts.model.name())));
    };
    let longest =
        parts.options.sampling.max_tokens.or(parts.model.capabilities().max_output_tokens);
    let Some(longest) = longest else {
        return (None, Some("the longest answer is not known; set max_tokens".to_owned()));
    };
    let note = (!parts.critics.is_empty()).then(|| "without what critics spend".to_owned());
    (Some(most(price, prompt_tokens, longest, generations, parts.options.samples)), note)
}

/// Every improvement prompt may hold the whole previous answer besides the first prompt.
fn most(price: Price, prompt: u64, longest: u64, generations: u32, samples: u32) -> Cost {
    let later = u64::from(generations.saturating_sub(1));
    price.of(&Usage {
        input_tokens: prompt + later * (prompt + longest),
        output_tokens: longest * (u64::from(samples) + later),
        ..Usage::default()
    })
}

pub(crate) fn empty_prompt() -> Error {
    Error::invalid_input("chain", "the prompt is empty")
        .suggest("say what should be written: chain.run(\"Summarise …\")")
}
