//! Tests of the Thought that need no other crate.

use super::*;
use crate::ErrorKind;
use crate::thought::file::Limits;

fn ctx() -> Context {
    Context::builder().seed(7).build()
}

fn parse(json: &str) -> Thought {
    Thought::from_json(json.as_bytes(), &Limits::default()).unwrap()
}

#[test]
fn lesson_3_two_validators_of_one_kind_keep_two_results() {
    let thought = Thought::new(&ctx(), "p")
        .add_validation_result("length", ValidationResult::failed("too short"))
        .add_validation_result("length", ValidationResult::passed("ok"))
        .add_validation_result("length", ValidationResult::passed("ok"));
    let names: Vec<&str> = thought.validation_results().iter().map(|(n, _)| &**n).collect();
    assert_eq!(names, ["length", "length-2", "length-3"]);
    assert!(!thought.validation_passed(), "a later result must not hide an earlier failure");
}

#[test]
fn lesson_9_nothing_is_ever_left_out_of_a_long_history() {
    let ctx = ctx();
    let mut thought = Thought::new(&ctx, "p").with_text("0");
    for n in 1..200 {
        thought = thought.next_iteration(&ctx).with_text(n.to_string());
    }
    assert_eq!(thought.history().len(), 199);
    let json = serde_json::to_string(&thought).unwrap();
    let back = parse(&json);
    assert_eq!(back, thought);
    let texts: Vec<String> = back
        .history()
        .iter()
        .filter_map(|e| e.thought().and_then(|t| t.text().map(str::to_owned)))
        .collect();
    assert_eq!(texts.len(), 199);
    assert_eq!(texts[0], "0");
}

#[test]
fn a_hundred_thousand_iterations_drop_without_recursion() {
    let ctx = ctx();
    let mut thought = Thought::new(&ctx, "p");
    for _ in 0..100_000 {
        thought = thought.next_iteration(&ctx);
    }
    let copy = thought.clone();
    drop(thought);
    assert_eq!(copy.iteration(), 100_000);
    drop(copy);
}

#[test]
fn json_begins_with_the_version() {
    let json = serde_json::to_string(&Thought::new(&ctx(), "p")).unwrap();
    assert!(json.starts_with("{\"version\":\"1.0.0\","), "{json}");
}

#[test]
fn versions_newer_by_a_minor_load_and_by_a_major_do_not() {
    let thought = parse(r#"{"version": "1.9.0", "prompt": "p", "novelty": {"a": [1]}}"#);
    assert_eq!(thought.unknown_fields().unwrap()["novelty"]["a"][0], 1);
    let back = serde_json::to_string(&thought).unwrap();
    assert!(back.contains(r#""novelty":{"a":[1]}"#));
    let error = Thought::from_json(br#"{"version": "2.0.0", "prompt": "p"}"#, &Limits::default())
        .unwrap_err();
    assert!(error.to_string().contains("update sifaka"), "{error}");
}

#[test]
fn damaged_files_say_what_and_where() {
    for (json, part) in [
        ("", "EOF"),
        ("{", "EOF"),
        ("[]", "invalid"),
        ("{\"text\": \"x\"}", "prompt"),
        ("{\"prompt\": 3}", "line 1"),
        ("{\"prompt\": \"p\", \"iteration\": -1}", "line 1"),
    ] {
        let error = Thought::from_json(json.as_bytes(), &Limits::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(part), "{json}: {error}");
        assert!(!error.suggestions().is_empty());
    }
    let limits = Limits { bytes: 10, ..Limits::default() };
    let error = Thought::from_json(br#"{"prompt": "p"}"#, &limits).unwrap_err();
    assert!(error.to_string().contains("more than 10 bytes"), "{error}");
    let deep = format!("{{\"prompt\":\"p\",\"x\":{}{}}}", "[".repeat(500), "]".repeat(500));
    let error = Thought::from_json(deep.as_bytes(), &Limits::default()).unwrap_err();
    assert!(error.to_string().contains("recursion"), "{error}");
    let many = Limits { iterations: 1, ..Limits::default() };
    let json = serde_json::to_vec(&Thought::new(&ctx(), "p").next_iteration(&ctx())).unwrap();
    assert!(Thought::from_json(&json, &many).is_err());
}

#[test]
fn save_and_load_and_what_is_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.json");
    let thought = Thought::new(&ctx(), "p").with_text("ünïcödé \u{0} \u{1F98A}");
    thought.save(&path).unwrap();
    assert_eq!(Thought::load(&path).unwrap(), thought);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    let error = thought.save(folder.path().join("missing/t.json")).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
    assert_eq!(
        Thought::load(folder.path().join("no.json")).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    std::fs::write(&path, "{\"prompt\": \"p\",").unwrap();
    let error = Thought::load(&path).unwrap_err();
    assert!(error.to_string().contains("t.json"), "{error}");
}

#[test]
fn an_iteration_carries_what_it_should_and_no_more() {
    let ctx = ctx();
    let old = Thought::new(&ctx, "p")
        .with_system_prompt("s")
        .with_tag("k", "v")
        .with_metadata("m", 1)
        .add_pre_generation_context(Document::new("d"))
        .with_model_prompt("mp")
        .with_text("t")
        .add_post_generation_context(Document::new("e"))
        .add_validation_result("v", ValidationResult::passed("ok"))
        .add_critic_feedback(CriticFeedback::new("c"));
    let new = old.next_iteration(&ctx);
    assert_eq!((new.prompt(), new.system_prompt()), ("p", Some("s")));
    assert_eq!((new.tags()["k"].as_str(), &new.metadata().unwrap()["m"]), ("v", &1.into()));
    assert_eq!(new.pre_generation_context().len(), 1);
    assert_eq!(new.parent_id(), Some(old.id()));
    assert!(new.text().is_none() && new.model_prompt().is_none());
    assert!(new.validation_results().is_empty() && new.critic_feedback().is_empty());
    assert!(new.post_generation_context().is_empty());
    assert_eq!(new.parent().unwrap(), old);
}

#[test]
fn diffs_show_text_and_verdicts() {
    let ctx = ctx();
    let old = Thought::new(&ctx, "p")
        .with_text("one\ntwo\n")
        .add_validation_result("v", ValidationResult::failed("no"));
    let new = old
        .next_iteration(&ctx)
        .with_text("one\nthree\n")
        .add_validation_result("v", ValidationResult::passed("ok"));
    let diff = old.diff(&new);
    assert_eq!(
        diff.text,
        [Change::Kept("one".into()), Change::Removed("two".into()), Change::Added("three".into())]
    );
    assert_eq!(diff.verdicts.len(), 1);
    assert!(diff.score_to.beats(&diff.score_from));
}
