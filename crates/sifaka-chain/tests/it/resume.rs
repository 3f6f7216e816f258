//! A run that is left at any point goes on, and nothing that was paid for is done again.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;

use sifaka_chain::ChainBuilder;
use sifaka_core::event::EventKind;
use sifaka_core::thought::Limits;
use sifaka_core::{
    Context, CriticFeedback, Document, Error, ErrorKind, Event, Journal, OnUnknown, Thought,
    critic_fn, retriever_fn,
};
use sifaka_store::MemoryJournal;

use crate::kit::{Asks, Breaks, Finds, Script, wants_good};

/// A chain with every kind of step.
fn rich(model: Script, critic: &Finds, journal: &Arc<MemoryJournal>) -> ChainBuilder {
    let notes = retriever_fn("notes", |_| async {
        Ok(vec![Document::new("a note"), Document::new("x".repeat(40_000))])
    });
    // Finds a text the other has found as well.
    let more = retriever_fn("more", |_| async {
        Ok(vec![Document::new("a note"), Document::new("another")])
    });
    let broken = retriever_fn("broken", |_| async {
        Err(Error::new(ErrorKind::NotFound, "broken", "retrieve", "no index"))
    });
    let proposer = critic_fn("proposer", |thought: Thought| async move {
        let text = format!("{} proposed", thought.text().unwrap_or_default());
        Ok(CriticFeedback::new("proposer").with_proposed_text(text))
    });
    wants_good(model)
        .retriever(notes)
        .retriever(broken)
        .retriever(more)
        .validate_with(Breaks, 1.0, OnUnknown::Pass)
        .critic(critic.clone())
        .critic(proposer)
        .critic(Asks)
        .samples(2)
        .journal(Arc::clone(journal) as Arc<dyn Journal>)
}

async fn replay(events: &[Event], journal: &MemoryJournal) {
    let ctx = Context::new();
    let mut log = journal.open_run(&ctx, &events[0].run_id).await.unwrap();
    for event in events {
        log.append(&Arc::new(event.clone())).unwrap();
    }
    log.commit().await.unwrap();
}

#[tokio::test]
async fn a_crash_at_every_event_boundary_changes_nothing_and_repeats_nothing() {
    const TEXTS: [&str; 8] =
        ["a", "b", "advice 1", "advice 2", "c", "advice 3", "advice 4", "good"];
    let ctx = Context::new();
    let whole = Arc::new(MemoryJournal::new());
    let (model, critic) = (Script::says(TEXTS), Finds::new("finds", "dull"));
    let outcome =
        rich(model.clone(), &critic, &whole).build().unwrap().run("Write.").await.unwrap();
    assert!(outcome.passed());
    assert_eq!((model.calls(), critic.calls()), (8, 2));
    let events = whole.events(&ctx, outcome.run_id()).await.unwrap();
    assert!(events.len() > 20, "{}", events.len());

    for cut in 1..events.len() {
        let journal = Arc::new(MemoryJournal::new());
        replay(&events[..cut], &journal).await;
        let paid = |kind: &EventKind| match kind {
            EventKind::Generated { completions, .. } => completions.len(),
            EventKind::Called { .. } => 1,
            _ => 0,
        };
        let texts: usize = events[..cut].iter().map(|event| paid(&event.kind)).sum();
        let critiques =
            |event: &&Event| matches!(&event.kind, EventKind::Critiqued { index: 0, .. });
        let found = events[..cut].iter().filter(critiques).count();
        let (model, critic) = (Script::says(TEXTS).skip(texts), Finds::new("finds", "dull"));
        let chain = rich(model.clone(), &critic, &journal).build().unwrap();
        let resumed = chain.resume(outcome.run_id()).await.unwrap();

        assert_eq!(resumed.text(), outcome.text(), "cut at {cut}");
        assert_eq!(resumed.score(), outcome.score(), "cut at {cut}");
        assert_eq!(resumed.reason(), outcome.reason(), "cut at {cut}");
        assert_eq!(resumed.usage().calls, outcome.usage().calls, "cut at {cut}");
        assert_eq!(told(resumed.newest()), told(outcome.newest()), "cut at {cut}");
        let left = 8_usize.saturating_sub(texts);
        assert_eq!(model.calls(), left, "cut at {cut}: a finished call was repeated");
        assert_eq!(critic.calls(), 2 - found, "cut at {cut}: a finished critique was repeated");
        assert!(
            journal.verify(&ctx, &Default::default()).await.unwrap().is_clean(),
            "cut at {cut}"
        );
    }
}

/// Everything a Thought and its history say, without ids and times.
fn told(thought: &Thought) -> serde_json::Value {
    let mut value = serde_json::to_value(thought).unwrap();
    forget(&mut value);
    value
}

