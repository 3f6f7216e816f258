//! Models and retrievers behind guards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use sifaka_core::model::{Capabilities, Delta, DeltaStream, Price, Request, Response, TokenCount};
use sifaka_core::{
    Context, Cost, Document, ErrorKind, Filter, Model, Result, Retriever, model_fn, retriever_fn,
};
use sifaka_resilience::{FallbackModel, GuardedModel, GuardedRetriever, Resilience};

use crate::support::{down, error, listening, only_retry, plain_retry, secs, timed};

/// Streams a few words, with something odd at the place told.
struct Streamer {
    name: &'static str,
    /// How many streams fail before their first delta.
    refuse: AtomicU32,
    then: Then,
}

#[derive(Clone, Copy, PartialEq)]
enum Then {
    Finish,
    Break,
    Hang,
    CutOff,
}

fn streamer(name: &'static str, refuse: u32, then: Then) -> Arc<Streamer> {
    Arc::new(Streamer { name, refuse: AtomicU32::new(refuse), then })
}

fn text(text: &str) -> Result<Delta> {
    Ok(Delta::Text { index: 0, text: text.into() })
}

#[async_trait]
impl Model for Streamer {
    fn name(&self) -> &str {
        self.name
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { streaming: true, ..Capabilities::default() }
    }
    async fn generate(&self, _: &Context, _: &Request) -> Result<Response> {
        Ok(Response::text("one two"))
    }
    fn stream<'a>(&'a self, _: &'a Context, _: &'a Request) -> DeltaStream<'a> {
        let left = self.refuse.load(Ordering::Relaxed);
        if left > 0 {
            self.refuse.store(left - 1, Ordering::Relaxed);
            return Box::pin(stream::iter([Err(down())]));
        }
        let words = stream::iter([text("one "), text("two")]);
        match self.then {
            Then::Finish => {
                let done = Delta::Done(Box::new(Response::text("one two")));
                Box::pin(words.chain(stream::iter([Ok(done)])))
            }
            Then::Break => Box::pin(words.chain(stream::iter([Err(down())]))),
            Then::Hang => Box::pin(words.chain(stream::pending())),
            Then::CutOff => Box::pin(words),
        }
    }
}

async fn collect(model: &dyn Model, ctx: &Context) -> Vec<Result<Delta>> {
    model.stream(ctx, &Request::text("write")).collect().await
}

fn kinds(items: &[Result<Delta>]) -> Vec<String> {
    let name = |item: &Result<Delta>| match item {
        Ok(Delta::Text { text, .. }) => text.to_string(),
        Ok(Delta::Done(_)) => "done".to_owned(),
        Ok(_) => "other".to_owned(),
        Err(error) => error.kind().to_string(),
    };
    items.iter().map(name).collect()
}

