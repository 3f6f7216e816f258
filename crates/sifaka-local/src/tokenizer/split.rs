//! Cuts a text into the pieces that byte pairs are merged within.
//!
//! The files name a cut by the model it was first used with. What they mean are regular expressions
//! with look-ahead; here they are written out by hand, which is linear in the text's length.

use super::unicode::{Class, Classes};

/// How a text is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Split {
    /// Words with the space before them, numbers, the rest.
    Gpt2,
    /// Every digit by itself, then as [`Gpt2`](Self::Gpt2).
    Digits,
    /// Words with one sign before them, numbers of at most this many digits, line breaks apart.
    Lines { digits: usize },
    /// What llama.cpp does with a file that names nothing.
    Default,
}

/// The names in files, and whether a piece that is a token as a whole is taken without merging.
const NAMES: &[(&str, Split, bool)] = &[
    ("default", Split::Default, false),
    ("gpt-2", Split::Gpt2, false),
    ("phi-2", Split::Gpt2, false),
    ("olmo", Split::Gpt2, false),
    ("smollm", Split::Digits, false),
    ("starcoder", Split::Digits, false),
    ("refact", Split::Digits, false),
    ("command-r", Split::Digits, false),
    ("codeshell", Split::Digits, false),
    ("llama-bpe", Split::Lines { digits: 3 }, true),
    ("llama3", Split::Lines { digits: 3 }, true),
    ("llama-v3", Split::Lines { digits: 3 }, true),
    ("falcon3", Split::Lines { digits: 3 }, true),
    ("qwen2", Split::Lines { digits: 1 }, false),
    ("deepseek-r1-qwen", Split::Lines { digits: 1 }, false),
    ("stablelm2", Split::Lines { digits: 1 }, false),
];

impl Split {
    /// The cut with this name, and whether whole tokens are taken first.
    pub(super) fn named(name: &str) -> Option<(Self, bool)> {
        NAMES.iter().find(|known| known.0 == name).map(|known| (known.1, known.2))
    }

    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|known| known.0)
    }

    /// Gives the pieces of `text`, in order and without gaps.
    pub(super) fn each<'t>(self, classes: &Classes, text: &'t str, mut piece: impl FnMut(&'t str)) {
        let number = |c: char| classes.of(c) == Class::Number;
        match self {
            Self::Gpt2 => words(classes, text, gpt2, &mut piece),
            Self::Lines { digits } => {
                words(classes, text, |text, at| lines(text, at, digits), &mut piece);
            }
            Self::Digits => runs(text, 1, number, &mut |part, _| {
                words(classes, part, gpt2, &mut piece);
            }),
            Self::Default => {
                let sign = |c| classes.of(c) == Class::Punctuation || "$+<=>^~|".contains(c);
                runs(text, usize::MAX, sign, &mut |part, _| {
                    words(classes, part, gpt2, &mut |word| {
                        runs(word, usize::MAX, number, &mut |part, is_number| {
                            if is_number { threes(part, &mut piece) } else { piece(part) }
                        });
                    });
                });
            }
        }
    }
}

fn words<'t>(
    classes: &Classes,
    text: &'t str,
    end: impl Fn(&Cursor<'_>, usize) -> usize,
    piece: &mut impl FnMut(&'t str),
) {
    let cursor = Cursor { text, classes };
    let mut at = 0;
    while at < text.len() {
        let next = end(&cursor, at);
        piece(&text[at..next]);
        at = next;
    }
}

/// Cuts runs of characters that are `wanted`, each of at most `most`, out of the text between them.
fn runs<'t>(
    text: &'t str,
    most: usize,
    wanted: impl Fn(char) -> bool,
    piece: &mut impl FnMut(&'t str, bool),
) {
    let (mut start, mut count, mut inside) = (0, 0, false);
    for (at, c) in text.char_indices() {
        let is = wanted(c);
        if at > start && (is != inside || (is && count == most)) {
            piece(&text[start..at], inside);
            (start, count) = (at, 0);
        }
        inside = is;
        count += 1;
    }
    if start < text.len() {
        piece(&text[start..], inside);
    }
}

/// Cuts three ASCII digits at a time out of a number, from the left.
fn threes<'t>(number: &'t str, piece: &mut impl FnMut(&'t str)) {
    let bytes = number.as_bytes();
    let (mut start, mut at) = (0, 0);
    while at < bytes.len() {
        if bytes.len() - at >= 3 && bytes[at..at + 3].iter().all(u8::is_ascii_digit) {
            if start < at {
                piece(&number[start..at]);
            }
            piece(&number[at..at + 3]);
            at += 3;
            start = at;
        } else {
            at += 1;
        }
    }
    if start < number.len() {
        piece(&number[start..]);
    }
}

struct Cursor<'t> {
    text: &'t str,
    classes: &'t Classes,
}

