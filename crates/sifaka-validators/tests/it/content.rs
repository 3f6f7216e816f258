use sifaka_core::constraint::Terms;
use sifaka_core::{Constraint, ErrorKind, Validator, Verdict};
use sifaka_validators::Content;

use crate::{say, stops};

#[tokio::test]
async fn missing_terms_are_named() {
    let check = Content::require(["alpha", "beta", "gamma"]).unwrap();
    assert_eq!(say(&check, "gamma, beta, alphabet").await.passed, Verdict::Passed);
    let result = say(&check, "only beta").await;
    assert_eq!(result.issues, ["missing: \"alpha\", \"gamma\""]);
    assert_eq!(result.suggestions, ["use \"alpha\", \"gamma\""]);
    assert_eq!(result.score, Some(1.0 / 3.0));
    assert_eq!(result.details.unwrap()["missing"][1], "gamma");
}

#[tokio::test]
async fn forbidden_terms_are_named_with_their_places() {
    let check = Content::forbid(["foo", "bar"]).unwrap();
    assert_eq!(say(&check, "baz").await.score, Some(1.0));
    let result = say(&check, "a bar\nfoo é foobar").await;
    assert_eq!(
        result.issues,
        ["forbidden: \"bar\" 2 times, first at 1:3", "forbidden: \"foo\" 2 times, first at 2:1"]
    );
    assert_eq!(result.suggestions, ["remove or replace \"bar\", \"foo\""]);
    assert_eq!(result.score, Some(0.2));
    assert_eq!(result.details.unwrap()["forbidden"][1]["line"], 2);
}

#[tokio::test]
async fn some_of_many_can_be_enough() {
    let some = |n| Content::builder().require(["a1", "b2", "c3"]).at_least(n).build().unwrap();
    assert_eq!(say(&some(2), "c3 a1").await.passed, Verdict::Passed);
    let result = say(&some(2), "c3").await;
    assert_eq!(
        result.issues,
        ["1 of 3 terms are there, at least 2 asked; missing: \"a1\", \"b2\""]
    );
    assert_eq!(result.score, Some(0.5));
    let any = Content::builder().require(["a1", "b2"]).any().build().unwrap();
    assert_eq!(say(&any, "b2").await.passed, Verdict::Passed);
    assert_eq!(say(&any, "").await.passed, Verdict::Failed);
}

#[tokio::test]
async fn whole_words_end_where_words_end() {
    let forbid = |terms: [&str; 1]| Content::builder().forbid(terms).whole_word().build().unwrap();
    for (term, text, passes) in [
        ("cat", "concatenate cats cat_", true),
        ("cat", "a cat.", false),
        ("cat", "cat", false),
        ("cafe", "cafe\u{301}", true),
        ("C++", "C++11 and more", false),
        ("C++", "ObjC++", true),
        ("straße", "Hauptstraße", true),
        ("two words", "say two words!", false),
    ] {
        let passed = say(&forbid([term]), text).await.passed;
        assert_eq!(passed, Verdict::from(passes), "{term:?} in {text:?}");
    }
}

#[tokio::test]
async fn case_can_be_ignored_in_every_script() {
    let check = Content::builder().forbid(["Straße", "ΣΟΦΟΣ"]).ignore_case().build().unwrap();
    // The Kelvin sign folds to fewer bytes; places are still the text's own.
    let result = say(&check, "\u{212A}\u{212A} STRAßE σοφος").await;
    assert_eq!(result.issues, ["forbidden: \"Straße\" at 1:4", "forbidden: \"ΣΟΦΟΣ\" at 1:11"]);
    let ascii = Content::builder().require(["todo"]).ignore_case().build().unwrap();
    assert_eq!(say(&ascii, "ToDo").await.passed, Verdict::Passed);
    let exact = Content::require(["todo"]).unwrap();
    assert_eq!(say(&exact, "ToDo").await.passed, Verdict::Failed);
}

#[tokio::test]
async fn thousands_of_terms_are_one_pass_and_issues_stay_bounded() {
    let terms: Vec<String> = (0..5000).map(|n| format!("<{n}>")).collect();
    let check = Content::forbid(terms.clone()).unwrap();
    assert_eq!(say(&check, "5 and <x>").await.passed, Verdict::Passed);
    let result = say(&check, &terms.concat()).await;
    assert_eq!(result.issues.len(), 11);
    assert_eq!(result.issues[10], "and 4990 more forbidden terms");
    let required = Content::require(terms).unwrap();
    let result = say(&required, "").await;
    assert!(result.issues[0].ends_with("4990 more"), "{}", result.issues[0]);
}

#[test]
fn every_problem_is_reported_at_once() {
    let error = Content::builder().require(["a", ""]).forbid(["a", " "]).at_least(9).build();
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert_eq!(error.all_problems().len(), 4, "{error}");
    assert!(Content::forbid(Vec::<String>::new()).unwrap_err().message().contains("no terms"));
}

#[test]
fn constraints_say_the_same_as_data() {
    let check =
        Content::builder().require(["a", "a", "b"]).any().forbid(["c"]).ignore_case().build();
    let terms = |list: &[&str]| Terms {
        terms: list.iter().map(|term| String::from(*term)).collect(),
        whole_word: false,
        case_sensitive: false,
    };
    assert_eq!(
        check.unwrap().constraints(),
        [
            Constraint::Require { terms: terms(&["a", "b"]), at_least: Some(1) },
            Constraint::Forbid(terms(&["c"])),
        ]
    );
}

#[test]
fn a_forbidden_term_stops_a_text_once_it_is_there_for_good() {
    let part = Content::forbid(["forbidden"]).unwrap();
    assert_eq!(stops(&part, &["for", "bid", "den"]).unwrap(), "forbidden: \"forbidden\"");
    let whole = Content::builder().forbid(["cat", "é"]).whole_word().ignore_case().build().unwrap();
    assert_eq!(stops(&whole, &["con", "cat", " ", "cat", "s and CAT"]), None);
    assert!(stops(&whole, &["a ", "CA", "T", "."]).is_some());
    assert_eq!(stops(&whole, &["x", "cat ", "xcat", " "]), None);
    assert!(Content::require(["x"]).unwrap().watch().is_none());
}
