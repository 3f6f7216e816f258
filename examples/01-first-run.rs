//! A first run: a model writes, a check fails, the model mends it, and the record says how.
//!
//! `cargo run --example 01-first-run`

#![expect(clippy::print_stdout, reason = "an example prints")]

use sifaka::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    // The scripted model needs no key and no network: it gives these answers in turn.
    let model = ScriptedModel::new([
        "A sifaka is a lemur.",
        "A sifaka is a lemur of Madagascar that leaps upright from tree to tree.",
    ]);
    let chain = Chain::builder(model).validate(Length::words(10..=40)).build()?;

    let outcome = chain.run("Explain what a sifaka is.").await?;

    println!("{}\n", outcome.text());
    println!("{}", outcome.explain());
    Ok(())
}
