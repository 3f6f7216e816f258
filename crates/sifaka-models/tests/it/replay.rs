use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use jiff::Timestamp;
use sifaka_core::event::{Nanos, Prompted, Sealed};
use sifaka_core::journal::{
    Resolved, Retention, RunLog, RunQuery, RunSummary, Verification, Verify,
};
use sifaka_core::model::{Completion, Message, Provider, Request, Response};
use sifaka_core::{
    BlobRef, Blobs, Body, Context, Cost, Error, ErrorKind, Event, EventKind, Hash, Id, Journal,
    Model, Registry, Result, Spec, Usage,
};
use sifaka_models::ReplayModel;

fn prompted(system: Option<&str>, text: impl Into<Body>) -> Prompted {
    Prompted {
        system: system.map(Arc::from),
        messages: vec![Message::user(text)],
        ..Prompted::default()
    }
}

fn generated(texts: &[&str]) -> EventKind {
    EventKind::Generated {
        model: Arc::from("openai:large"),
        completions: texts.iter().map(|text| Completion::new(*text)).collect(),
        usage: Usage {
            calls: 3,
            input_tokens: 20,
            output_tokens: 10,
            cost: Some(Cost::from_dollars(1.0)),
            ..Usage::default()
        },
        provider: Provider::default(),
        raw: Some("{}".into()),
        seconds: Nanos(1),
    }
}

fn events(kinds: Vec<EventKind>) -> Vec<Event> {
    let run_id = Id::parse("run-1").unwrap();
    kinds
        .into_iter()
        .zip(0..)
        .map(|(kind, seq)| Event { run_id: run_id.clone(), seq, time: Timestamp::UNIX_EPOCH, kind })
        .collect()
}

fn run() -> Vec<Event> {
    let called = EventKind::Called {
        component: Arc::from("judge"),
        model: Arc::from("openai:small"),
        prompt: Box::new(prompted(None, "Is it good?")),
        request: Hash::ZERO,
        response: Box::new(Response::text("Yes.")),
        seconds: Nanos(1),
    };
    events(vec![
        EventKind::Prompted(Box::new(prompted(Some("Be brief."), "Write.\nSecond line."))),
        generated(&["one"]),
        called,
        EventKind::Prompted(Box::new(prompted(Some("Be brief."), "Write.\nSecond line."))),
        generated(&["two", "three"]),
        EventKind::Prompted(Box::new(prompted(None, "Improve it."))),
        generated(&["better"]),
    ])
}

fn asked() -> Request {
    Request::text("Write.\nSecond line.").with_system("Be brief.")
}

fn texts(response: &Response) -> Vec<&str> {
    response.completions.iter().map(|completion| &*completion.text).collect()
}

#[tokio::test]
async fn the_same_prompts_get_the_same_answers_in_order() {
    let ctx = Context::new();
    let model = ReplayModel::from_events(&run()).unwrap();
    assert_eq!(model.name(), "replay:run-1");
    for expected in ["one", "two", "three", "one"] {
        let response = model.generate(&ctx, &asked()).await.unwrap();
        assert_eq!(texts(&response), [expected]);
    }
    let better = model.generate(&ctx, &Request::text("Improve it.")).await.unwrap();
    assert_eq!(texts(&better), ["better"]);
    let judged = model.generate(&ctx, &Request::text("Is it good?")).await.unwrap();
    assert_eq!(texts(&judged), ["Yes."]);
    assert_eq!(judged.provider.model.as_deref(), Some("openai:small"));
}

#[tokio::test]
async fn several_candidates_come_as_recorded() {
    let ctx = Context::new();
    let model = ReplayModel::from_events(&run()).unwrap();
    let all = model.generate(&ctx, &asked().with_candidates(3)).await.unwrap();
    assert_eq!(texts(&all), ["one", "two", "three"]);
    assert_eq!(all.usage.output_tokens, 20);
    let error = model.generate(&ctx, &asked().with_candidates(4)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("3 are on record"), "{error}");
}

#[tokio::test]
async fn a_replay_costs_nothing_and_counts_the_recorded_tokens() {
    let model = ReplayModel::from_events(&run()).unwrap();
    let response = model.generate(&Context::new(), &asked()).await.unwrap();
    let usage = response.usage;
    assert_eq!((usage.calls, usage.input_tokens, usage.output_tokens), (1, 20, 10));
    assert_eq!(usage.cost, Some(Cost::ZERO));
    assert_eq!(model.price().unwrap().of(&usage), Cost::ZERO);
    assert_eq!(response.raw, None);
}

