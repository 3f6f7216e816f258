use sifaka_core::model::Request;
use sifaka_core::{Context, Cost, ErrorKind, Registry, Spec};

fn registry() -> Registry {
    let registry = Registry::new();
    sifaka_models::register(&registry);
    registry
}

async fn texts(spec: &str, calls: usize) -> Vec<String> {
    let model = registry().model(&Spec::parse(spec).unwrap()).unwrap();
    let ctx = Context::new();
    let mut texts = Vec::new();
    for _ in 0..calls {
        let response = model.generate(&ctx, &Request::text("Say hello.")).await.unwrap();
        texts.push(String::from(&*response.completions[0].text));
    }
    texts
}

#[tokio::test]
async fn replies_can_be_written_as_options() {
    assert_eq!(texts("mock:reply=Hello, world", 2).await, ["Hello, world", "Hello, world"]);
    assert_eq!(texts("mock:replies=a|b, c|d", 4).await, ["a", "b, c", "d", "d"]);
    assert!(texts("mock", 1).await[0].contains("scripted answer"));
}

#[tokio::test]
async fn a_table_of_a_configuration_file_says_the_same() {
    let options = serde_json::json!({"replies": ["a|b", "c"], "price_in": 1, "price_out": 2.5});
    let spec = Spec::from_parts("mock", options.as_object().unwrap().clone());
    let model = registry().model(&spec).unwrap();
    let response = model.generate(&Context::new(), &Request::text("x")).await.unwrap();
    assert_eq!(&*response.completions[0].text, "a|b");
    assert_eq!(model.price().unwrap().output_per_million, Cost::from_dollars(2.5));
}

#[tokio::test]
async fn a_script_is_named_by_its_path_and_takes_options() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.toml");
    std::fs::write(&path, "[[reply]]\ntext = \"from the file\"\n").unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(texts(&format!("mock:{path}"), 1).await, ["from the file"]);
    let spec = Spec::parse(&format!("mock:{path},context_window=1,exhausted=error")).unwrap();
    let model = registry().model(&spec).unwrap();
    assert_eq!(model.capabilities().context_window, Some(1));
    let error = model.generate(&Context::new(), &Request::text("too long")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ContextTooLong);
}

#[tokio::test(start_paused = true)]
async fn a_delay_can_be_set() {
    let model = registry().model(&Spec::parse("mock:delay=2.5,reply=x").unwrap()).unwrap();
    let ctx = Context::new();
    let before = ctx.monotonic();
    model.generate(&ctx, &Request::text("x")).await.unwrap();
    assert_eq!((ctx.monotonic() - before).as_secs_f64(), 2.5);
}

#[test]
fn mistakes_are_reported_together_and_with_suggestions() {
    let error = |spec: &str| registry().model(&Spec::parse(spec).unwrap()).unwrap_err();
    let several = error("mock:repply=x,delay=-1,exhausted=never");
    assert_eq!(several.all_problems().len(), 3, "{several}");
    assert_eq!(several.component(), "model mock");
    assert!(several.message().contains("did you mean reply"), "{several}");
    assert!(error("mock:reply=a,replies=b").message().contains("exclude"));
    assert!(error("mock:price_in=1").message().contains("price_out"));
    assert!(error("mock:price_in=1,price_out=-1").message().contains("negative"));
    assert!(error("mock:exhausted=error").message().contains("no sequence"));
    assert!(error("mok").suggestions()[0].contains("mock"));
    let listed = registry().models.list();
    assert_eq!(listed[0].name, "mock");
    assert!(!listed[0].summary.is_empty() && listed[0].example.starts_with("mock"));
}
