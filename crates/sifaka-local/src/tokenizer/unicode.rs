//! What sort of character one is, as far as cutting text into words is concerned.

use regex_syntax::hir::{Class as HirClass, HirKind};
use sifaka_core::{Error, ErrorKind, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Letter,
    Number,
    Space,
    Punctuation,
    Other,
}

/// The general categories that matter, out of the tables that the `regex` crate brings along. The
/// standard library's `is_alphabetic` is another thing: it holds vowel signs and Roman numerals.
#[derive(Debug)]
pub(super) struct Classes {
    ascii: [Class; 128],
    /// Sorted, without overlaps.
    ranges: Vec<(char, char, Class)>,
}

impl Classes {
    pub(super) fn new() -> Result<Self> {
        let mut ranges = Vec::new();
        for (pattern, class) in
            [(r"\p{L}", Class::Letter), (r"\p{N}", Class::Number), (r"\p{P}", Class::Punctuation)]
        {
            let parsed = regex_syntax::parse(pattern);
            let found = parsed.as_ref().map(regex_syntax::hir::Hir::kind);
            let Ok(HirKind::Class(HirClass::Unicode(found))) = found else {
                let message = format!("there is no table of the characters {pattern}");
                return Err(Error::new(ErrorKind::Internal, "tokenizer", "open", message));
            };
            ranges.extend(found.iter().map(|range| (range.start(), range.end(), class)));
        }
        ranges.sort_unstable_by_key(|range| range.0);
        let mut classes = Self { ascii: [Class::Other; 128], ranges };
        for (byte, slot) in (0u8..).zip(0..128) {
            classes.ascii[slot] = classes.search(char::from(byte));
        }
        Ok(classes)
    }

    pub(super) fn of(&self, c: char) -> Class {
        match self.ascii.get(c as usize) {
            Some(class) => *class,
            None => self.search(c),
        }
    }

    fn search(&self, c: char) -> Class {
        if c.is_whitespace() {
            return Class::Space;
        }
        let after = self.ranges.partition_point(|range| range.0 <= c);
        match after.checked_sub(1).map(|at| self.ranges[at]) {
            Some((_, end, class)) if c <= end => class,
            _ => Class::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_have_their_general_category() {
        let classes = Classes::new().unwrap();
        for (c, class) in [
            ('a', Class::Letter),
            ('ß', Class::Letter),
            ('語', Class::Letter),
            ('ª', Class::Letter),
            ('7', Class::Number),
            ('Ⅷ', Class::Number),
            ('½', Class::Number),
            ('٣', Class::Number),
            (' ', Class::Space),
            ('\u{a0}', Class::Space),
            ('\u{3000}', Class::Space),
            ('!', Class::Punctuation),
            ('»', Class::Punctuation),
            ('$', Class::Other),
            ('\u{301}', Class::Other),
            ('😀', Class::Other),
            ('\u{0}', Class::Other),
            ('\u{e000}', Class::Other),
        ] {
            assert_eq!(classes.of(c), class, "{c:?}");
        }
    }
}
