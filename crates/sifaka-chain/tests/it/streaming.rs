//! Following a run, and stopping a text that can no longer pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures_util::StreamExt;
use sifaka_core::event::Fold;
use sifaka_core::model::{
    Capabilities, Completion, Delta, DeltaStream, FinishReason, Model, Request, Response,
};
use sifaka_core::validator::Watch;
use sifaka_core::{
    Constraint, Context, Draft, Error, ErrorKind, EventKind, Journal, Result, ValidationResult,
    Validator,
};
use sifaka_resilience::Resilience;
use sifaka_store::MemoryJournal;

use crate::kit::{Finds, Script, wants_good};

/// Writes word by word and counts how many were taken.
#[derive(Clone, Default)]
struct Words {
    text: &'static str,
    taken: Arc<AtomicUsize>,
    cut_after: Option<usize>,
}

#[async_trait]
impl Model for Words {
    fn name(&self) -> &'static str {
        "words"
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { streaming: true, json_schema: true, ..Capabilities::default() }
    }
    async fn generate(&self, _: &Context, _: &Request) -> Result<Response> {
        Ok(Response::text(self.text))
    }
    fn stream<'a>(&'a self, _: &'a Context, _: &'a Request) -> DeltaStream<'a> {
        let words = self.text.split_inclusive(' ').enumerate().map(|(n, word)| {
            self.taken.fetch_add(1, Ordering::SeqCst);
            match self.cut_after {
                Some(cut) if n >= cut => None,
                _ => Some(Ok(Delta::Text { index: 0, text: Arc::from(word) })),
            }
        });
        let done = (self.cut_after.is_none())
            .then(|| Ok(Delta::Done(Box::new(Response::text(self.text)))));
        Box::pin(futures_util::stream::iter(words.map_while(|w| w).chain(done)))
    }
}

/// Fails on a word as soon as it comes.
struct Without(&'static str);

struct Looking(String, &'static str);

impl Watch for Looking {
    fn push(&mut self, text: &str) -> Option<String> {
        self.0.push_str(text);
        self.0.contains(self.1).then(|| format!("{} has come", self.1))
    }
}

#[async_trait]
impl Validator for Without {
    fn name(&self) -> &'static str {
        "without"
    }
    async fn validate(&self, _: &Context, draft: &Draft<'_>) -> Result<ValidationResult> {
        Ok(if draft.text.contains(self.0) {
            ValidationResult::failed(format!("{} is in it", self.0))
        } else {
            ValidationResult::passed("ok")
        })
    }
    fn constraints(&self) -> Vec<Constraint> {
        vec![Constraint::JsonSchema(Arc::new(serde_json::json!({"type": "string"})))]
    }
    fn watch(&self) -> Option<Box<dyn Watch>> {
        Some(Box::new(Looking(String::new(), self.0)))
    }
}

#[tokio::test]
async fn the_stream_tells_every_event_of_the_journal_and_the_text_as_it_comes() {
    let journal = Arc::new(MemoryJournal::new());
    let chain = wants_good(Script::says(["bad", "good"]))
        .critic(Finds::new("c", "dull"))
        .journal(Arc::clone(&journal) as Arc<dyn Journal>)
        .build()
        .unwrap();
    let mut stream = chain.run("Write.").stream();
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event.unwrap());
    }
    let outcome = stream.outcome().await.unwrap();
    let (deltas, lasting): (Vec<_>, Vec<_>) =
        events.into_iter().partition(|event| event.kind.is_transient());
    assert_eq!(deltas.len(), 2, "each text came");
    let stored = journal.events(&Context::new(), outcome.run_id()).await.unwrap();
    assert_eq!(stored.len(), lasting.len());
    for (told, kept) in lasting.iter().zip(&stored) {
        assert_eq!(**told, *kept);
    }
    let fold = Fold::of(&stored).unwrap();
    assert_eq!(fold.thought(), Some(outcome.newest()));
}

#[tokio::test]
async fn a_text_that_can_no_longer_pass_is_stopped_and_that_is_on_record() {
    let model = Words { text: "one two bad three four five", ..Words::default() };
    let journal = Arc::new(MemoryJournal::new());
    let chain = sifaka_chain::Chain::builder(model.clone())
        .validate(Without("bad"))
        .max_iterations(0)
        .journal(Arc::clone(&journal) as Arc<dyn Journal>)
        .build()
        .unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    assert_eq!(outcome.text(), "one two bad ");
    assert_eq!(model.taken.load(Ordering::SeqCst), 3, "nothing more was read or paid for");
    assert!(!outcome.passed());
    let events = journal.events(&Context::new(), outcome.run_id()).await.unwrap();
    let completions = events.iter().find_map(|event| match &event.kind {
        EventKind::Generated { completions, .. } => Some(completions.clone()),
        _ => None,
    });
    let completion: &Completion = &completions.unwrap()[0];
    assert_eq!(completion.finish_reason, FinishReason::StoppedBy("without".into()));
}

