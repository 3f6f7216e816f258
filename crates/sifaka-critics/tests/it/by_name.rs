use std::sync::Arc;

use serde_json::json;
use sifaka_core::{Context, Critic, Error, ErrorKind, Registry, Spec};

use crate::ask;

fn registry() -> Registry {
    let registry = Registry::new();
    sifaka_critics::register(&registry);
    registry
}

fn critic(spec: &str) -> Arc<dyn Critic> {
    registry().critic(&Spec::parse(spec).unwrap()).unwrap()
}

fn error(spec: &str) -> Error {
    registry().critic(&Spec::parse(spec).unwrap()).unwrap_err()
}

#[tokio::test]
async fn what_it_says_can_be_written_as_options() {
    let ctx = Context::new();
    let spec = "scripted:issue=too curt, really,suggestion=greet,confidence=0.5,name=tone,\
                feedback=Hm,proposed_text=Hello!";
    let feedback = ask(&critic(spec), &ctx).await.unwrap();
    assert_eq!(feedback.issues, ["too curt, really"]);
    assert_eq!(feedback.suggestions, ["greet"]);
    assert_eq!((feedback.confidence, &*feedback.critic_name), (Some(0.5), "tone"));
    assert_eq!(feedback.feedback.as_deref(), Some("Hm"));
    assert_eq!(feedback.proposed_text.as_deref(), Some("Hello!"));
    assert_eq!(ask(&critic("scripted:issues=a|b"), &ctx).await.unwrap().issues, ["a", "b"]);
    let table = json!({"issues": ["a, b", "c"]});
    let spec = Spec::from_parts("scripted", table.as_object().unwrap().clone());
    let feedback = ask(&registry().critic(&spec).unwrap(), &ctx).await.unwrap();
    assert_eq!(feedback.issues, ["a, b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn errors_and_delays_on_demand() {
    let ctx = Context::new();
    let critic = critic("scripted:error=overloaded,retry_after=1.5,delay=3");
    let before = ctx.monotonic();
    let error = ask(&critic, &ctx).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overloaded);
    assert_eq!(error.retry_after().unwrap().as_secs_f64(), 1.5);
    assert_eq!((ctx.monotonic() - before).as_secs(), 3);
}

#[tokio::test]
async fn a_script_is_named_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.toml");
    std::fs::write(&path, "[[feedback]]\nissues = [\"from the file\"]\n").unwrap();
    let path = path.to_str().unwrap();
    let ctx = Context::new();
    for spec in [format!("scripted:{path},name=x"), format!("scripted:script={path},name=x")] {
        let feedback = ask(&critic(&spec), &ctx).await.unwrap();
        assert_eq!((&*feedback.critic_name, &*feedback.issues[0]), ("x", "from the file"));
    }
    assert!(error(&format!("scripted:{path},issue=x")).message().contains("something else"));
}

#[test]
fn mistakes_are_reported_together_and_with_suggestions() {
    assert!(error("scripted").suggestions()[0].contains("scripted:issue="));
    let several = error("scripted:isue=x,delay=-1,error=timeot,exhausted=x");
    assert_eq!(several.all_problems().len(), 4, "{several}");
    assert_eq!(several.component(), "critic scripted");
    assert!(several.message().contains("did you mean timeout"), "{several}");
    assert!(error("scripted:issue=x,confidence=3").message().contains("between 0 and 1"));
    assert!(error("scripted:issue=x,error=timeout").message().contains("exclude"));
    let listed = registry().critics.list();
    assert_eq!(listed.len(), 1);
    critic(&listed[0].example);
}
