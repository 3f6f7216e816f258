//! Critics: what they say goes into the next prompt, and a text they propose is a candidate.
//!
//! `cargo run --example 03-critics`

#![expect(clippy::print_stdout, reason = "an example prints")]

use sifaka::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let model = ScriptedModel::new(["The sea is big.", "The sea is wide and grey."]);
    let tone = critic_fn("tone", |thought: Thought| async move {
        let text = thought.text().unwrap_or_default();
        Ok(CriticFeedback::new("tone")
            .with_issue(format!("{text:?} is plain"))
            .with_suggestion("use a colour")
            .with_confidence(0.8))
    });
    let chain = Chain::builder(model)
        .validate(check("has-a-colour", |text| text.contains("grey")))
        .critic(tone)
        .build()?;

    let outcome = chain.run("Describe the sea.").await?;

    // The exact prompt of every iteration is on record. What a critic said stands in it as data.
    let prompt = outcome.thought().model_prompt().and_then(|body| body.as_str());
    println!("{}\n---\n{}", prompt.unwrap_or_default(), outcome.text());
    Ok(())
}
