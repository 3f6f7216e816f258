//! How the systems before us failed; each is a test of ours.

use std::sync::Arc;

use sifaka_chain::Chain;
use sifaka_core::{Context, Error, ErrorKind, Journal, critic_fn, model_fn};
use sifaka_store::MemoryJournal;

use crate::kit::{Finds, Script, wants_good};

#[tokio::test]
async fn lesson_1_the_next_prompt_holds_task_previous_text_and_newest_feedback() {
    let model = Script::says(["first try", "good"]);
    let chain = wants_good(model.clone()).critic(Finds::new("c", "too dry")).build().unwrap();
    chain.run("Describe the sea.").await.unwrap();
    let prompt = &model.prompts()[1];
    for part in ["Describe the sea.", "first try", "does not pass the check \"good\"", "too dry"] {
        assert!(prompt.contains(part), "{part:?} is missing in\n{prompt}");
    }
}

#[tokio::test]
async fn lesson_2_what_every_critic_says_reaches_the_next_prompt() {
    let model = Script::says(["bad", "good"]);
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut chain = wants_good(model.clone());
    for name in names {
        chain = chain.critic(Finds::new(name, "planted"));
    }
    chain.build().unwrap().run("Write.").await.unwrap();
    let prompt = &model.prompts()[1];
    for name in names {
        assert!(prompt.contains(&format!("review by {name}")), "{name} is missing in\n{prompt}");
    }
    assert_eq!(prompt.matches("planted").count(), names.len());
}

#[tokio::test]
async fn lesson_3_two_validators_of_one_kind_keep_two_results() {
    let model = Script::says(["good"]);
    let chain = wants_good(model)
        .validate(sifaka_core::check("good", |_| false))
        .max_iterations(0)
        .build()
        .unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    let names: Vec<&str> =
        outcome.thought().validation_results().iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["good", "good-2"]);
    assert!(!outcome.passed());
}

#[tokio::test]
async fn lesson_4_with_default_options_a_failing_text_is_improved() {
    let model = Script::says(["bad", "good"]);
    let critic = Finds::new("c", "x");
    let chain = wants_good(model.clone()).critic(critic.clone()).build().unwrap();
    assert!(chain.run("Write.").await.unwrap().passed());
    assert_eq!((model.calls(), critic.calls()), (2, 1));
}

#[tokio::test]
async fn lesson_6_the_final_thought_is_saved_and_resume_finds_it() {
    let journal = Arc::new(MemoryJournal::new());
    let model = Script::says(["bad", "good"]);
    let chain = wants_good(model.clone())
        .journal(Arc::clone(&journal) as Arc<dyn Journal>)
        .build()
        .unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    let ctx = Context::new();
    let saved = journal.thought(&ctx, outcome.run_id().as_str()).await.unwrap().unwrap();
    assert_eq!(saved, *outcome.newest());
    let again = chain.resume(outcome.run_id()).await.unwrap();
    assert_eq!(again.text(), outcome.text());
    assert_eq!(model.calls(), 2, "nothing is run again");
}

#[tokio::test]
async fn lesson_7_the_last_text_is_validated_and_a_worse_one_does_not_replace_it() {
    let model = Script::says(["bad", "also bad", "worst", "the last"]);
    let outcome = wants_good(model).build().unwrap().run("Write.").await.unwrap();
    let newest = outcome.newest();
    assert_eq!(newest.text(), Some("the last"));
    assert_eq!(newest.validation_results().len(), 1);
    assert_eq!(outcome.text(), "bad");
}

#[tokio::test]
async fn lesson_8_each_rounds_prompt_carries_that_rounds_feedback() {
    let model = Script::says(["a", "b", "c", "d"]);
    let chain = wants_good(model.clone()).critic(Finds::new("c", "round")).build().unwrap();
    chain.run("Write.").await.unwrap();
    let prompts = model.prompts();
    assert!(prompts[1].contains("round #0") && !prompts[1].contains("round #1"));
    assert!(prompts[2].contains("round #1") && !prompts[2].contains("round #0"));
    assert!(prompts[3].contains("round #2") && !prompts[3].contains("round #1"));
}

#[tokio::test]
async fn lesson_9_the_record_of_a_long_run_is_complete() {
    let texts: Vec<&'static str> = (0..60).map(|n| &*format!("bad {n}").leak()).collect();
    let journal = Arc::new(MemoryJournal::new());
    let chain = wants_good(Script::says(texts))
        .critic(Finds::new("c", "x"))
        .max_iterations(59)
        .journal(Arc::clone(&journal) as Arc<dyn Journal>)
        .build()
        .unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    let thoughts: Vec<_> = outcome.newest().iterations().collect();
    assert_eq!(thoughts.len(), 60);
    let critiques: usize = thoughts
        .iter()
        .filter_map(|entry| entry.thought().map(|t| t.critic_feedback().len()))
        .sum();
    assert_eq!(critiques, 59);
    let fold = journal.fold(&Context::new(), outcome.run_id()).await.unwrap().unwrap();
    assert_eq!(fold.thought(), Some(outcome.newest()));
}

#[tokio::test]
async fn lesson_10_a_network_error_is_a_failure_on_record_and_never_a_critique() {
    let broken = critic_fn("broken", |_| async {
        Err(Error::new(ErrorKind::Unavailable, "broken", "critique", "connection reset"))
    });
    let model = Script::says(["bad", "good"]);
    let outcome =
        wants_good(model.clone()).critic(broken).build().unwrap().run("Write.").await.unwrap();
    let first = outcome.thought().parent().unwrap();
    assert!(first.critic_feedback().is_empty());
    assert_eq!(first.failures()[0].message, "connection reset");
    assert!(!model.prompts()[1].contains("connection reset"));
}

#[tokio::test]
async fn lesson_12_prompts_do_not_grow_with_every_round() {
    let texts: Vec<&'static str> = (0..30).map(|n| &*format!("bad {n:04}").leak()).collect();
    let model = Script::says(texts);
    let chain =
        wants_good(model.clone()).critic(Finds::new("c", "x")).max_iterations(29).build().unwrap();
    chain.run("Write.").await.unwrap();
    let lengths: Vec<usize> = model.prompts()[1..].iter().map(String::len).collect();
    let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
    assert!(most - least < 8, "{lengths:?}");
}

/// A chain keeps the timings of its parts from run to run, and nothing of the runs themselves.
#[tokio::test]
async fn lesson_12_nothing_grows_with_the_number_of_runs() {
    let model = model_fn("model", |_| async { Ok("good") });
    let chain = Chain::builder(model)
        .validate(sifaka_core::check("good", |text| text.contains("good")))
        .critic(Finds::new("c", "x"))
        .build()
        .unwrap();
    let parts = || -> Vec<String> {
        chain.performance().components.into_iter().map(|part| part.component).collect()
    };
    let mut few = Vec::new();
    for n in 0..2_000 {
        // A prompt and a label that no other run has: neither may become a key that stays.
        let prompt: Arc<str> = format!("Write number {n}.").into();
        let trace = Arc::downgrade(&prompt);
        let outcome = chain.run(prompt).tag("n", n.to_string()).await.unwrap();
        assert!(trace.upgrade().is_some(), "the outcome holds the very prompt");
        drop(outcome);
        assert!(trace.upgrade().is_none(), "something still holds run {n}");
        if n == 9 {
            few = parts();
        }
    }
    let mut many = parts();
    few.sort();
    many.sort();
    assert!(!few.is_empty());
    assert_eq!(many, few, "as many entries after 2,000 runs as after 10");
    assert_eq!(chain.performance().runs, 2_000);
}
