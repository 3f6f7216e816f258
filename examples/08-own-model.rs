//! Another client library as a model: implement the trait, and everything else comes with it.
//!
//! `cargo run --example 08-own-model`

#![expect(clippy::print_stdout, reason = "an example prints")]

use async_trait::async_trait;
use sifaka::model::{Capabilities, Model, Request, Response};
use sifaka::prelude::*;

/// Stands for a client you already have.
struct Client;

impl Client {
    async fn complete(&self, prompt: &str) -> std::result::Result<String, std::io::Error> {
        Ok(format!("You asked: {prompt}"))
    }
}

struct Acme(Client);

#[async_trait]
impl Model for Acme {
    fn name(&self) -> &str {
        "acme:small"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { context_window: Some(4_096), ..Capabilities::default() }
    }

    async fn generate(&self, ctx: &Context, request: &Request) -> Result<Response> {
        let ask = async {
            self.0.complete(&request.last_text()).await.map_err(|error| {
                Error::new(ErrorKind::Unavailable, self.name(), "generate", error.to_string())
            })
        };
        Ok(Response::text(ctx.run(ask).await?))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let chain = Chain::builder(Acme(Client)).validate(Length::words(1..)).build()?;
    println!("{}", chain.run("Say something.").await?.text());
    Ok(())
}
