//! Limits: budgets, retries and stop rules. The best text so far always comes back.
//!
//! `cargo run --example 07-limits`

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::time::Duration;

use sifaka::models::Reply;
use sifaka::prelude::*;
use sifaka::resilience::{Resilience, Retry};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    // The first call is turned away; the retry goes through.
    let model = ScriptedModel::new([
        Reply::error(ErrorKind::Overloaded).times(1),
        Reply::text("a first draft"),
        Reply::text("a second draft"),
        Reply::text("a third draft"),
    ]);
    let retry = Retry { base_delay: Duration::from_millis(10), ..Retry::default() };
    let chain = Chain::builder(model)
        .validate(check("never", |_| false))
        .resilience(Resilience::default().with_retry(retry))
        .budget(Budget::calls(3).with_time(Duration::from_secs(5)))
        .max_iterations(9)
        .build()?;

    let outcome = chain.run("Write something good.").await?;
    println!("{}", outcome.explain());
    for (component, time) in outcome.performance().bottlenecks() {
        println!("{component}: {time:.1?}");
    }
    Ok(())
}
