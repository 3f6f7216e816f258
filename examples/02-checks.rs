//! Checks: built-in ones, closures, hard ones that decide and soft ones that only score.
//!
//! `cargo run --example 02-checks`

#![expect(clippy::print_stdout, reason = "an example prints")]

use sifaka::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let model = ScriptedModel::new([
        "TODO: describe the release.",
        "Version 0.9 mends the parser and is twice as fast.",
        "Version 0.9 mends the parser, is twice as fast, and drops support for the old format.",
    ]);
    let chain = Chain::builder(model)
        .name("release-notes")
        .validate(Length::words(5..=60))
        .validate(Content::forbid(["TODO", "FIXME"])?.named("no-placeholders"))
        .validate(Pattern::require(r"\b\d+\.\d+\b")?.named("names-a-version"))
        // A closure is a check too. It gives a bool, or a Result whose error is the issue.
        .validate(check("warns-of-breakage", |text| {
            if text.contains("drops") { Ok(()) } else { Err("say what no longer works") }
        }))
        // A soft check never fails a text; between two that pass, the better score wins.
        .validate(check("calm", |text| !text.contains('!')).soft())
        .build()?;

    let outcome = chain.run("Write release notes for 0.9.").await?;
    for entry in outcome.newest().history() {
        let Some(thought) = entry.thought() else { continue };
        println!(
            "iteration {}: {}",
            thought.iteration(),
            thought.all_validation_issues().join("; ")
        );
    }
    println!("\n{}", outcome.text());
    Ok(())
}
