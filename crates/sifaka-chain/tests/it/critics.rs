//! What critics say and propose, and where it goes.

use sifaka_core::{CriticFeedback, Origin, critic_fn};

use crate::kit::{Asks, Finds, Script, wants_good};

#[tokio::test]
async fn a_proposed_text_is_a_candidate_and_is_checked() {
    let proposer = critic_fn("proposer", |_| async {
        Ok(CriticFeedback::new("proposer").with_proposed_text("a good one"))
    });
    let model = Script::says(["bad"]);
    let chain = wants_good(model.clone()).critic(proposer).build().unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    assert!(outcome.passed());
    assert_eq!(outcome.text(), "a good one");
    assert_eq!(model.calls(), 1, "the proposal passed, so nothing is written again");
    let candidates = outcome.thought().candidates();
    assert_eq!(candidates[1].origin, Origin::Proposal("proposer".into()));
    assert_eq!(candidates[1].validation_results.len(), 1);
}

#[tokio::test]
async fn a_proposal_that_is_worse_does_not_replace_the_text() {
    let proposer = critic_fn("proposer", |_| async {
        Ok(CriticFeedback::new("proposer").with_proposed_text("also bad"))
    });
    let model = Script::says(["bad", "good"]);
    let outcome = wants_good(model).critic(proposer).build().unwrap().run("Write.").await.unwrap();
    let first = outcome.thought().parent().unwrap();
    assert_eq!(first.text(), Some("bad"));
    assert_eq!(first.candidates().len(), 2);
    assert_eq!(outcome.text(), "good");
}

#[tokio::test]
async fn feedback_stands_in_the_declared_order() {
    let slow = critic_fn("slow", |_| async {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        Ok(CriticFeedback::new("slow"))
    });
    let model = Script::says(["bad", "good"]);
    let chain = wants_good(model).critic(slow).critic(Finds::new("quick", "x")).build().unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    let first = outcome.thought().parent().unwrap();
    let names: Vec<&str> = first.critic_feedback().iter().map(|f| &*f.critic_name).collect();
    assert_eq!(names, ["slow", "quick"]);
}

#[tokio::test]
async fn a_critics_calls_are_counted_and_on_record() {
    let model = Script::says(["bad", "too short", "too dry", "good"]);
    let outcome =
        wants_good(model.clone()).critic(Asks).build().unwrap().run("Write.").await.unwrap();
    assert!(outcome.passed());
    assert_eq!(outcome.usage().calls, 4);
    let first = outcome.thought().parent().unwrap();
    assert_eq!(first.critic_feedback()[0].issues, ["too short", "too dry"]);
    assert_eq!(first.usage().calls, 3);
}
