use std::path::PathBuf;
use std::time::Duration;

use sifaka_core::{Context, Critic, CriticFeedback, ErrorKind};
use sifaka_critics::{Advice, ScriptedCritic};
use sifaka_models::script::{Exhausted, Fault};

use crate::ask;

#[tokio::test]
async fn feedback_comes_in_sequence_under_the_critics_name() {
    let ctx = Context::new();
    let say = |issue: &str| CriticFeedback::new("somebody").with_issue(issue);
    let critic = ScriptedCritic::new([Advice::from(say("a")).times(2), say("b").into()]);
    let critic = critic.named("tone");
    for expected in ["a", "a", "b", "b"] {
        let feedback = ask(&critic, &ctx).await.unwrap();
        assert_eq!((&*feedback.critic_name, &*feedback.issues[0]), ("tone", expected));
    }
    assert_eq!(critic.call_count(), 4);
    assert_eq!(critic.name(), "tone");
    assert_eq!(ScriptedCritic::issue("x").name(), "scripted");
}

#[tokio::test]
async fn an_error_is_an_error_and_never_feedback() {
    let ctx = Context::new();
    let fault = Fault::new(ErrorKind::RateLimited).with_retry_after(Duration::from_secs(3));
    let critic = ScriptedCritic::new([
        Advice::error(fault),
        CriticFeedback::default().with_issue("x").into(),
    ])
    .when_exhausted(Exhausted::Error);
    let error = ask(&critic, &ctx).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RateLimited);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3)));
    assert_eq!((error.component(), error.operation()), ("scripted", "critique"));
    assert!(ask(&critic, &ctx).await.is_ok());
    let error = ask(&critic, &ctx).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("call 3"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn delays_are_waited_and_can_be_cancelled() {
    let ctx = Context::new();
    let say = || Advice::from(CriticFeedback::default().with_issue("x"));
    let critic = ScriptedCritic::new([say().after(Duration::from_secs(2)), say()])
        .with_delay(Duration::from_secs(5));
    let before = ctx.monotonic();
    ask(&critic, &ctx).await.unwrap();
    assert_eq!(ctx.monotonic() - before, Duration::from_secs(2));
    ask(&critic, &ctx).await.unwrap();
    assert_eq!(ctx.monotonic() - before, Duration::from_secs(7));
    let late = ctx.with_timeout(Duration::from_secs(1));
    let error = ask(&critic, &late).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
}

fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[tokio::test]
async fn a_script_can_stand_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let toml = r#"
        name = "tone"
        exhausted = "error"

        [[feedback]]
        issues = ["too curt", "too loud"]
        suggestions = ["greet the reader"]
        confidence = 0.8
        feedback = "Hm."
        proposed_text = "Hello!"
        evidence = ["line 1"]

        [[feedback]]
        error = "timeout"
        message = "the judge sleeps"
        retry_after = 2
        delay = 0
    "#;
    let critic = ScriptedCritic::from_file(&file(&folder, "s.toml", toml)).unwrap();
    let ctx = Context::new();
    let feedback = ask(&critic, &ctx).await.unwrap();
    assert_eq!(feedback.issues, ["too curt", "too loud"]);
    assert_eq!(feedback.suggestions, ["greet the reader"]);
    assert_eq!(feedback.confidence, Some(0.8));
    assert_eq!(feedback.feedback.as_deref(), Some("Hm."));
    assert_eq!(feedback.proposed_text.as_deref(), Some("Hello!"));
    assert_eq!(feedback.evidence, ["line 1"]);
    assert_eq!(&*feedback.critic_name, "tone");
    let error = ask(&critic, &ctx).await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Timeout, "the judge sleeps"));
    assert_eq!(ask(&critic, &ctx).await.unwrap_err().kind(), ErrorKind::NotFound);

    let lines = file(&folder, "s.jsonl", "{\"issues\": [\"a\"]}\n{\"issues\": [\"b\"]}\n");
    let critic = ScriptedCritic::from_file(&lines).unwrap();
    for expected in ["a", "b"] {
        assert_eq!(ask(&critic, &ctx).await.unwrap().issues, [expected]);
    }
}

#[test]
fn mistakes_in_a_file_are_reported_at_once_with_their_places() {
    let folder = tempfile::tempdir().unwrap();
    let error = |text| ScriptedCritic::from_file(&file(&folder, "s.toml", text)).unwrap_err();
    let several = error(
        "[[feedback]]\n[[feedback]]\nissues = [\"a\"]\nerror = \"timeout\"\n[[feedback]]\n\
         issues = [\"a\"]\nretry_after = 1\n[[feedback]]\nissues = [\"a\"]\nconfidence = 7\n",
    );
    assert_eq!(several.all_problems().len(), 4, "{several}");
    assert!(several.all_problems()[3].place.ends_with("feedback 4"), "{several}");
    assert!(error("[[feedback]]\nisues = []\n").message().contains("line 2"));
    assert!(error("").message().contains("no feedback"));
}
