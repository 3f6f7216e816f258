//! Colour, which only ever repeats what the words say.

use std::borrow::Cow;
use std::io::IsTerminal;

use crate::args::Color;

/// Whether to colour one of the two outputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    on: bool,
}

impl Style {
    pub(crate) fn new(color: Color, terminal: &impl IsTerminal) -> Self {
        let wanted = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
                !refused && !dumb && terminal.is_terminal()
            }
        };
        Self { on: wanted }
    }

    fn paint<'a>(self, code: &str, text: &'a str) -> Cow<'a, str> {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m").into() } else { text.into() }
    }

    pub(crate) fn good(self, text: &str) -> Cow<'_, str> {
        self.paint("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> Cow<'_, str> {
        self.paint("31", text)
    }

    pub(crate) fn doubtful(self, text: &str) -> Cow<'_, str> {
        self.paint("33", text)
    }

    pub(crate) fn faint(self, text: &str) -> Cow<'_, str> {
        self.paint("2", text)
    }

    pub(crate) fn strong(self, text: &str) -> Cow<'_, str> {
        self.paint("1", text)
    }
}

/// A text without characters that would steer a terminal: texts come from models and files.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    let steers = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            // These turn the direction of what follows, so that it reads as something else.
            || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(steers) {
        return text.into();
    }
    text.replace("\r\n", "\n").replace(steers, "\u{FFFD}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_steer_the_terminal() {
        assert_eq!(clean("a\tb\nc ü"), "a\tb\nc ü");
        assert_eq!(clean("\x1b[31mred\x07\r\n"), "\u{FFFD}[31mred\u{FFFD}\n");
        assert_eq!(clean("\u{9b}31m"), "\u{FFFD}31m");
        assert_eq!(clean("a\u{202E}b\u{2066}c"), "a\u{FFFD}b\u{FFFD}c");
    }
}
