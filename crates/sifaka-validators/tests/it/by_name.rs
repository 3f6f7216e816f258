use std::sync::Arc;

use serde_json::json;
use sifaka_core::{Error, OnUnknown, Registry, Severity, Spec, ValidationResult, Validator};

use crate::say;

fn registry() -> Registry {
    let registry = Registry::new();
    sifaka_validators::register(&registry);
    registry
}

fn check(spec: &str) -> Arc<dyn Validator> {
    registry().validator(&Spec::parse(spec).unwrap()).unwrap()
}

fn error(spec: &str) -> Error {
    registry().validator(&Spec::parse(spec).unwrap()).unwrap_err()
}

async fn issues(spec: &str, text: &str) -> Vec<String> {
    say(&check(spec), text).await.issues
}

async fn from_table(name: &str, options: serde_json::Value, text: &str) -> ValidationResult {
    let spec = Spec::from_parts(name, options.as_object().unwrap().clone());
    say(&registry().validator(&spec).unwrap(), text).await
}

#[tokio::test]
async fn length_takes_every_unit() {
    for (spec, text, expected) in [
        ("length:words=3..", "a b", "2 words, at least 3 asked"),
        ("length:chars=..3", "abcd", "4 characters, at most 3 asked"),
        ("length:characters=3", "abcd", "4 characters, exactly 3 asked"),
        ("length:sentences=2..", "One.", "1 sentence, at least 2 asked"),
        ("length:paragraphs=2..", "One.", "1 paragraph, at least 2 asked"),
        ("length:lines=..1", "a\nb", "2 lines, at most 1 asked"),
        ("length:tokens=..1", "abcd", "2 tokens, at most 1 asked"),
    ] {
        assert_eq!(issues(spec, text).await, [expected], "{spec}");
    }
    assert_eq!(issues("length:chars=..280,sentences=2..", "One.").await.len(), 1);
    let result = from_table("length", json!({"words": "3..9", "lines": 2}), "a").await;
    assert_eq!(result.issues.len(), 2);
}

#[tokio::test]
async fn regex_keeps_commas_and_takes_lists() {
    assert_eq!(issues("regex:require=a{1,3}=b,c", "aa=b,c").await, [""; 0]);
    assert_eq!(issues("regex:forbid=TODO|FIXME,ignore_case=true", "a fixme").await.len(), 1);
    assert_eq!(issues("regex:match=x,count=2..4", "x x").await, [""; 0]);
    assert_eq!(issues("regex:match=x", "y").await, ["nothing matches /x/"]);
    let result = from_table("regex", json!({"require": ["a", "b,c"], "forbid": "d"}), "d").await;
    assert_eq!(result.issues.len(), 3, "{result:?}");
}

#[tokio::test]
async fn content_takes_lists_and_options() {
    assert_eq!(issues("content:require=alpha,beta", "beta").await, ["missing: \"alpha\""]);
    assert_eq!(issues("content:require=a1, b2,any=true", "b2").await, [""; 0]);
    assert_eq!(issues("content:require=a1,b2,at_least=2", "b2").await.len(), 1);
    assert_eq!(issues("content:forbid=cat,whole_word=true", "cats").await, [""; 0]);
    assert_eq!(issues("content:forbid=cat,ignore_case=true", "CATS").await.len(), 1);
    let result = from_table("content", json!({"forbid": ["a, b", "c"]}), "a, b").await;
    assert_eq!(result.issues, ["forbidden: \"a, b\" at 1:1"]);
}

#[tokio::test]
async fn every_check_takes_the_common_options() {
    for own in ["length:words=5..", "regex:require=zzz", "content:require=zzz"] {
        let spec = format!(
            "{own},soft=true,weight=0.5,on_unknown=pass,name=mine,message=\"Not so, please\""
        );
        let check = check(&spec);
        assert_eq!(check.name(), "mine");
        let result = say(&check, "x").await;
        assert_eq!(result.severity, Severity::Soft, "{spec}");
        assert_eq!(result.weight, 0.5);
        assert_eq!(result.on_unknown, OnUnknown::Pass);
        assert_eq!(&*result.message, "Not so, please");
    }
    assert_eq!(check("length:words=5..").name(), "length");
    assert_eq!(check("regex:require=x").name(), "regex");
    assert_eq!(check("content:require=x").name(), "content");
    let result = say(&check("length:words=5..,soft=false"), "x").await;
    assert_eq!(result.severity, Severity::Hard);
}

#[test]
fn mistakes_are_reported_together_and_with_suggestions() {
    let several = error("length:words=many,wieght=2,soft=perhaps,on_unknown=x");
    assert_eq!(several.all_problems().len(), 4, "{several}");
    assert!(several.message().contains("did you mean weight?"), "{several}");
    assert!(error("length").message().contains("does not say what to check"));
    assert!(error("length:50..200").message().contains("\"50..200\" is not an option"));
    assert!(error("length:5,words=3").message().contains("\"5\" is not an option"));
    assert!(error("length:words=1..,weight=-1").message().contains("negative"));
    let bad = error("regex:require=(,forbid=[");
    assert_eq!(bad.all_problems().len(), 2, "{bad}");
    assert!(bad.message().contains("unclosed group") && bad.message().contains('^'), "{bad}");
    assert!(error("regex:count=3").message().contains("match is missing"));
    assert!(error("content:require=a,at_least=2").message().contains("2 terms are asked"));
    assert!(error("content:require=a,any=true,at_least=1").message().contains("twice"));
    assert!(error("lenght:words=3").suggestions()[0].contains("length"));
    let names: Vec<String> =
        registry().validators.list().into_iter().map(|about| about.name).collect();
    assert_eq!(names, ["content", "length", "regex"]);
}

#[test]
fn every_listed_example_works() {
    for about in registry().validators.list() {
        assert!(!about.summary.is_empty());
        check(&about.example);
    }
}
