use std::sync::Arc;

use async_trait::async_trait;
use sifaka_core::{
    Context, Draft, Error, ErrorKind, OnUnknown, Result, Severity, Thought, ValidationResult,
    Validator, Verdict, check,
};
use sifaka_validators::{Length, ValidatorExt};

use crate::say;

struct Broken(ErrorKind);

#[async_trait]
impl Validator for Broken {
    fn name(&self) -> &str {
        "broken"
    }
    async fn validate(&self, _: &Context, _: &Draft<'_>) -> Result<ValidationResult> {
        Err(Error::new(self.0, "broken", "validate", "it broke"))
    }
}

#[tokio::test]
async fn settings_are_on_the_result() {
    let check = Length::words(5..).soft().weight(0.25).named("short");
    assert_eq!(check.name(), "short");
    let result = say(&check, "two words").await;
    assert_eq!(result.severity, Severity::Soft);
    assert_eq!(result.weight, 0.25);
    assert_eq!(result.passed, Verdict::Failed);
    assert!(result.allows());
    let plain = say(&Length::words(5..).configured(), "two words").await;
    assert_eq!((plain.severity, plain.weight), (Severity::Hard, 1.0));
    assert_eq!(Length::words(5..).configured().name(), "length");
    assert_eq!(say(&Length::words(5..).weight(-3.0), "").await.weight, 0.0);
}

#[tokio::test]
async fn any_check_can_have_them_and_a_message_of_its_own() {
    let check = check("polite", |text| text.contains("please")).message("Say please.").weight(2.0);
    let result = say(&check, "Give!").await;
    assert_eq!(&*result.message, "Say please.");
    assert_eq!(result.issues[0], "Say please.");
    assert_eq!(result.issues.len(), 2, "the check's own words are kept");
    let passed = say(&check, "please").await;
    assert_eq!((&*passed.message, passed.weight), ("passed", 2.0));
    let shared: Arc<dyn Validator> = Arc::new(Length::words(1..));
    assert_eq!(say(&shared.soft(), "").await.severity, Severity::Soft);
}

#[tokio::test]
async fn could_not_tell_means_what_was_set() {
    let result = say(&Broken(ErrorKind::Unavailable).pass_if_unknown(), "x").await;
    assert_eq!((result.passed, result.on_unknown), (Verdict::Unknown, OnUnknown::Pass));
    assert!(result.allows());
    assert_eq!(&*result.message, "broken: it broke");
    assert_eq!(result.details.unwrap()["error"], "unavailable");
    assert!(!say(&Broken(ErrorKind::Unavailable).weight(2.0), "x").await.allows());

    let ctx = Context::new();
    let thought = Thought::new(&ctx, "x");
    let cancelled = Broken(ErrorKind::Cancelled).pass_if_unknown();
    let error = cancelled.validate(&ctx, &Draft::new("x", &thought)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

#[test]
fn a_soft_check_neither_stops_a_text_nor_guides_it() {
    let hard = Length::words(..=3);
    assert!(hard.watch().is_some());
    assert!(hard.clone().weight(0.5).watch().is_some());
    let soft = hard.clone().soft();
    assert!(soft.watch().is_none());
    assert!(soft.constraints().is_empty() && !hard.constraints().is_empty());
}
