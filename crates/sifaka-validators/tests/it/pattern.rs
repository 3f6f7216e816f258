use sifaka_core::{Constraint, ErrorKind, Validator, Verdict};
use sifaka_validators::Pattern;

use crate::{say, stops};

#[tokio::test]
async fn a_required_pattern_must_be_there() {
    let check = Pattern::require(r"\d{4}-\d{2}").unwrap();
    assert_eq!(say(&check, "since 2024-11").await.passed, Verdict::Passed);
    let result = say(&check, "since November").await;
    assert_eq!(result.issues, [r"nothing matches /\d{4}-\d{2}/"]);
    assert_eq!(result.suggestions, [r"add a part that matches /\d{4}-\d{2}/"]);
    assert_eq!(result.score, Some(0.0));
}

#[tokio::test]
async fn a_forbidden_pattern_is_named_with_its_places() {
    let check = Pattern::forbid("TODO.*").unwrap();
    assert_eq!(say(&check, "done").await.score, Some(1.0));
    let result = say(&check, "a\nbé TODO x\nTODO").await;
    assert_eq!(result.issues, ["/TODO.*/ must not match: \"TODO x\" at 2:4, \"TODO\" at 3:1"]);
    assert_eq!(result.score, Some(1.0 / 3.0));
    let many = say(&Pattern::forbid("x").unwrap(), &"x".repeat(100)).await;
    assert!(many.issues[0].ends_with("and 95 more"), "{}", many.issues[0]);
    let long = say(&Pattern::forbid("x+").unwrap(), &"x".repeat(10_000)).await;
    assert!(long.issues[0].len() < 200, "an excerpt is bounded");
}

#[tokio::test]
async fn matches_can_be_counted() {
    let check = Pattern::counted("ab", 2..=3).unwrap();
    assert_eq!(say(&check, "ab ab").await.score, Some(1.0));
    let few = say(&check, "ab").await;
    assert_eq!(few.issues, ["/ab/ matches once, 2 to 3 asked: \"ab\" at 1:1"]);
    assert_eq!(few.suggestions, ["add 1 more that match /ab/"]);
    assert_eq!(few.score, Some(0.5));
    let many = say(&check, "ab ab ab ab").await;
    assert_eq!(many.suggestions, ["take out 1 of what matches /ab/"]);
    assert_eq!(many.score, Some(0.75));
    assert_eq!(say(&check, "").await.issues, ["/ab/ matches 0 times, 2 to 3 asked"]);
}

#[tokio::test]
async fn patterns_combine_and_case_can_be_ignored() {
    let check = Pattern::require("A").unwrap().and(Pattern::forbid("B").unwrap());
    assert_eq!(say(&check, "b").await.issues.len(), 1);
    let check = check.ignoring_case().unwrap();
    assert_eq!(say(&check, "b").await.issues.len(), 2);
    assert_eq!(say(&check, "a").await.passed, Verdict::Passed);
}

#[test]
fn a_malformed_pattern_points_at_the_place() {
    let error = Pattern::require("ab(c").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.message().contains("    ab(c\n      ^"), "{error}");
    assert!(error.message().contains("unclosed group"), "{error}");
    let large = Pattern::forbid(r"(?:\w{1000}){1000}").unwrap_err();
    assert!(large.message().contains("limit"), "{large}");
}

#[test]
fn a_forbidden_match_that_cannot_be_undone_stops_a_text() {
    let check = Pattern::forbid("TO+DO").unwrap();
    let long = "x".repeat(80);
    assert!(stops(&check, &["a T", "OO", "DO", &long]).unwrap().contains("1:3"));
    assert_eq!(stops(&check, &["a T", "OO", "-DO", &long]), None);
    // Bounded matches are found at once.
    assert!(stops(&Pattern::forbid("é.b").unwrap(), &["é", "ä", "b"]).is_some());
    assert!(stops(&Pattern::forbid("^ab").unwrap(), &["a", "b"]).is_some());
    for undone in [r"TODO\b", "TODO$", r"\bTODO"] {
        assert!(Pattern::forbid(undone).unwrap().watch().is_none(), "{undone}");
    }
    assert!(Pattern::require("x").unwrap().watch().is_none());
    assert!(Pattern::counted("x", ..=1).unwrap().watch().is_none());
}

#[test]
fn a_pattern_for_the_whole_text_is_offered_as_a_constraint() {
    let offered = |check: Pattern| check.constraints();
    let regex = |text: &str| vec![Constraint::Regex(text.into())];
    assert_eq!(offered(Pattern::require("^a|b$").unwrap()), []);
    assert_eq!(offered(Pattern::require("^(a|b)$").unwrap()), regex("(?:(a|b))"));
    let folded = Pattern::require("^yes$").unwrap().ignoring_case().unwrap();
    assert_eq!(offered(folded), regex("(?i:yes)"));
    assert_eq!(offered(Pattern::require("yes").unwrap()), []);
    assert_eq!(offered(Pattern::forbid("^yes$").unwrap()), []);
}