#[tokio::test(start_paused = true)]
async fn generating_is_tried_again_as_a_whole() {
    let (ctx, ear) = listening();
    let calls = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&calls);
    let model = model_fn("mock", move |_| {
        let call = seen.fetch_add(1, Ordering::Relaxed);
        async move { if call < 2 { Err(down()) } else { Ok("written") } }
    });
    let model = GuardedModel::new(Arc::new(model), &only_retry(plain_retry()));
    let response = ctx.generate(&model, &Request::text("write")).await.unwrap();
    assert_eq!(&*response.completions[0].text, "written");
    assert_eq!((model.name(), calls.load(Ordering::Relaxed)), ("mock", 3));
    assert_eq!(ear.delays(), [1_000, 2_000]);
    assert_eq!(ear.all()[0].0, "mock");
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_tried_again_before_its_first_delta_only() {
    let (ctx, ear) = listening();
    let options = Resilience::default().with_retry(plain_retry());
    let model = GuardedModel::new(streamer("mock", 2, Then::Finish), &options);
    assert_eq!(kinds(&collect(&model, &ctx).await), ["one ", "two", "done"]);
    assert_eq!(ear.names(), ["retrying", "retrying"]);

    let model = GuardedModel::new(streamer("mock", 0, Then::Break), &options);
    for _ in 0..5 {
        assert_eq!(kinds(&collect(&model, &ctx).await), ["one ", "two", "unavailable"]);
    }
    // Broken streams count against the breaker, though they are not tried again.
    assert_eq!(ear.names()[2..], ["opened"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_pauses_too_long_times_out() {
    let (ctx, ear) = listening();
    let model = GuardedModel::new(streamer("mock", 0, Then::Hang), &Resilience::default());
    let (items, took) = timed(&ctx, collect(&model, &ctx)).await;
    assert_eq!(kinds(&items), ["one ", "two", "timeout"]);
    assert_eq!((took, ear.names()), (secs(30), vec!["timed-out"]));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_without_its_end_is_an_error() {
    let (ctx, _) = listening();
    let model = GuardedModel::new(streamer("mock", 0, Then::CutOff), &Resilience::none());
    let items = collect(&model, &ctx).await;
    assert_eq!(kinds(&items), ["one ", "two", "unavailable"]);
    assert!(items[2].as_ref().unwrap_err().message().contains("cut off"));
}

#[tokio::test(start_paused = true)]
async fn a_stream_may_take_longer_than_a_call() {
    let (ctx, _) = listening();
    let slow = stream::unfold(0, |n| async move {
        tokio::time::sleep(secs(20)).await;
        let done = || Ok(Delta::Done(Box::new(Response::text("xxxxx"))));
        (n < 6).then(|| (if n < 5 { text("x") } else { done() }, n + 1))
    });
    struct Slow<S>(std::sync::Mutex<Option<S>>);
    #[async_trait]
    impl<S: futures_util::Stream<Item = Result<Delta>> + Send + 'static> Model for Slow<S> {
        fn name(&self) -> &str {
            "slow"
        }
        fn capabilities(&self) -> Capabilities {
            Capabilities::default()
        }
        async fn generate(&self, _: &Context, _: &Request) -> Result<Response> {
            Err(error(ErrorKind::Unsupported))
        }
        fn stream<'a>(&'a self, _: &'a Context, _: &'a Request) -> DeltaStream<'a> {
            Box::pin(self.0.lock().unwrap().take().unwrap())
        }
    }
    let model = Arc::new(Slow(std::sync::Mutex::new(Some(slow))));
    let model = GuardedModel::new(model, &Resilience::default());
    let (items, took) = timed(&ctx, collect(&model, &ctx)).await;
    assert_eq!(kinds(&items), ["x", "x", "x", "x", "x", "done"]);
    assert_eq!(took, secs(120));
}

#[tokio::test(start_paused = true)]
async fn the_next_model_answers_and_says_so() {
    let (ctx, ear) = listening();
    let first = GuardedModel::new(streamer("first", 99, Then::Finish), &Resilience::none());
    let models: Vec<Arc<dyn Model>> = vec![Arc::new(first), streamer("second", 0, Then::Finish)];
    let model = FallbackModel::new(models).unwrap();
    assert_eq!(model.name(), "first|second");
    let items = collect(&model, &ctx).await;
    assert_eq!(kinds(&items), ["one ", "two", "done"]);
    let Ok(Delta::Done(response)) = &items[2] else { panic!("{items:?}") };
    assert_eq!(response.provider.model.as_deref(), Some("second"));
    assert_eq!(ear.names(), ["fell-back"]);

    let broken = model_fn("broken", |_| async { Err::<&str, _>(error(ErrorKind::Refused)) });
    let models: Vec<Arc<dyn Model>> = vec![Arc::new(broken), streamer("second", 0, Then::Finish)];
    let model = FallbackModel::new(models).unwrap();
    let response = model.generate(&ctx, &Request::text("write")).await.unwrap();
    assert_eq!(response.provider.model.as_deref(), Some("second"));
    assert_eq!(FallbackModel::new(Vec::new()).unwrap_err().kind(), ErrorKind::Configuration);
}

struct Priced(u64, Option<f64>);

#[async_trait]
impl Model for Priced {
    fn name(&self) -> &str {
        "priced"
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            context_window: Some(self.0),
            tools: self.0 > 100,
            seed: true,
            ..Capabilities::default()
        }
    }
    async fn generate(&self, _: &Context, _: &Request) -> Result<Response> {
        Ok(Response::text(""))
    }
    fn count_tokens(&self, _: &str) -> TokenCount {
        TokenCount::exact(self.0)
    }
    fn price(&self) -> Option<Price> {
        let dollars = Cost::from_dollars(self.1?);
        Some(Price {
            input_per_million: dollars,
            output_per_million: dollars,
            cached_per_million: None,
        })
    }
}

#[test]
fn together_they_promise_only_what_all_can_keep() {
    let of = |models: Vec<Arc<dyn Model>>| FallbackModel::new(models).unwrap();
    let model = of(vec![Arc::new(Priced(200, Some(1.0))), Arc::new(Priced(50, Some(3.0)))]);
    let can = model.capabilities();
    assert_eq!((can.context_window, can.tools, can.seed), (Some(50), false, true));
    assert_eq!(model.count_tokens("x"), TokenCount { tokens: 200, exact: false });
    assert_eq!(model.price().unwrap().input_per_million, Cost::from_dollars(3.0));
    let unknown = of(vec![Arc::new(Priced(1, Some(1.0))), Arc::new(Priced(1, None))]);
    assert_eq!(unknown.price(), None);
}

#[tokio::test(start_paused = true)]
async fn a_retriever_is_tried_again() {
    let (ctx, ear) = listening();
    let calls = AtomicU32::new(0);
    let retriever = retriever_fn("shelf", move |query: String| {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        async move { if call == 0 { Err(down()) } else { Ok(vec![Document::new(query)]) } }
    });
    let retriever = GuardedRetriever::new(Arc::new(retriever), &only_retry(plain_retry()));
    let found = retriever.retrieve(&ctx, "lemurs", 3, &Filter::All).await.unwrap();
    assert_eq!((retriever.name(), found.len()), ("shelf", 1));
    assert_eq!(ear.names(), ["retrying"]);
    assert_eq!(retriever.guard().component(), "shelf");
}
