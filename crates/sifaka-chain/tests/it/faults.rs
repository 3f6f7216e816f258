//! Components that fail, and what is left then.

use std::time::Duration;

use sifaka_core::event::EndReason;
use sifaka_core::{
    CancellationToken, Error, ErrorKind, OnUnknown, Verdict, check, critic_fn, retriever_fn,
};
use sifaka_resilience::Resilience;

use crate::kit::{Act, Breaks, Script, wants_good};

#[tokio::test]
async fn a_validator_that_breaks_could_not_tell() {
    let chain = wants_good(Script::says(["good"])).validate(Breaks).max_iterations(0).build();
    let outcome = chain.unwrap().run("Write.").await.unwrap();
    assert!(!outcome.passed(), "what was not checked is not known to be good");
    let result = outcome.thought().validation_result("breaks").unwrap();
    assert_eq!(result.passed, Verdict::Unknown);
    assert_eq!(outcome.thought().failures()[0].kind, ErrorKind::Unavailable);

    let lenient = wants_good(Script::says(["good"]))
        .validate_with(Breaks, 1.0, OnUnknown::Pass)
        .max_iterations(0)
        .build()
        .unwrap();
    assert!(lenient.run("Write.").await.unwrap().passed());
}

#[tokio::test]
async fn a_component_that_panics_does_not_take_the_run_down() {
    let chain = wants_good(Script::says(["good"]))
        .validate(check("explodes", |_| -> bool { panic!("boom") }))
        .max_iterations(0)
        .build()
        .unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    let result = outcome.thought().validation_result("explodes").unwrap();
    assert!(result.message.contains("boom"), "{}", result.message);

    let model = Script::new([Act::Panic]);
    let error = wants_good(model).build().unwrap().run("Write.").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
}

#[tokio::test]
async fn a_retriever_that_fails_is_left_out_and_recorded() {
    let broken = retriever_fn("broken", |_| async {
        Err(Error::new(ErrorKind::NotFound, "broken", "retrieve", "no index"))
    });
    let chain = wants_good(Script::says(["good"])).retriever(broken).build().unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    assert!(outcome.passed());
    assert_eq!(outcome.thought().failures().len(), 2, "before and after writing");
    assert_eq!(&*outcome.thought().failures()[0].component, "broken");
}

#[tokio::test]
async fn a_model_that_fails_at_first_is_an_error_with_the_thought_so_far() {
    let model = Script::new([Act::Fail(ErrorKind::Auth)]);
    let error = wants_good(model).build().unwrap().run("Write.").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert_eq!(error.thought().unwrap().prompt(), "Write.");
}

#[tokio::test]
async fn a_model_that_fails_later_leaves_the_best_text() {
    let model = Script::new([Act::Say("bad"), Act::Fail(ErrorKind::Unavailable)]);
    let outcome = wants_good(model).build().unwrap().run("Write.").await.unwrap();
    assert_eq!(outcome.text(), "bad");
    assert!(!outcome.passed());
    assert!(
        matches!(outcome.reason(), EndReason::Degraded { failure } if failure.kind == ErrorKind::Unavailable)
    );
}

