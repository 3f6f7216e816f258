//! Tests of the critics as users meet them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod by_name;
mod scripted;

use std::sync::Arc;

use sifaka_core::prompt::Prompts;
use sifaka_core::{Context, Critic, CriticFeedback, Model, Result, Review, Thought, model_fn};

/// What a critic says of a text.
async fn ask(critic: &impl Critic, ctx: &Context) -> Result<CriticFeedback> {
    let model: Arc<dyn Model> = Arc::new(model_fn("none", |_| async { "" }));
    let thought = Thought::new(ctx, "Say hello.").with_text("Hi.");
    let prompts = Prompts::built_in()?;
    let review = Review {
        thought: &thought,
        model: &model,
        retrievers: &[],
        validators: &[],
        tools: &[],
        prompts: &prompts,
    };
    critic.critique(ctx, &review).await
}