impl Cursor<'_> {
    /// The character at `at`, its class and where the next one begins.
    fn at(&self, at: usize) -> Option<(char, Class, usize)> {
        let c = self.text[at..].chars().next()?;
        let class = match self.classes.of(c) {
            Class::Punctuation => Class::Other,
            class => class,
        };
        Some((c, class, at + c.len_utf8()))
    }

    fn class(&self, at: usize) -> Option<Class> {
        self.at(at).map(|(_, class, _)| class)
    }

    /// Where a run of `class` that begins at `at` ends, after `most` characters at the latest.
    fn run(&self, mut at: usize, class: Class, most: usize) -> usize {
        for _ in 0..most {
            match self.at(at) {
                Some((_, found, next)) if found == class => at = next,
                _ => break,
            }
        }
        at
    }

    /// The end of an English contraction (`'s`, `'re`) at `at`.
    fn contraction(&self, at: usize, any_case: bool) -> Option<usize> {
        let tail = self.text.as_bytes()[at..].strip_prefix(b"'")?;
        let same = |byte: &u8, wanted: &u8| {
            byte == wanted || (any_case && byte.eq_ignore_ascii_case(wanted))
        };
        let starts = |end: &&&[u8]| {
            tail.len() >= end.len() && tail.iter().zip(end.iter()).all(|(a, b)| same(a, b))
        };
        let ends: [&[u8]; 7] = [b"s", b"t", b"re", b"ve", b"m", b"ll", b"d"];
        ends.iter().find(starts).map(|end| at + 1 + end.len())
    }

    /// The end of white space at `at`. All but the last of several belongs together when a word
    /// follows, as that last one goes with the word.
    fn space(&self, at: usize) -> usize {
        let end = self.run(at, Class::Space, usize::MAX);
        let last = self.text[at..end].char_indices().next_back().map_or(at, |(last, _)| at + last);
        if end < self.text.len() && last > at { last } else { end }
    }
}

/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
fn gpt2(text: &Cursor<'_>, at: usize) -> usize {
    if let Some(end) = text.contraction(at, false) {
        return end;
    }
    let Some((c, class, next)) = text.at(at) else { return at };
    let (start, class) = match text.class(next) {
        Some(after) if c == ' ' => (next, after),
        _ => (at, class),
    };
    match class {
        Class::Space => text.space(at),
        class => text.run(start, class, usize::MAX),
    }
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}|`
/// ` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
fn lines(text: &Cursor<'_>, at: usize, digits: usize) -> usize {
    if let Some(end) = text.contraction(at, true) {
        return end;
    }
    let Some((c, class, next)) = text.at(at) else { return at };
    let after = text.class(next);
    let breaks = matches!(c, '\r' | '\n');
    if class == Class::Letter || (!breaks && class != Class::Number && after == Some(Class::Letter))
    {
        return text.run(next, Class::Letter, usize::MAX);
    }
    if class == Class::Number {
        return text.run(at, Class::Number, digits);
    }
    if class == Class::Other || (c == ' ' && after == Some(Class::Other)) {
        let end = text.run(next, Class::Other, usize::MAX);
        let line = text.text[end..].bytes().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        return end + line.count();
    }
    let end = text.run(at, Class::Space, usize::MAX);
    match text.text[at..end].rfind(['\r', '\n']) {
        Some(last) => at + last + 1,
        None => text.space(at),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(name: &str, text: &str) -> Vec<String> {
        let classes = Classes::new().unwrap();
        let mut pieces = Vec::new();
        let split = Split::named(name).unwrap().0;
        split.each(&classes, text, |piece| pieces.push(piece.to_owned()));
        pieces
    }

    #[test]
    fn words_take_the_space_before_them() {
        assert_eq!(
            pieces("gpt-2", "I'm  here,\n\n at 1234 o'clock!  "),
            ["I", "'m", " ", " here", ",", "\n\n", " at", " 1234", " o", "'", "clock", "!", "  "]
        );
        assert_eq!(pieces("gpt-2", "I'M"), ["I", "'", "M"]);
    }

    #[test]
    fn digits_stand_alone() {
        assert_eq!(pieces("smollm", "a 12½  3"), ["a", " ", "1", "2", "½", "  ", "3"]);
    }

    #[test]
    fn line_breaks_end_a_piece() {
        assert_eq!(
            pieces("llama-bpe", "I'M (here) 12345\n\n  x!\r\n \n\t y"),
            [
                "I", "'M", " (", "here", ")", " ", "123", "45", "\n\n", " ", " x", "!\r\n", " \n",
                "\t", " y"
            ]
        );
        assert_eq!(pieces("qwen2", "x12"), ["x", "1", "2"]);
    }

    #[test]
    fn without_a_name_signs_and_threes_are_cut() {
        assert_eq!(
            pieces("default", "it's $5.1234567 ok"),
            ["it", "'", "s", " ", "$", "5", ".", "123", "456", "7", " ok"]
        );
    }

    proptest! {
        #[test]
        fn pieces_are_never_empty_and_make_up_the_text(text in "[ \\PC\r\n\ta-c1-3']{0,60}") {
            for name in Split::names() {
                let pieces = pieces(name, &text);
                prop_assert!(pieces.iter().all(|piece| !piece.is_empty()));
                prop_assert_eq!(pieces.concat(), text.clone());
            }
        }
    }
}