#[tokio::test(start_paused = true)]
async fn retries_are_on_by_default() {
    let model = Script::new([
        Act::Fail(ErrorKind::Overloaded),
        Act::Fail(ErrorKind::Overloaded),
        Act::Say("good"),
    ]);
    let chain = wants_good(model.clone()).resilience(Resilience::default()).build().unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    assert!(outcome.passed());
    assert_eq!(model.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_times_out_by_default() {
    let model = Script::new([Act::Wait(Duration::from_secs(3600), "late"), Act::Say("good")]);
    let chain = wants_good(model.clone()).resilience(Resilience::default()).build().unwrap();
    assert!(chain.run("Write.").await.unwrap().passed());
    assert_eq!(model.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_with_the_best_text_so_far() {
    let token = CancellationToken::new();
    let stop = token.clone();
    let model = Script::new([Act::Say("bad"), Act::Wait(Duration::from_secs(60), "late")]);
    let chain = wants_good(model).build().unwrap();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.cancel();
    });
    let outcome = chain.run("Write.").cancel_on(token).await.unwrap();
    assert_eq!(*outcome.reason(), EndReason::Cancelled);
    assert_eq!(outcome.text(), "bad");
}

#[tokio::test(start_paused = true)]
async fn cancelling_before_the_first_text_is_an_error() {
    let token = CancellationToken::new();
    token.cancel();
    let model = Script::says(["good"]);
    let chain = wants_good(model.clone()).build().unwrap();
    let error = chain.run("Write.").cancel_on(token).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(model.calls(), 0);
}

#[tokio::test]
async fn every_critic_failing_still_leaves_a_repair() {
    let broken = critic_fn("broken", |_| async {
        Err(Error::new(ErrorKind::InvalidResponse, "broken", "critique", "no JSON"))
    });
    let model = Script::says(["bad", "good"]);
    let outcome = wants_good(model).critic(broken).build().unwrap().run("Write.").await.unwrap();
    assert!(outcome.passed());
    let first = outcome.thought().parent().unwrap();
    assert!(first.critic_feedback().is_empty());
    assert_eq!(&*first.failures()[0].component, "broken");
}

#[tokio::test]
async fn a_fallback_takes_over_and_that_is_on_record() {
    let journal = std::sync::Arc::new(sifaka_store::MemoryJournal::new());
    let down = Script::new([Act::Fail(ErrorKind::Unavailable)]);
    let spare = Script::says(["good"]).named("spare");
    let chain = wants_good(down.clone())
        .fallback(spare.clone())
        .journal(std::sync::Arc::clone(&journal) as std::sync::Arc<dyn sifaka_core::Journal>)
        .build()
        .unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    assert!(outcome.passed());
    assert_eq!((down.calls(), spare.calls()), (1, 1));
    let ctx = sifaka_core::Context::new();
    let events = sifaka_core::Journal::events(&*journal, &ctx, outcome.run_id()).await.unwrap();
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.name()).collect();
    assert_eq!(
        kinds[1..5],
        ["prompted", "resilience", "prompted", "generated"],
        "each model's prompt is on record"
    );
    // A mistake in the request is no reason to ask somebody else.
    let wrong = Script::new([Act::Fail(ErrorKind::InvalidInput)]);
    let spare = Script::says(["good"]).named("spare");
    let chain = wants_good(wrong).fallback(spare.clone()).build().unwrap();
    assert_eq!(chain.run("Write.").await.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(spare.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_told_of_before_the_wait_and_with_its_own_time() {
    use futures_util::StreamExt;
    let model = Script::new([Act::Fail(ErrorKind::Overloaded), Act::Say("good")]);
    let chain = wants_good(model).resilience(Resilience::default()).build().unwrap();
    let mut stream = chain.run("Write.").stream();
    let started = tokio::time::Instant::now();
    let mut told_after = None;
    while let Some(event) = stream.next().await {
        if matches!(event.unwrap().kind, sifaka_core::EventKind::Resilience { .. }) {
            told_after = Some(started.elapsed());
        }
    }
    assert!(told_after.unwrap() < Duration::from_millis(500), "{told_after:?}");
    let outcome = stream.outcome().await.unwrap();
    assert_eq!(outcome.usage().calls, 2, "the try that failed counts as a call");
}

#[tokio::test]
async fn a_policy_that_panics_fails_its_run_alone() {
    struct Moody;
    impl sifaka_core::Policy for Moody {
        fn name(&self) -> &'static str {
            "moody"
        }
        fn decide(
            &self,
            _: &sifaka_core::Context,
            progress: &sifaka_core::policy::Progress<'_>,
        ) -> sifaka_core::Result<sifaka_core::policy::Decision> {
            assert!(progress.thought.prompt() != "1", "not this one");
            Ok(sifaka_core::policy::Decision::Repair)
        }
    }
    let chain = wants_good(Script::says(["bad", "worse", "worst"])).policy(Moody).build().unwrap();
    let outcomes = chain.run_many(["0", "1", "2"], 3).await;
    assert_eq!(outcomes[1].as_ref().unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(outcomes[0].as_ref().unwrap().thought().prompt(), "0");
    assert_eq!(outcomes[2].as_ref().unwrap().thought().prompt(), "2");
    assert_eq!(chain.performance().runs, 3, "failed runs are in the timings too");
}
