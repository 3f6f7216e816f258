//! Retrieval: documents for the model before it writes, and for critics afterwards.
//!
//! `cargo run --example 04-retrieval`

#![expect(clippy::print_stdout, reason = "an example prints")]

use sifaka::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    // Any closure over the query is a retriever.
    let notes = retriever_fn("notes", |query: String| async move {
        let all =
            [("sifaka.md", "A sifaka is a lemur of Madagascar."), ("sea.md", "The sea is salt.")];
        Ok(all
            .into_iter()
            .filter(|(_, text)| query.split_whitespace().any(|word| text.contains(word)))
            .map(|(source, text)| Document::new(text).with_source(source).with_score(1.0))
            .collect())
    });
    let model = model_fn("quotes", |request: sifaka::model::Request| async move {
        // What was retrieved stands in the prompt, fenced and labelled as data.
        let prompt = request.last_text().into_owned();
        let fact = prompt.lines().find(|line| line.contains("lemur")).unwrap_or("I do not know.");
        format!("As the notes say: {fact}")
    });
    let chain = Chain::builder(model)
        .retriever(notes)
        .validate(check("grounded", |text| text.contains("Madagascar")))
        .build()?;

    let outcome = chain.run("Explain what a sifaka is.").await?;
    println!("{}", outcome.text());
    for document in outcome.thought().pre_generation_context() {
        println!("  from {}", document.origin().unwrap_or("somewhere"));
    }
    Ok(())
}