#[tokio::test]
async fn a_stream_that_ends_early_is_an_error_with_the_text_so_far() {
    let model = Words { text: "one two three", cut_after: Some(2), ..Words::default() };
    let chain = sifaka_chain::Chain::builder(model)
        .validate(Without("zzz"))
        .resilience(Resilience::none())
        .build()
        .unwrap();
    let error: Error = chain.run("Write.").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("one two"), "{error}");
}

#[tokio::test]
async fn constraints_go_to_a_model_that_can_keep_them_unless_guiding_is_off() {
    for (guide, expected) in [(sifaka_chain::Guide::Auto, 1), (sifaka_chain::Guide::Off, 0)] {
        let journal = Arc::new(MemoryJournal::new());
        let model = Words { text: "fine", ..Words::default() };
        let chain = sifaka_chain::Chain::builder(model)
            .validate(Without("bad"))
            .guide(guide)
            .journal(Arc::clone(&journal) as Arc<dyn Journal>)
            .build()
            .unwrap();
        let outcome = chain.run("Write.").await.unwrap();
        let events = journal.events(&Context::new(), outcome.run_id()).await.unwrap();
        let count = events.iter().find_map(|event| match &event.kind {
            EventKind::Prompted(prompt) => Some(prompt.constraints.len()),
            _ => None,
        });
        assert_eq!(count, Some(expected));
    }
}

#[tokio::test]
async fn dropping_the_stream_leaves_a_run_that_can_be_resumed() {
    let journal = Arc::new(MemoryJournal::new());
    let model = Script::says(["bad", "good"]);
    let chain = wants_good(model.clone())
        .journal(Arc::clone(&journal) as Arc<dyn Journal>)
        .build()
        .unwrap();
    let mut stream = chain.run("Write.").stream();
    let mut run_id = None;
    while let Some(event) = stream.next().await {
        let event = event.unwrap();
        run_id = Some(event.run_id.clone());
        if matches!(event.kind, EventKind::Chosen { .. }) {
            break;
        }
    }
    drop(stream);
    let outcome = chain.resume(&run_id.unwrap()).await.unwrap();
    assert!(outcome.passed());
    assert_eq!(model.calls(), 2, "the first text was not written again");
}

/// Breaks off once in the middle, then writes the whole text.
#[derive(Clone, Default)]
struct BreaksOnce(Arc<AtomicUsize>);

#[async_trait]
impl Model for BreaksOnce {
    fn name(&self) -> &'static str {
        "breaks-once"
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { streaming: true, ..Capabilities::default() }
    }
    async fn generate(&self, _: &Context, _: &Request) -> Result<Response> {
        Ok(Response::text("all is good"))
    }
    fn stream<'a>(&'a self, _: &'a Context, _: &'a Request) -> DeltaStream<'a> {
        let text = |text: &str| Ok(Delta::Text { index: 0, text: Arc::from(text) });
        let items = if self.0.fetch_add(1, Ordering::SeqCst) == 0 {
            vec![text("all is lo")]
        } else {
            let done = Ok(Delta::Done(Box::new(Response::text("all is good"))));
            vec![text("all is "), text("good"), done]
        };
        Box::pin(futures_util::stream::iter(items))
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_tried_again_starts_again_for_the_reader_too() {
    let chain = sifaka_chain::Chain::builder(BreaksOnce::default())
        .validate(sifaka_core::check("good", |text| text.contains("good")))
        .build()
        .unwrap();
    let mut stream = chain.run("Write.").stream();
    let mut text = String::new();
    while let Some(event) = stream.next().await {
        match &event.unwrap().kind {
            EventKind::Delta(Delta::Text { text: more, .. }) => text.push_str(more),
            EventKind::Delta(Delta::Restart { .. }) => text.clear(),
            _ => {}
        }
    }
    assert_eq!(text, "all is good");
    assert_eq!(stream.outcome().await.unwrap().text(), text);
}

/// Asks for constrained samples after the first text.
struct Constrains;

impl sifaka_core::Policy for Constrains {
    fn name(&self) -> &'static str {
        "constrains"
    }
    fn decide(
        &self,
        _: &Context,
        _: &sifaka_core::policy::Progress<'_>,
    ) -> Result<sifaka_core::policy::Decision> {
        Ok(sifaka_core::policy::Decision::Constrained { samples: 1 })
    }
}

#[tokio::test]
async fn a_policy_can_ask_for_constraints_though_guiding_is_off() {
    let journal = Arc::new(MemoryJournal::new());
    let model = Words { text: "bad", ..Words::default() };
    let chain = sifaka_chain::Chain::builder(model)
        .validate(Without("bad"))
        .guide(sifaka_chain::Guide::Off)
        .policy(Constrains)
        .max_iterations(1)
        .journal(Arc::clone(&journal) as Arc<dyn Journal>)
        .build()
        .unwrap();
    let outcome = chain.run("Write.").await.unwrap();
    let events = journal.events(&Context::new(), outcome.run_id()).await.unwrap();
    let counts: Vec<usize> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Prompted(prompt) => Some(prompt.constraints.len()),
            _ => None,
        })
        .collect();
    assert_eq!(counts, [0, 1]);
}
