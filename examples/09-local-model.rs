//! The embedded model: no key, no server, and its decoding kept to a schema.
//!
//! `cargo run --release -p sifaka --example 09-local-model`, after `sifaka weights pull`

#![expect(clippy::print_stdout, reason = "an example prints")]

use serde_json::{Value, json};
use sifaka::model::{Request, ResponseFormat};
use sifaka::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let model = match sifaka::model("local") {
        Ok(model) => model,
        // The library fetches nothing by itself; the error says how to.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("{error}\n  try: {}", error.suggestions().join("\n  or:  "));
            return Ok(());
        }
        Err(error) => return Err(error),
    };

    // A chain as with any other model. Four candidates are written in one pass over the weights.
    let chain = Chain::builder(model.clone())
        .validate(Length::words(10..=80))
        .samples(4)
        .seed(7)
        .build()?;
    let outcome = chain.run("Explain in two sentences what a lemur is.").await?;
    println!("{}\n", outcome.text());

    // Asked directly: whatever it writes fits the schema.
    let mut request = Request::text("Describe a lemur.");
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 30},
            "legs": {"type": "integer", "minimum": 0, "maximum": 8},
        },
        "required": ["name", "legs"],
        "additionalProperties": false,
    });
    request.response_format = Some(ResponseFormat::JsonSchema { name: "animal".into(), schema });
    request.seed = Some(7);
    let response = model.generate(&Context::new(), &request).await?;
    let animal: Value = serde_json::from_str(&response.completions[0].text)
        .map_err(|error| Error::invalid_input("example", error.to_string()))?;
    println!("{animal}");
    assert!(animal["legs"].as_u64().is_some_and(|legs| legs <= 8));
    Ok(())
}
