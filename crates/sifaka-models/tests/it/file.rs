use std::path::PathBuf;
use std::time::Duration;

use sifaka_core::model::{FinishReason, Request};
use sifaka_core::{Context, Error, ErrorKind, Model};
use sifaka_models::ScriptedModel;

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn error(&self, name: &str, text: &str) -> Error {
        ScriptedModel::from_file(&self.write(name, text)).unwrap_err()
    }
}

#[tokio::test(start_paused = true)]
async fn a_toml_script_has_rules_sequence_delays_and_errors() {
    let files = Files::new();
    let path = files.write(
        "script.toml",
        r#"
        exhausted = "error"
        price_in = 1.0
        price_out = 2.0
        context_window = 900

        [[reply]]
        when = "/(?i)weather/"
        error = "rate_limited"
        message = "slow down"
        retry_after = 1.5
        times = 1

        [[reply]]
        when = "weather"
        text = "It rains."

        [[reply]]
        text = "First."
        delay = 0.2
        tokens = 7
        reasoning = "hm"
        finish_reason = "length"

        [[reply]]
        tool_calls = [{ name = "add", arguments = { a = 1 } }]
        usage = { input_tokens = 10, output_tokens = 5 }
        "#,
    );
    let model = ScriptedModel::from_file(&path).unwrap();
    let ctx = Context::new();
    let weather = Request::text("The Weather, the weather");
    let error = model.generate(&ctx, &weather).await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::RateLimited, "slow down"));
    assert_eq!(error.retry_after(), Some(Duration::from_millis(1500)));
    let response = model.generate(&ctx, &weather).await.unwrap();
    assert_eq!(&*response.completions[0].text, "It rains.");

    let before = ctx.monotonic();
    let other = Request::text("x");
    let response = model.generate(&ctx, &other).await.unwrap();
    assert_eq!(ctx.monotonic() - before, Duration::from_millis(200));
    assert_eq!(response.completions[0].finish_reason, FinishReason::Length);
    assert_eq!(response.completions[0].reasoning.as_deref(), Some("hm"));
    assert_eq!(response.usage.output_tokens, 7);
    assert!(response.usage.cost.is_some());
    let response = model.generate(&ctx, &other).await.unwrap();
    let call = &response.completions[0].tool_calls[0];
    assert_eq!((&*call.id, &*call.name, &call.arguments["a"]), ("call-1", "add", &1.into()));
    assert_eq!((response.usage.input_tokens, response.usage.estimated), (10, false));
    assert_eq!(model.generate(&ctx, &other).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(model.capabilities().context_window, Some(900));
    assert!(model.name().starts_with("mock:") && model.name().ends_with("script.toml"));
}

#[tokio::test]
async fn json_and_json_lines_have_the_same_fields() {
    let files = Files::new();
    let list = r#"[{"text": "a"}, {"text": "b"}]"#;
    let object = r#"{"reply": [{"text": "a"}, {"text": "b"}], "exhausted": "repeat"}"#;
    let lines = "{\"text\": \"a\"}\n\n{\"text\": \"b\"}\n";
    for (name, text) in [("l.json", list), ("o.json", object), ("s.jsonl", lines)] {
        let model = ScriptedModel::from_file(&files.write(name, text)).unwrap();
        for expected in ["a", "b", "b"] {
            let response = model.generate(&Context::new(), &Request::text("x")).await.unwrap();
            assert_eq!(&*response.completions[0].text, expected, "{name}");
        }
    }
}

#[test]
fn mistakes_name_the_file_and_the_place() {
    let files = Files::new();
    let error = files.error("s.toml", "[[reply]]\ntext = \"a\"\ndelai = 3\n");
    assert!(error.message().contains("line 3") && error.message().contains("delai"), "{error}");
    let error = files.error("s.jsonl", "{\"text\": \"a\"}\n{\"text\": 3}\n");
    assert!(error.message().contains("line 2"), "{error}");
    let error = files.error("s.toml", "[[reply]]\nerror = \"rate_limit\"\n");
    assert!(error.message().contains("rate_limited"), "{error}");
    let error = files.error("s.toml", "[[reply]]\ntext = \"a\"\ndelay = -1\n");
    assert!(error.message().contains("-1"), "{error}");
    let error = files.error("s.txt", "hello");
    assert!(error.suggestions()[0].contains(".toml"), "{error:?}");
    let error = files.error("s.toml", "");
    assert!(error.message().contains("no replies"), "{error}");
    let missing = ScriptedModel::from_file(&files.0.path().join("missing.toml")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Configuration);
    assert!(missing.message().contains("missing.toml"), "{missing}");
}

#[test]
fn every_senseless_reply_is_reported_at_once() {
    let files = Files::new();
    let error = files.error(
        "s.toml",
        "[[reply]]\nwhen = \"x\"\n[[reply]]\ntext = \"a\"\nretry_after = 1\n[[reply]]\n\
         when = \"/(/\"\ntext = \"a\"\n[[reply]]\ntext = \"a\"\ntokens = 1\nusage = {}\n",
    );
    assert_eq!(error.all_problems().len(), 4, "{error}");
    assert!(error.all_problems()[2].place.ends_with("reply 3"), "{error}");
}
