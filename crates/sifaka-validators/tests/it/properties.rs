//! What must hold for any text.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use sifaka_core::constraint::Unit;
use sifaka_core::{Context, Draft, Thought, ValidationResult, Validator, Verdict};
use sifaka_validators::text::{blocks, characters, sentences, words};
use sifaka_validators::{Content, Length, Pattern};

/// Text with what makes trouble: marks, joiners, flags, line ends, scripts without spaces.
fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a", "b", "ab", "A", " ", "\n", "\r\n", "\r", ".", "?! ", "\u{301}", "\u{200D}", "👩", "🇲",
        "🇬", "日", "。", "é", "ß", "İ", "\u{212A}", "क", "\u{94D}", "ि", "-", "\u{A0}", "1. ",
        "Dr. ", "\0", "_",
    ]);
    prop_oneof![
        3 => prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat()),
        1 => prop::collection::vec(any::<char>(), 0..30).prop_map(String::from_iter),
    ]
}

/// One of every kind of check, with bounds that random texts fall on either side of.
static CHECKS: LazyLock<Vec<Arc<dyn Validator>>> = LazyLock::new(|| {
    let content = || Content::builder().forbid(["ab", "é", "b ", "İ"]);
    vec![
        Arc::new(Length::characters(..=8)),
        Arc::new(Length::words(..=4)),
        Arc::new(Length::characters(3..).and(Unit::Words, ..=6).and(Unit::Sentences, 1..=3)),
        Arc::new(Length::paragraphs(..=2).and(Unit::Lines, ..=4).and(Unit::Tokens, ..=20)),
        Arc::new(Pattern::forbid("ab|日.{1,3}b").unwrap()),
        Arc::new(Pattern::forbid("a.*b").unwrap()),
        Arc::new(Pattern::forbid("^a").unwrap()),
        Arc::new(Pattern::forbid(r"a\b").unwrap()),
        Arc::new(Pattern::require("a$").unwrap()),
        Arc::new(Pattern::counted("a", 1..=3).unwrap()),
        Arc::new(content().build().unwrap()),
        Arc::new(content().whole_word().build().unwrap()),
        Arc::new(content().whole_word().ignore_case().build().unwrap()),
        Arc::new(
            Content::builder().require(["a", "K"]).forbid(["ab"]).ignore_case().build().unwrap(),
        ),
        Arc::new(Content::builder().require(["a", "b"]).any().whole_word().build().unwrap()),
    ]
});

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap()
});

fn say(check: &dyn Validator, text: &str) -> ValidationResult {
    let ctx = Context::new();
    let thought = Thought::new(&ctx, "Write.");
    RUNTIME.block_on(check.validate(&ctx, &Draft::new(text, &thought))).unwrap()
}

/// A text cut at these places.
fn pieces<'a>(text: &'a str, cuts: &[prop::sample::Index]) -> Vec<&'a str> {
    let mut at: Vec<usize> =
        cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
    at.extend([0, text.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn score_and_verdict_agree_and_the_answer_is_always_the_same(text in text()) {
        for check in CHECKS.iter() {
            let result = say(&**check, &text);
            let score = result.score.unwrap();
            prop_assert!((0.0..=1.0).contains(&score));
            prop_assert_eq!(result.passed == Verdict::Passed, score == 1.0, "{:?}", result);
            prop_assert_eq!(result.passed == Verdict::Passed, result.issues.is_empty());
            prop_assert_eq!(result.issues.is_empty(), result.suggestions.is_empty());
            prop_assert_eq!(&say(&**check, &text), &result);
        }
    }

    #[test]
    fn a_text_that_would_pass_is_never_stopped(
        text in text(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        for check in CHECKS.iter() {
            let Some(mut watch) = check.watch() else { continue };
            for piece in pieces(&text, &cuts) {
                if let Some(why) = watch.push(piece) {
                    let result = say(&**check, &text);
                    prop_assert_eq!(result.passed, Verdict::Failed, "{:?} stopped: {}", check, why);
                    break;
                }
            }
        }
    }

    /// The other way round: what is already too much is stopped, so watching is of use.
    #[test]
    fn a_text_that_is_too_long_is_stopped_however_it_is_cut(
        text in text(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        for check in [Length::characters(..=8), Length::words(..=4)] {
            let mut watch = check.watch().unwrap();
            let stopped = pieces(&text, &cuts).into_iter().any(|piece| watch.push(piece).is_some());
            prop_assert_eq!(stopped, say(&check, &text).passed == Verdict::Failed);
        }
    }

    #[test]
    fn counts_are_what_they_are_whatever_is_added(text in text(), more in text()) {
        let whole = format!("{text}{more}");
        prop_assert!(characters::count(&whole) >= characters::count(&text));
        prop_assert!(words::count(&whole) >= words::count(&text));
        prop_assert!(characters::count(&text) <= text.chars().count() as u64);
        let pieces = sentences::sentences(&text).map(str::len).sum::<usize>();
        prop_assert!(pieces <= text.len());
        prop_assert!(sentences::count(&text) <= text.chars().count() as u64);
        prop_assert!(blocks::paragraphs(&text) <= blocks::lines(&text));
    }
}
