//! What a pattern looks at.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind, Look};

/// The longest match, in bytes, that is looked for again at every piece of a stream.
const LONGEST: usize = 1024;

/// Properties of a pattern that decide what can be done with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// Whether a match stays a match whatever follows it.
    pub(super) final_: bool,
    /// How many bytes a match has at most, if that is few.
    pub(super) longest: Option<usize>,
    /// The part between the anchors of a pattern that must match the whole text.
    pub(super) whole: Option<(usize, usize)>,
}

impl Shape {
    /// The shape of a pattern; of one that does not parse, nothing is assumed.
    pub(super) fn of(pattern: &str, ignore_case: bool) -> Self {
        let parsed = ParserBuilder::new().case_insensitive(ignore_case).build().parse(pattern);
        let Ok(hir) = parsed else { return Self::default() };
        let properties = hir.properties();
        // These look at what stands before; all others also at what comes after.
        let behind = |look| matches!(look, Look::Start | Look::StartLF);
        Self {
            final_: properties.look_set().iter().all(behind),
            longest: properties.maximum_len().filter(|longest| *longest <= LONGEST),
            whole: is_whole(&hir)
                .then(|| pattern.strip_prefix('^')?.strip_suffix('$'))
                .flatten()
                .map(|inner| (1, 1 + inner.len())),
        }
    }
}

/// Whether a pattern begins at the text's start, ends at its end, and has no anchors in between.
fn is_whole(hir: &Hir) -> bool {
    let HirKind::Concat(parts) = hir.kind() else { return false };
    let is =
        |part: Option<&Hir>, look| part.is_some_and(|part| *part.kind() == HirKind::Look(look));
    let inner = parts.get(1..parts.len().saturating_sub(1)).unwrap_or_default();
    is(parts.first(), Look::Start)
        && is(parts.last(), Look::End)
        && inner.iter().all(|part| part.properties().look_set().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_patterns_that_look_back_are_final() {
        for (pattern, expected) in [
            ("abc", true),
            ("a.*b", true),
            ("^abc", true),
            ("(?m)^abc", true),
            ("abc$", false),
            (r"abc\z", false),
            (r"\babc", false),
            (r"abc\B", false),
            ("(?mR)^abc", false),
            ("(?m)abc$", false),
        ] {
            assert_eq!(Shape::of(pattern, false).final_, expected, "{pattern}");
        }
    }

    #[test]
    fn a_pattern_is_whole_between_its_two_anchors() {
        let whole = |pattern: &'static str| {
            Shape::of(pattern, false).whole.map(|(start, end)| &pattern[start..end])
        };
        assert_eq!(whole("^a+b$"), Some("a+b"));
        assert_eq!(whole("^(?:a|b)$"), Some("(?:a|b)"));
        for partial in ["a", "^a", "a$", "^a|b$", r"^a\$", "(?m)^a$", "^a^b$", "^$", "(?i)^a$"] {
            // An empty whole is one too, and harmless.
            assert_eq!(whole(partial).filter(|inner| !inner.is_empty()), None, "{partial}");
        }
    }
}
