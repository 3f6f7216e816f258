//! The way round: write, check, improve, keep the best.

use sifaka_chain::CriticsWhen;
use sifaka_core::event::EndReason;
use sifaka_core::policy::Fresh;
use sifaka_core::{ErrorKind, ValidationResult, check};

use crate::kit::{Finds, Script, wants_good};

#[tokio::test]
async fn a_text_that_passes_ends_the_run() {
    let model = Script::says(["good"]);
    let outcome = wants_good(model.clone()).build().unwrap().run("Write.").await.unwrap();
    assert!(outcome.passed());
    assert_eq!(outcome.text(), "good");
    assert_eq!(*outcome.reason(), EndReason::Passed);
    assert_eq!(model.calls(), 1);
    assert_eq!(outcome.usage().calls, 1);
    assert_eq!(outcome.thought().run_id(), Some(outcome.run_id()));
    assert_eq!(outcome.thought().validation_results().len(), 1);
    assert!(outcome.explain().contains("passed"));
}

#[tokio::test]
async fn max_iterations_counts_improvements_and_zero_writes_once() {
    for (allowed, calls) in [(0, 1), (1, 2), (3, 4)] {
        let model = Script::says(["a", "b", "c", "d", "e"]);
        let chain = wants_good(model.clone()).max_iterations(allowed).build().unwrap();
        let outcome = chain.run("Write.").await.unwrap();
        assert_eq!(model.calls(), calls);
        assert!(!outcome.passed());
        assert_eq!(*outcome.reason(), EndReason::MaxIterations);
        assert_eq!(outcome.newest().iterations().count(), calls);
    }
}

#[tokio::test]
async fn the_best_iteration_wins_not_the_last() {
    let model = Script::says(["one two three", "one two", "one"]);
    let chain = wants_good(model)
        .max_iterations(2)
        .validate_soft(
            check("long", |text| {
                ValidationResult::passed("ok").with_score(text.len() as f64 / 20.0)
            }),
            1.0,
        )
        .build()
        .unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    assert_eq!(outcome.text(), "one two three");
    assert_eq!(outcome.thought().iteration(), 0);
    assert_eq!(outcome.newest().iteration(), 2);
    assert_eq!(outcome.newest().iterations().count(), 3, "nothing is left out of the record");
}

#[tokio::test]
async fn several_candidates_are_each_checked_and_the_best_is_taken() {
    let model = Script::says(["bad", "good", "worse"]);
    let outcome = wants_good(model).samples(3).build().unwrap().run("Write.").await.unwrap();
    assert_eq!(outcome.text(), "good");
    let candidates = outcome.thought().candidates();
    assert_eq!(candidates.len(), 3);
    assert!(candidates.iter().all(|c| c.validation_results.len() == 1 && c.score.is_some()));
    assert_eq!(candidates.iter().position(|c| c.chosen), Some(1));
}

#[tokio::test]
async fn a_model_that_gives_few_at_a_time_is_asked_again() {
    let model = Script::says(["a", "b", "c", "d", "good"]);
    let outcome =
        wants_good(model.clone()).samples(6).build().unwrap().run("Write.").await.unwrap();
    assert_eq!(outcome.text(), "good");
    assert_eq!(model.requests().len(), 2);
    assert_eq!(outcome.thought().candidates().len(), 6);
    assert_eq!(outcome.usage().calls, 2);
}

#[tokio::test]
async fn a_fresh_policy_does_not_show_the_previous_text() {
    let model = Script::says(["bad", "still", "good"]);
    let chain = wants_good(model.clone()).policy(Fresh(1)).build().unwrap();
    assert!(chain.run("Write.").await.unwrap().passed());
    assert_eq!(model.prompts(), ["Write.", "Write.", "Write."]);
}

#[tokio::test]
async fn a_text_that_comes_back_ends_the_run() {
    let model = Script::says(["a", "b", "a"]);
    let chain = wants_good(model.clone()).max_iterations(9).build().unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    assert_eq!(*outcome.reason(), EndReason::Oscillation);
    assert_eq!(model.calls(), 3);
}

#[tokio::test]
async fn a_flat_score_ends_the_run_if_asked() {
    let model = Script::says(["a", "b", "c", "d", "e", "f"]);
    let stop = sifaka_chain::Stop { plateau: Some(2), ..Default::default() };
    let chain = wants_good(model.clone()).max_iterations(9).stop(stop).build().unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    assert_eq!(*outcome.reason(), EndReason::Plateau { rounds: 2 });
    assert_eq!(model.calls(), 3);
}

