use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sifaka_core::model::{
    Capabilities, FinishReason, Message, Part, Price, Request, ResponseFormat, TokenLogprob,
    ToolCall,
};
use sifaka_core::{Constraint, Context, Cost, ErrorKind, Model, Usage};
use sifaka_models::script::{Exhausted, Fault};
use sifaka_models::{Reply, ScriptedModel};

async fn ask(model: &ScriptedModel, prompt: &str) -> String {
    let response = model.generate(&Context::new(), &Request::text(prompt)).await.unwrap();
    String::from(&*response.completions[0].text)
}

async fn fail(model: &ScriptedModel, request: &Request) -> sifaka_core::Error {
    model.generate(&Context::new(), request).await.unwrap_err()
}

#[tokio::test]
async fn replies_come_in_sequence_and_the_last_one_stays() {
    let model = ScriptedModel::new([Reply::text("a").times(2), Reply::text("b")]);
    let mut texts = Vec::new();
    for _ in 0..5 {
        texts.push(ask(&model, "x").await);
    }
    assert_eq!(texts, ["a", "a", "b", "b", "b"]);
}

#[tokio::test]
async fn an_exhausted_script_can_be_an_error() {
    let model = ScriptedModel::new(["a"]).when_exhausted(Exhausted::Error);
    assert_eq!(ask(&model, "x").await, "a");
    let error = fail(&model, &Request::text("What now?")).await;
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("call 2") && error.message().contains("What now?"), "{error}");
    assert!(!error.suggestions().is_empty());
    let nothing = ScriptedModel::new(Vec::<Reply>::new());
    assert_eq!(fail(&nothing, &Request::text("x")).await.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn rules_come_first_and_may_be_spent() {
    let model = ScriptedModel::new(["rest"])
        .when_contains("weather", Reply::text("rain").times(1))
        .when_contains("weather", "sun")
        .when_matches(r"^\d+ \+ \d+$", "a sum")
        .unwrap();
    assert_eq!(ask(&model, "the weather?").await, "rain");
    assert_eq!(ask(&model, "the weather?").await, "sun");
    assert_eq!(ask(&model, "1 + 2").await, "a sum");
    assert_eq!(ask(&model, "anything").await, "rest");
    let error = ScriptedModel::new(["x"]).when_matches("(", "y").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.message().contains("unclosed group"), "{error}");
}

#[tokio::test]
async fn errors_have_the_kind_and_the_wait_the_script_gives() {
    let fault = Fault::new(ErrorKind::RateLimited).with_retry_after(Duration::from_millis(1500));
    let model = ScriptedModel::new([Reply::error(fault), Reply::text("ok")]);
    let error = fail(&model, &Request::text("x")).await;
    assert_eq!(error.kind(), ErrorKind::RateLimited);
    assert_eq!(error.retry_after(), Some(Duration::from_millis(1500)));
    assert_eq!(error.component(), "mock");
    assert_eq!(ask(&model, "x").await, "ok");
    let said = Fault::new(ErrorKind::Refused).with_message("no");
    let model = ScriptedModel::new([said]);
    assert_eq!(fail(&model, &Request::text("x")).await.message(), "no");
}

