use std::sync::Arc;

use sifaka_core::constraint::{Range, Unit};
use sifaka_core::model::{Capabilities, Model, Request, Response, TokenCount};
use sifaka_core::{Constraint, Context, Draft, Result, Thought, Validator, Verdict};
use sifaka_validators::Length;

use crate::{say, stops};

#[tokio::test]
async fn an_issue_names_the_amount_and_a_suggestion_what_to_do() {
    let result = say(&Length::words(50..=200), &"word ".repeat(38)).await;
    assert_eq!(result.passed, Verdict::Failed);
    assert_eq!(&*result.message, "38 words, at least 50 asked");
    assert_eq!(result.issues, ["38 words, at least 50 asked"]);
    assert_eq!(result.suggestions, ["write about 12 more words"]);
    assert_eq!(result.score, Some(0.76));
    assert_eq!(result.details.unwrap()["words"], 38);

    let result = say(&Length::words(..=2), "one two three four").await;
    assert_eq!(result.issues, ["4 words, at most 2 asked"]);
    assert_eq!(result.suggestions, ["cut about 2 words"]);
    assert_eq!(result.score, Some(0.5));

    let result = say(&Length::sentences(2..=2), "Only one.").await;
    assert_eq!(result.issues, ["1 sentence, exactly 2 asked"]);
    assert_eq!(result.suggestions, ["write about 1 more sentence"]);

    let result = say(&Length::words(..1), "one").await;
    assert_eq!((result.passed, result.score), (Verdict::Failed, Some(0.0)));
}

#[tokio::test]
async fn every_unit_is_counted() {
    let text = "Ein schöner Tag. Und noch einer!\nZeile\n\nAbsatz 👩‍👩‍👧";
    for (check, expected) in [
        (Length::characters(48..=48), "48 characters"),
        (Length::words(8..=8), "8 words"),
        (Length::sentences(3..=4), "4 sentences"),
        (Length::paragraphs(2..=2), "2 paragraphs"),
        (Length::lines(4..=4), "4 lines"),
        (Length::tokens(20..), "22 tokens"),
    ] {
        let result = say(&check, text).await;
        assert_eq!(&*result.message, expected);
        assert_eq!((result.passed, result.score), (Verdict::Passed, Some(1.0)));
        assert!(result.issues.is_empty() && result.suggestions.is_empty());
    }
}

#[tokio::test]
async fn units_combine_and_each_says_its_own() {
    let check = Length::words(3..).and(Unit::Characters, ..=5).and(Unit::Lines, ..=9);
    let result = say(&check, "longer than that").await;
    assert_eq!(result.issues, ["16 characters, at most 5 asked"]);
    assert_eq!(result.details.as_ref().unwrap()["words"], 3);
    let result = say(&check, "two words").await;
    assert_eq!(result.issues.len(), 2, "{result:?}");
    assert!(result.score.unwrap() < 1.0 && result.score.unwrap() > 0.0);
    assert_eq!(
        check.constraints()[1],
        Constraint::Count { unit: Unit::Characters, range: Range::at_most(5) }
    );
    assert_eq!(check.constraints().len(), 3);
}

/// Counts a token a letter.
struct Letters;

#[async_trait::async_trait]
impl Model for Letters {
    fn name(&self) -> &str {
        "letters"
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
    async fn generate(&self, _: &Context, _: &Request) -> Result<Response> {
        Ok(Response::text(""))
    }
    fn count_tokens(&self, text: &str) -> TokenCount {
        TokenCount::exact(text.len() as u64)
    }
}

#[tokio::test]
async fn tokens_are_the_models_and_say_whether_they_are_exact() {
    let ctx = Context::new();
    let thought = Thought::new(&ctx, "Write.");
    let model: Arc<dyn Model> = Arc::new(Letters);
    let draft = Draft { text: "seven77", thought: &thought, model: Some(&model) };
    let result = Length::tokens(7..=7).validate(&ctx, &draft).await.unwrap();
    assert_eq!(result.passed, Verdict::Passed);
    assert_eq!(result.details.unwrap()["tokens_exact"], true);
    let result = say(&Length::tokens(7..=7), "seven77").await;
    assert_eq!(result.issues, ["3 tokens, exactly 7 asked"]);
    assert_eq!(result.details.unwrap()["tokens_exact"], false);
}

#[test]
fn a_text_that_is_too_long_is_stopped_and_no_sooner() {
    let check = Length::words(..=3);
    assert_eq!(stops(&check, &["one two thr", "ee", "eee", " - ", "."]), None);
    let why = stops(&check, &["one two thr", "ee ", "f"]).unwrap();
    assert_eq!(why, "4 words, at most 3 asked");
    let check = Length::characters(..=2);
    assert_eq!(stops(&check, &["a", "e", "\u{301}", "\u{302}"]), None);
    assert!(stops(&check, &["a", "e", "\u{301}", "x"]).is_some());
    assert!(Length::words(3..).watch().is_none(), "without a most nothing can be stopped");
    assert!(Length::sentences(..=3).watch().is_none());
}
