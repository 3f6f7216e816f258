//! Where something stands.

use std::fmt;

use sifaka_core::text::summarise;

/// A line and a column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// The place of a byte of a text.
pub(crate) fn place(text: &str, byte: usize) -> Place {
    let before = &text[..text.floor_char_boundary(byte)];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Place {
        line: before.matches('\n').count() as u64 + 1,
        column: before[start..].chars().count() as u64 + 1,
    }
}

/// A text in quotation marks, on one line and not too long.
pub(crate) fn excerpt(text: &str) -> String {
    format!("\"{}\"", summarise(text, 40))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters() {
        assert_eq!(place("äb\ncd", 3).to_string(), "1:3");
        assert_eq!(place("äb\ncd", 5).to_string(), "2:2");
        assert_eq!(place("äb", 999).to_string(), "1:3");
        assert_eq!(excerpt("a\nb"), "\"a b\"");
    }
}
