//! Budgets and deadlines.

use std::time::Duration;

use sifaka_core::event::EndReason;
use sifaka_core::model::{Capabilities, Model, Price, Request, Response};
use sifaka_core::{Budget, Context, Cost, ErrorKind, Result, Usage};
use sifaka_resilience::Resilience;

use crate::kit::{Act, Asks, Finds, Script, wants_good};

#[tokio::test]
async fn a_budget_of_calls_ends_the_run_with_the_best_text() {
    let model = Script::says(["a", "b", "c", "d"]);
    let chain = wants_good(model.clone()).budget(Budget::calls(2)).build().unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    assert!(
        matches!(outcome.reason(), EndReason::Budget { message } if message.contains("2 allowed"))
    );
    assert_eq!(model.calls(), 2);
    assert_eq!(outcome.text(), "a");
}

#[tokio::test]
async fn a_budget_of_tokens_counts_what_goes_in_as_well() {
    let model = Script::says(["a", "b", "c", "d"]);
    // Each call takes 15 tokens by the model's own count.
    let chain = wants_good(model.clone()).budget(Budget::tokens(60)).build().unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    assert!(matches!(outcome.reason(), EndReason::Budget { .. }), "{:?}", outcome.reason());
    assert!(outcome.usage().tokens() <= 60, "{:?}", outcome.usage());
}

#[tokio::test]
async fn a_run_may_have_a_budget_of_its_own() {
    let model = Script::says(["a", "b", "c", "d"]);
    let chain = wants_good(model.clone()).build().unwrap();
    chain.run("Write.").budget(Budget::calls(1)).await.unwrap();
    assert_eq!(model.calls(), 1);
    let other = Script::says(["a", "b", "c", "d"]);
    wants_good(other.clone()).build().unwrap().run("Write.").max_iterations(0).await.unwrap();
    assert_eq!(other.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn failed_tries_count_as_calls() {
    let model = Script::new([Act::Fail(ErrorKind::Overloaded)]);
    let chain = wants_good(model.clone())
        .resilience(Resilience::default())
        .budget(Budget::calls(2))
        .build()
        .unwrap();
    let error = chain.run("Write.").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BudgetExhausted);
    assert_eq!(model.calls(), 2, "retries do not cost without bound");
}

#[tokio::test]
async fn a_critic_there_is_no_budget_for_is_left_out_and_that_is_on_record() {
    let model = Script::says(["bad"]);
    let chain = wants_good(model.clone()).critic(Asks).budget(Budget::calls(1)).build().unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    assert!(matches!(outcome.reason(), EndReason::Budget { .. }));
    assert!(outcome.thought().critic_feedback().is_empty());
    assert_eq!(model.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_the_run_with_the_best_text() {
    let model = Script::new([Act::Say("bad"), Act::Wait(Duration::from_secs(50), "late")]);
    let chain = wants_good(model).budget(Budget::time(Duration::from_secs(5))).build().unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    assert_eq!(*outcome.reason(), EndReason::Deadline);
    assert_eq!(outcome.text(), "bad");

    let model = Script::new([Act::Say("bad"), Act::Wait(Duration::from_secs(50), "late")]);
    let stop = sifaka_chain::Stop { deadline: Some(Duration::from_secs(5)), ..Default::default() };
    let outcome = wants_good(model).stop(stop).build().unwrap().run("Write.").await.unwrap();
    assert_eq!(*outcome.reason(), EndReason::Deadline);
}

struct Priced;

#[async_trait::async_trait]
impl Model for Priced {
    fn name(&self) -> &'static str {
        "priced"
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { max_output_tokens: Some(1_000), ..Capabilities::default() }
    }
    async fn generate(&self, _: &Context, _: &Request) -> Result<Response> {
        let usage = Usage { calls: 1, input_tokens: 100, output_tokens: 100, ..Usage::default() };
        Ok(Response { usage, ..Response::text("bad") })
    }
    fn price(&self) -> Option<Price> {
        Some(Price {
            input_per_million: Cost::from_dollars(1.0),
            output_per_million: Cost::from_dollars(10.0),
            cached_per_million: None,
        })
    }
}

#[tokio::test]
async fn money_is_counted_and_capped() {
    let chain = sifaka_chain::Chain::builder(Priced)
        .validate(sifaka_core::check("no", |_| false))
        .critic(Finds::new("c", "x"))
        .stop(sifaka_chain::Stop { oscillation: false, ..Default::default() })
        .budget(Budget::cost(Cost::from_dollars(0.0115)))
        .build()
        .unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    // A call takes $0.0011, but may take $0.01: after two there is not enough left to begin.
    assert!(matches!(outcome.reason(), EndReason::Budget { .. }), "{:?}", outcome.reason());
    assert_eq!(outcome.cost(), Some(Cost::from_dollars(0.0022)));
}

struct Bare;

#[async_trait::async_trait]
impl Model for Bare {
    fn name(&self) -> &'static str {
        "bare"
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
    async fn generate(&self, _: &Context, _: &Request) -> Result<Response> {
        Ok(Response::text("a text of some length that says nothing of its usage"))
    }
}

#[tokio::test]
async fn tokens_are_counted_for_a_model_that_does_not_count_them() {
    let chain = sifaka_chain::Chain::builder(Bare)
        .validate(sifaka_core::check("no", |_| false))
        .stop(sifaka_chain::Stop { oscillation: false, ..Default::default() })
        .max_iterations(50)
        .budget(Budget::tokens(300))
        .build()
        .unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    assert!(matches!(outcome.reason(), EndReason::Budget { .. }), "{:?}", outcome.reason());
    assert!(outcome.usage().estimated && outcome.usage().tokens() <= 300 + 17);
}
