//! Streaming: the events of a run as they happen, the text as it is written.
//!
//! `cargo run --example 05-streaming`

#![expect(clippy::print_stdout, reason = "an example prints")]

use futures_util::StreamExt;
use sifaka::model::Delta;
use sifaka::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let model = ScriptedModel::new(["One two.", "One two three four five six."]);
    let chain = Chain::builder(model).validate(Length::words(5..)).build()?;

    let mut stream = chain.run("Count.").stream();
    while let Some(event) = stream.next().await {
        match &event?.kind {
            EventKind::Delta(Delta::Text { text, .. }) => print!("{text}"),
            EventKind::Validated { results, .. } => {
                for checked in results {
                    println!("  [{}: {}]", checked.name, checked.result.message);
                }
            }
            _ => {}
        }
    }
    let outcome = stream.outcome().await?;
    println!("{}", outcome.reason());
    Ok(())
}