#[tokio::test(start_paused = true)]
async fn delays_are_waited_on_the_contexts_clock_and_can_be_cancelled() {
    let ctx = Context::new();
    let model = ScriptedModel::new([
        Reply::text("own").after(Duration::from_secs(7)),
        Reply::text("the model's"),
    ])
    .with_delay(Duration::from_secs(60));
    let before = ctx.monotonic();
    model.generate(&ctx, &Request::text("x")).await.unwrap();
    assert_eq!(ctx.monotonic() - before, Duration::from_secs(7));
    model.generate(&ctx, &Request::text("x")).await.unwrap();
    assert_eq!(ctx.monotonic() - before, Duration::from_secs(67));

    let late = ctx.with_timeout(Duration::from_secs(1));
    let error = model.generate(&late, &Request::text("x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
    let child = ctx.with_child_cancellation();
    child.cancellation().cancel();
    let error = model.generate(&child, &Request::text("x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(model.call_count(), 3, "a cancelled call takes no reply");
}

#[tokio::test]
async fn candidates_take_successive_replies() {
    let model = ScriptedModel::new(["a", "b", "c", "d"]);
    let ctx = Context::new();
    let request = Request::text("x").with_candidates(3);
    let response = model.generate(&ctx, &request).await.unwrap();
    let texts: Vec<&str> = response.completions.iter().map(|c| &*c.text).collect();
    assert_eq!(texts, ["a", "b", "c"]);
    assert_eq!(response.usage.calls, 1);
    assert_eq!(ask(&model, "x").await, "d");
    assert!(model.capabilities().max_candidates >= 1000);
}

#[tokio::test]
async fn tools_reasoning_reasons_and_logprobs_are_given() {
    let call = ToolCall { id: "1".into(), name: "add".into(), arguments: json!({"a": 1}) };
    let logprob = TokenLogprob { token: "x".into(), logprob: -0.5, top: Vec::new() };
    let model = ScriptedModel::new([
        Reply::text("").with_tool_call(call.clone()).with_reasoning("hm"),
        Reply::text("x").with_logprobs(vec![logprob.clone()]),
        Reply::text("cut").with_finish_reason(FinishReason::Length),
    ]);
    let ctx = Context::new();
    let mut request = Request::text("x");
    let first = model.generate(&ctx, &request).await.unwrap().completions.remove(0);
    assert_eq!(first.tool_calls, [call]);
    assert_eq!(first.finish_reason, FinishReason::ToolCalls);
    assert_eq!(first.reasoning.as_deref(), Some("hm"));
    request.logprobs = Some(0);
    let second = model.generate(&ctx, &request).await.unwrap().completions.remove(0);
    assert_eq!(second.logprobs, Some(vec![logprob]));
    request.logprobs = None;
    let third = model.generate(&ctx, &request).await.unwrap().completions.remove(0);
    assert_eq!(third.finish_reason, FinishReason::Length);
}

#[tokio::test]
async fn usage_is_estimated_unless_given_and_costs_what_the_price_says() {
    let price = Price {
        input_per_million: Cost::from_dollars(1.0),
        output_per_million: Cost::from_dollars(2.0),
        cached_per_million: None,
    };
    let given = Usage { input_tokens: 1_000_000, output_tokens: 500_000, ..Usage::default() };
    let model = ScriptedModel::new([
        Reply::text("123456"),
        Reply::text("x").with_tokens(40),
        Reply::text("x").with_usage(given),
    ])
    .with_price(price);
    let ctx = Context::new();
    let request = Request::text("123").with_system("456789");
    let usage = model.generate(&ctx, &request).await.unwrap().usage;
    assert_eq!((usage.calls, usage.input_tokens, usage.output_tokens), (1, 3, 2));
    assert!(usage.estimated);
    let usage = model.generate(&ctx, &request).await.unwrap().usage;
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.estimated), (3, 40, true));
    let usage = model.generate(&ctx, &request).await.unwrap().usage;
    assert_eq!(usage.cost, Some(Cost::from_dollars(2.0)));
    assert!(!usage.estimated);
    assert_eq!(model.price(), Some(price));
}

#[tokio::test]
async fn stop_texts_and_the_token_limit_cut() {
    let model = ScriptedModel::new(["ein schöner Tag. END und mehr"]);
    let ctx = Context::new();
    let mut request = Request::text("x");
    request.stop = vec!["END".into(), "mehr".into()];
    let completion = model.generate(&ctx, &request).await.unwrap().completions.remove(0);
    assert_eq!(
        (&*completion.text, &completion.finish_reason),
        ("ein schöner Tag. ", &FinishReason::Stop)
    );
    // Three bytes a token; the ö is not cut in two.
    request.sampling.max_tokens = Some(3);
    let completion = model.generate(&ctx, &request).await.unwrap().completions.remove(0);
    assert_eq!((&*completion.text, &completion.finish_reason), ("ein schö", &FinishReason::Length));
}

#[tokio::test]
async fn what_it_cannot_do_is_an_error_and_not_ignored() {
    let model = ScriptedModel::new(["x"]).with_context_window(10);
    let plain = Request::text("x");
    let image = Part::Image { media_type: "image/png".into(), data: "…".into() };
    let constraints: Arc<[_]> = Arc::from([("a".into(), Constraint::Quoted)]);
    for request in [
        Request { logprobs: Some(1), ..plain.clone() },
        Request { response_format: Some(ResponseFormat::Json), ..plain.clone() },
        Request { constraints, ..plain.clone() },
        Request::new(Message { parts: vec![image], ..plain.messages[0].clone() }),
    ] {
        assert_eq!(fail(&model, &request).await.kind(), ErrorKind::Unsupported, "{request:?}");
    }
    let long = Request::text("x".repeat(31));
    let error = fail(&model, &long).await;
    assert_eq!(error.kind(), ErrorKind::ContextTooLong);
    assert!(error.message().contains("11 tokens"), "{error}");
    let able = ScriptedModel::new(["{}"])
        .with_capabilities(Capabilities { json_schema: true, ..Capabilities::default() });
    let request = Request { response_format: Some(ResponseFormat::Json), ..plain };
    assert!(able.generate(&Context::new(), &request).await.is_ok());
    assert!(able.capabilities().json_schema);
}

#[tokio::test]
async fn calls_are_on_record_up_to_a_bound() {
    let model = ScriptedModel::new(["x"]).keep_calls(2);
    for prompt in ["1", "2", "3"] {
        ask(&model, prompt).await;
    }
    let kept: Vec<String> = model.calls().iter().map(|call| call.last_text().into()).collect();
    assert_eq!(kept, ["2", "3"]);
    assert_eq!(model.call_count(), 3);
}

#[tokio::test]
async fn the_built_in_model_is_a_function_of_the_prompt() {
    let (a, b) = (ScriptedModel::built_in(), ScriptedModel::built_in());
    let first = ask(&a, "Say hello to Ada.").await;
    assert_eq!(first, ask(&b, "Say hello to Ada.").await);
    assert!(first.contains("scripted") && first.contains("hello"), "{first}");
}

/// The whole way: the chain's own improvement prompt, and a check of 20 to 60 words.
#[tokio::test]
async fn the_built_in_model_mends_a_length_after_one_repair() {
    use sifaka_core::prompt::{Prompts, Task};
    use sifaka_core::{Thought, ValidationResult};

    let ctx = Context::new();
    let model = ScriptedModel::built_in();
    let first = ask(&model, "Explain lemurs.").await;
    let words = first.split_whitespace().count();
    assert!(words < 20, "{first}");
    let old =
        Thought::new(&ctx, "Explain lemurs.").with_text(first.as_str()).add_validation_result(
            "length",
            ValidationResult::failed(format!("{words} words, at least 20 asked"))
                .with_suggestion("write about 12 more words"),
        );
    let new = old.next_iteration(&ctx);
    let count = |text: &str| text.len() as u64;
    let task = Task { thought: &new, previous: Some(&old), window: None, count: &count };
    let prompt = Prompts::built_in().unwrap().assemble(&task).unwrap().text;
    let second = ask(&model, &prompt).await;
    assert!((20..=60).contains(&second.split_whitespace().count()), "{second}");
    assert!(second.contains("Explain lemurs"), "{second}");
}