#[tokio::test]
async fn a_prompt_that_is_not_on_record_is_an_error_with_the_first_difference() {
    let ctx = Context::new();
    let model = ReplayModel::from_events(&run()).unwrap();
    let other = Request::text("Write.\nSecond lime.").with_system("Be brief.");
    let error = model.generate(&ctx, &other).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    for part in ["event 0", "line 3", "\"Second line.\"", "\"Second lime.\""] {
        assert!(error.message().contains(part), "{part}: {error}");
    }
    assert!(!error.suggestions().is_empty());
    let unlike = Request::text("Write.\nSecond line.").with_system("Be long.");
    assert!(model.generate(&ctx, &unlike).await.is_err(), "the system prompt counts");
    let none = ReplayModel::from_events(&[]).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_prompt_that_was_stored_apart_is_found() {
    let long = "x".repeat(100_000);
    let blob = Body::Blob(BlobRef { blob: Hash::of(long.as_bytes()), bytes: 100_000 });
    let prompt = EventKind::Prompted(Box::new(prompted(None, blob)));
    let model = ReplayModel::from_events(&events(vec![prompt, generated(&["found"])])).unwrap();
    let response = model.generate(&Context::new(), &Request::text(long)).await.unwrap();
    assert_eq!(texts(&response), ["found"]);
}

/// A journal of one run that counts how often it is read.
struct OneRun {
    events: Vec<Event>,
    reads: AtomicU32,
}

fn unused<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Unsupported, "one run", "test", "not part of this test"))
}

#[async_trait]
impl Blobs for OneRun {
    async fn blob(&self, _: &Context, _: &Hash) -> Result<Option<Arc<[u8]>>> {
        unused()
    }
}

#[async_trait]
impl Journal for OneRun {
    fn name(&self) -> &str {
        "one run"
    }
    async fn open_run(&self, _: &Context, _: &Id) -> Result<Box<dyn RunLog>> {
        unused()
    }
    async fn sealed(&self, _: &Context, _: &Id) -> Result<Vec<Sealed>> {
        unused()
    }
    async fn runs(&self, _: &Context, _: &RunQuery) -> Result<Vec<RunSummary>> {
        unused()
    }
    async fn resolve(&self, _: &Context, prefix: &str) -> Result<Resolved> {
        let run_id = self.events[0].run_id.clone();
        if !run_id.as_str().starts_with(prefix) {
            return Err(Error::new(ErrorKind::NotFound, "one run", "resolve", "no such run"));
        }
        Ok(Resolved { run_id, thought_id: None })
    }
    async fn head(&self, _: &Context) -> Result<Hash> {
        unused()
    }
    async fn verify(&self, _: &Context, _: &Verify) -> Result<Verification> {
        unused()
    }
    async fn erase(&self, _: &Context, _: &Id, _: &str) -> Result<bool> {
        unused()
    }
    async fn prune(&self, _: &Context, _: &Retention) -> Result<Vec<Id>> {
        unused()
    }
    async fn events(&self, _: &Context, _: &Id) -> Result<Vec<Event>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(self.events.clone())
    }
}

#[tokio::test]
async fn by_name_the_run_is_read_once_and_when_first_asked() {
    let journal = Arc::new(OneRun { events: run(), reads: AtomicU32::new(0) });
    let registry = Registry::new();
    sifaka_models::register_replay(&registry, Arc::clone(&journal) as Arc<dyn Journal>);
    let ctx = Context::new();
    let model = registry.model(&Spec::parse("replay:run").unwrap()).unwrap();
    assert_eq!(model.name(), "replay:run");
    assert_eq!(journal.reads.load(Ordering::Relaxed), 0);
    for expected in ["one", "two"] {
        let response = model.generate(&ctx, &asked()).await.unwrap();
        assert_eq!(texts(&response), [expected]);
    }
    assert_eq!(journal.reads.load(Ordering::Relaxed), 1);

    let unknown = registry.model(&Spec::parse("replay:zzz").unwrap()).unwrap();
    let error = unknown.generate(&ctx, &asked()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    for bare in ["replay", "replay:"] {
        let error = registry.model(&Spec::parse(bare).unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.suggestions()[0].contains("replay:ID"));
    }
    let loaded = ReplayModel::load(&*journal, &ctx, "run-1").await.unwrap();
    assert_eq!(texts(&loaded.generate(&ctx, &asked()).await.unwrap()), ["one"]);
}
