//! The loop that is measured: 4 generations, 12 validations, 3 critiques, no waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use sifaka_chain::{Chain, ChainBuilder};
use sifaka_core::model::{Capabilities, Model, Request, Response};
use sifaka_core::{
    Context, Critic, CriticFeedback, Document, Result, Review, Thought, Usage, ValidationResult,
};
use sifaka_validators::{Content, Length, Pattern};

/// Texts of about 500 bytes; only the last has the word that is asked for.
pub static TEXTS: std::sync::LazyLock<[Arc<str>; 4]> = std::sync::LazyLock::new(|| {
    let words = "The lemurs of the island leap from tree to tree and sleep in the sun ";
    let text = |n: usize, end: &str| Arc::from(format!("{n} {}{end}", words.repeat(7)));
    [text(0, "a"), text(1, "b"), text(2, "c"), text(3, "sifaka alpha beta gamma delta")]
});

/// A model that answers at once, with the four texts in turn.
#[derive(Debug, Default)]
pub struct Looping(AtomicUsize);

#[async_trait]
impl Model for Looping {
    fn name(&self) -> &'static str {
        "looping"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    async fn generate(&self, _: &Context, request: &Request) -> Result<Response> {
        // The place in the loop is read off the prompt, so that concurrent runs do not mix: every
        // text begins with its number.
        let prompt = request.last_text();
        let previous = prompt.split_once("label=\"previous answer\">\n");
        let number = previous.and_then(|(_, text)| text.chars().next()?.to_digit(10));
        let next = number.map_or(0, |n| n as usize + 1).min(3);
        self.0.fetch_add(1, Ordering::Relaxed);
        let usage = Usage { calls: 1, input_tokens: 200, output_tokens: 120, ..Usage::default() };
        Ok(Response { usage, ..Response::text(Arc::clone(&TEXTS[next])) })
    }
}

struct Advises;

#[async_trait]
impl Critic for Advises {
    fn name(&self) -> &'static str {
        "advises"
    }

    async fn critique(&self, _: &Context, _: &Review<'_>) -> Result<CriticFeedback> {
        Ok(CriticFeedback::new("advises")
            .with_issue("the sifaka is not mentioned")
            .with_suggestion("name the animal"))
    }
}

/// The chain that is measured.
///
/// # Errors
/// When it cannot be built.
pub fn looping_chain() -> Result<ChainBuilder> {
    Ok(Chain::builder(Looping::default())
        .name("bench")
        .validate(Length::words(20..=400))
        .validate(Pattern::require("sifaka|lemur$")?)
        .validate(Content::require(["sifaka", "alpha", "beta", "gamma", "delta"])?)
        .critic(Advises))
}

/// A Thought of `iterations` iterations with 500-byte texts, 3 results and 2 documents each.
#[must_use]
pub fn sample_thought(ctx: &Context, iterations: usize) -> Thought {
    let fill = |thought: &Thought, n: usize| {
        thought
            .with_model_prompt("Explain what a sifaka is.")
            .with_text(Arc::clone(&TEXTS[n % 4]))
            .add_validation_result("length", ValidationResult::passed("97 words").with_score(1.0))
            .add_validation_result(
                "regex",
                ValidationResult::failed("\"sifaka\" is not in the text")
                    .with_score(0.0)
                    .with_suggestion("mention it"),
            )
            .add_validation_result(
                "content",
                ValidationResult::passed("all 5 terms").with_score(1.0),
            )
    };
    let mut thought = fill(
        &Thought::new(ctx, "Explain what a sifaka is.")
            .add_pre_generation_context(
                Document::new("Sifakas are lemurs of Madagascar.")
                    .with_source("a.md")
                    .with_score(0.9),
            )
            .add_pre_generation_context(
                Document::new("They move by leaping upright.").with_source("b.md").with_score(0.7),
            ),
        0,
    );
    for n in 1..iterations {
        thought = fill(&thought.next_iteration(ctx), n);
    }
    thought
}