fn forget(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            for name in ["id", "parent_id", "timestamp", "score"] {
                fields.shift_remove(name);
            }
            fields.values_mut().for_each(forget);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(forget),
        // A resumed critic counts from 0 again, and a stored document is a pointer.
        serde_json::Value::String(text) if text.contains("dull #") || text.len() > 20_000 => {
            *text = text.chars().filter(|c| !c.is_ascii_digit()).take(20).collect();
        }
        _ => {}
    }
}

#[tokio::test]
async fn a_finished_run_is_checked_anew_by_a_changed_chain() {
    let journal = Arc::new(MemoryJournal::new());
    let build = |model: Script| wants_good(model).journal(Arc::clone(&journal) as Arc<dyn Journal>);
    let first = build(Script::says(["good"])).build().unwrap().run("Write.").await.unwrap();
    assert!(first.passed());
    let stricter = build(Script::says(["good, and long enough"]))
        .validate(sifaka_core::check("long", |text| text.len() > 10))
        .build()
        .unwrap();
    let outcome = stricter.resume(first.run_id()).await.unwrap();
    assert_eq!(outcome.text(), "good, and long enough");
    assert_eq!(outcome.thought().validation_results().len(), 2);
    assert!(outcome.warnings()[0].contains("checked anew"), "{:?}", outcome.warnings());
    let never = build(Script::says(["good, but never"]))
        .validate(sifaka_core::check("never", |_| false))
        .max_iterations(2)
        .build()
        .unwrap();
    let outcome = never.resume(first.run_id()).await.unwrap();
    assert!(!outcome.passed(), "an old verdict is no verdict of this chain");
    assert!(journal.verify(&Context::new(), &Default::default()).await.unwrap().is_clean());
}

#[tokio::test]
async fn a_changed_chain_warns() {
    let journal = Arc::new(MemoryJournal::new());
    let chain = wants_good(Script::says(["a", "b", "c", "d"]))
        .journal(Arc::clone(&journal) as Arc<dyn Journal>);
    let first = chain.max_iterations(1).build().unwrap().run("Write.").await.unwrap();
    assert!(!first.passed());
    let changed = wants_good(Script::says(["good"]))
        .system("new")
        .journal(Arc::clone(&journal) as Arc<dyn Journal>)
        .build()
        .unwrap();
    let outcome = changed.resume(first.run_id()).await.unwrap();
    assert!(outcome.passed());
    assert_eq!(outcome.thought().iteration(), 2);
    assert!(outcome.warnings()[0].contains(changed.id()), "{:?}", outcome.warnings());
}

#[tokio::test]
async fn resume_takes_any_id_of_the_run_or_the_beginning_of_one() {
    let journal = Arc::new(MemoryJournal::new());
    let chain = wants_good(Script::says(["a", "good"]))
        .journal(Arc::clone(&journal) as Arc<dyn Journal>)
        .build()
        .unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    let newest = outcome.newest().id().as_str();
    for id in [newest, &newest[..35], outcome.run_id().as_str()] {
        assert_eq!(chain.resume(id).await.unwrap().run_id(), outcome.run_id());
    }
    assert_eq!(chain.resume("nothing").await.unwrap_err().kind(), ErrorKind::NotFound);
    let bare = wants_good(Script::says(["x"])).build().unwrap();
    assert_eq!(bare.resume("x").await.unwrap_err().kind(), ErrorKind::Configuration);
}

#[tokio::test]
async fn a_thought_from_elsewhere_is_taken_up_and_improved() {
    let json =
        br#"{"prompt": "Write.", "generated_text": "bad old text", "critic_feedback": "dry"}"#;
    let thought = Thought::from_json(json, &Limits::default()).unwrap();
    let model = Script::says(["good"]);
    let chain = wants_good(model.clone()).build().unwrap();
    let outcome = chain.resume(thought.clone()).await.unwrap();
    assert!(outcome.passed());
    assert_eq!(model.calls(), 1);
    assert!(model.prompts()[0].contains("bad old text"), "{}", model.prompts()[0]);
    assert_eq!(outcome.thought().parent_id(), Some(thought.id()));
}

#[tokio::test]
async fn a_run_that_failed_goes_on() {
    let journal = Arc::new(MemoryJournal::new());
    let build = |model: Script| {
        wants_good(model).journal(Arc::clone(&journal) as Arc<dyn Journal>).build().unwrap()
    };
    let broken = Script::new([crate::kit::Act::Fail(ErrorKind::Auth)]);
    let error = build(broken).run("Write.").await.unwrap_err();
    let run = error.thought().unwrap().run_id().unwrap().clone();
    let outcome = build(Script::says(["good"])).resume(&run).await.unwrap();
    assert!(outcome.passed());
}