#[tokio::test]
async fn critics_always_improve_a_passing_text_and_the_best_is_kept() {
    let model = Script::says(["good 1", "bad", "good 3", "good 4"]);
    let critic = Finds::new("picky", "dull");
    let chain = wants_good(model.clone())
        .critic(critic.clone())
        .critics_when(CriticsWhen::Always)
        .build()
        .unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    assert_eq!(outcome.text(), "good 1", "an equal score later does not replace an earlier text");
    assert!(outcome.passed());
    assert_eq!((model.calls(), critic.calls()), (4, 3));
    assert_eq!(*outcome.reason(), EndReason::MaxIterations);
}

#[tokio::test]
async fn critics_never_and_by_predicate() {
    let critic = Finds::new("picky", "dull");
    let model = Script::says(["a", "b", "c", "d"]);
    let chain =
        wants_good(model).critic(critic.clone()).critics_when(CriticsWhen::Never).build().unwrap();
    chain.run("Write.").await.unwrap();
    assert_eq!(critic.calls(), 0);

    let model = Script::says(["a", "b", "c", "d"]);
    let odd = CriticsWhen::If(std::sync::Arc::new(|t| t.iteration() % 2 == 1));
    let chain = wants_good(model).critic(critic.clone()).critics_when(odd).build().unwrap();
    chain.run("Write.").await.unwrap();
    assert_eq!(critic.calls(), 1, "asked after iteration 1 only");
}

#[tokio::test]
async fn an_empty_prompt_is_an_error_with_a_suggestion() {
    let model = Script::says(["good"]);
    let chain = wants_good(model.clone()).build().unwrap();
    for prompt in ["", "  \n"] {
        let error = chain.run(prompt).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(!error.suggestions().is_empty());
    }
    assert_eq!(model.calls(), 0);
}

#[tokio::test]
async fn run_many_keeps_the_order_of_the_prompts() {
    let model = sifaka_core::model_fn("echo", |request: sifaka_core::model::Request| async move {
        format!("good {}", request.last_text())
    });
    let chain = sifaka_chain::Chain::builder(model)
        .validate(check("good", |text| text.contains("good")))
        .build()
        .unwrap();
    let prompts: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    let outcomes = chain.run_many(prompts.clone(), 8).await;
    assert_eq!(outcomes.len(), 50);
    for (prompt, outcome) in prompts.iter().zip(outcomes) {
        assert_eq!(outcome.unwrap().text(), format!("good {prompt}"));
    }
}

#[test]
fn run_blocking_works_outside_and_says_so_inside_async_code() {
    let chain = wants_good(Script::says(["good"])).build().unwrap();
    assert!(chain.run_blocking("Write.").unwrap().passed());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let error = runtime.block_on(async { chain.run_blocking("Write.") }).unwrap_err();
    assert!(error.suggestions()[0].contains("await"), "{error:?}");
}

#[tokio::test]
async fn tags_and_metadata_are_on_the_thought() {
    let chain = wants_good(Script::says(["good"])).system("Be good.").build().unwrap();
    let outcome = chain.run("Write.").tag("who", "ada").metadata("n", 3).await.unwrap();
    assert_eq!(outcome.thought().tags()["who"], "ada");
    assert_eq!(outcome.thought().metadata().unwrap()["n"], 3);
    assert_eq!(outcome.thought().system_prompt(), Some("Be good."));
    assert_eq!(outcome.thought().chain_id(), Some(chain.id()));
    assert_eq!(outcome.thought().model_prompt().unwrap().as_str(), Some("Write."));
}

#[tokio::test]
async fn timings_of_a_chain_are_those_of_all_its_runs_and_clones() {
    let chain = wants_good(Script::says(["good"])).build().unwrap();
    chain.run("Write.").await.unwrap();
    let outcome = chain.clone().run("Write.").await.unwrap();
    assert_eq!(outcome.performance().runs, 1);
    assert_eq!(chain.performance().runs, 2);
    let quiet = wants_good(Script::says(["good"])).timings(false).build().unwrap();
    quiet.run("Write.").await.unwrap();
    assert_eq!(quiet.performance().runs, 0);
}
