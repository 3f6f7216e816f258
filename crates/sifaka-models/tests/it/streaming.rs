use std::time::Duration;

use futures_util::StreamExt;
use sifaka_core::model::{Delta, Request};
use sifaka_core::{Context, ErrorKind, Model};
use sifaka_models::{Reply, ScriptedModel};

#[tokio::test(start_paused = true)]
async fn a_stream_gives_words_and_then_the_whole() {
    let ctx = Context::new();
    let reply = Reply::text("one two\nthree").with_reasoning("hm so");
    let model = ScriptedModel::new([reply]).with_chunk_delay(Duration::from_secs(1));
    let before = ctx.monotonic();
    let request = Request::text("x").with_candidates(2);
    let deltas: Vec<Delta> =
        model.stream(&ctx, &request).map(|delta| delta.unwrap()).collect().await;
    assert_eq!(ctx.monotonic() - before, Duration::from_secs(10));
    let (mut texts, mut thoughts) = ([String::new(), String::new()], String::new());
    for delta in &deltas {
        match delta {
            Delta::Text { index, text } => texts[*index as usize].push_str(text),
            Delta::Reasoning { index: 0, text } => thoughts.push_str(text),
            _ => {}
        }
    }
    assert_eq!(texts, ["one two\nthree", "one two\nthree"]);
    assert_eq!(thoughts, "hm so");
    let Some(Delta::Done(response)) = deltas.last() else { panic!("no end: {deltas:?}") };
    assert_eq!(&*response.completions[1].text, "one two\nthree");
    assert_eq!(deltas.len(), 11);
}

#[tokio::test]
async fn a_broken_stream_gives_some_text_and_then_the_error() {
    let ctx = Context::new();
    let model = ScriptedModel::new([Reply::text("some text").then_error(ErrorKind::Unavailable)]);
    let request = Request::text("x");
    let items: Vec<_> = model.stream(&ctx, &request).collect().await;
    assert_eq!(items.len(), 3);
    assert_eq!(items[2].as_ref().unwrap_err().kind(), ErrorKind::Unavailable);
    let whole = model.generate(&ctx, &request).await.unwrap_err();
    assert_eq!(whole.kind(), ErrorKind::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_stream_ends_between_pieces() {
    let ctx = Context::new();
    let model = ScriptedModel::new(["a b c d"]).with_chunk_delay(Duration::from_secs(1));
    let request = Request::text("x");
    let mut stream = model.stream(&ctx, &request);
    assert!(stream.next().await.unwrap().is_ok());
    ctx.cancellation().cancel();
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(stream.next().await.is_none());
}
