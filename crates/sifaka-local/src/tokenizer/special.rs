//! Tokens that stand in a text by their name.

use super::{Special, TokenId};

/// Finds the names of tokens in a text. At each place the longest name wins.
#[derive(Debug)]
pub(super) struct Specials {
    /// By the first byte of the name, the longest name first.
    by_first: Vec<Vec<Name>>,
}

#[derive(Debug)]
struct Name {
    name: Box<str>,
    id: TokenId,
    control: bool,
}

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'t> {
    Text(&'t str),
    Token(TokenId),
}

impl Specials {
    /// From names, their ids and whether they are control tokens.
    pub(super) fn new(names: impl Iterator<Item = (String, TokenId, bool)>) -> Self {
        let mut by_first: Vec<Vec<Name>> = (0..256).map(|_| Vec::new()).collect();
        for (name, id, control) in names {
            if let Some(first) = name.bytes().next() {
                by_first[usize::from(first)].push(Name { name: name.into(), id, control });
            }
        }
        for names in &mut by_first {
            names.sort_by_key(|name| std::cmp::Reverse(name.name.len()));
        }
        Self { by_first }
    }

    /// The names of the control tokens.
    pub(super) fn control_names(&self) -> impl Iterator<Item = &str> {
        self.by_first.iter().flatten().filter(|name| name.control).map(|name| &*name.name)
    }

    /// The control token with this name.
    pub(super) fn control(&self, name: &str) -> Option<TokenId> {
        let names = &self.by_first[usize::from(*name.as_bytes().first()?)];
        names.iter().find(|known| known.control && *known.name == *name).map(|known| known.id)
    }

    /// Where a control token would begin in `text`, or might once other text stands before or
    /// after it.
    pub(super) fn openings(&self, text: &str) -> Vec<usize> {
        let mut openings = Vec::new();
        let head = text.len() - text.trim_start().len();
        let trimmed = text.trim();
        if !trimmed.is_empty() && self.control_names().any(|name| goes_on(name, trimmed)) {
            openings.push(head);
        }
        // Where the text ends within a name; a template may well trim it.
        let end = text.trim_end().len();
        for (at, byte) in text.bytes().enumerate() {
            let rest = &text.as_bytes()[at..];
            let cut = &text.as_bytes()[at..end.max(at)];
            let opens = self.by_first[usize::from(byte)].iter().any(|name| {
                let bytes = name.name.as_bytes();
                name.control
                    && (rest.starts_with(bytes) || (!cut.is_empty() && bytes.starts_with(cut)))
            });
            if opens {
                openings.push(at);
            }
        }
        openings.sort_unstable();
        openings.dedup();
        openings
    }

    /// The parts of `text`; no text part is empty. No token begins after a `mark`.
    pub(super) fn each<'t>(
        &self,
        text: &'t str,
        special: Special,
        mark: Option<char>,
        mut part: impl FnMut(Part<'t>),
    ) {
        let (mut start, mut at, mut blocked) = (0, 0, false);
        let mut utf8 = [0; 4];
        let mark = mark.map(|mark| &*mark.encode_utf8(&mut utf8));
        while let Some(&byte) = text.as_bytes().get(at) {
            let rest = &text.as_bytes()[at..];
            if let Some(mark) = mark.filter(|mark| rest.starts_with(mark.as_bytes())) {
                at += mark.len();
                blocked = true;
                continue;
            }
            if std::mem::take(&mut blocked) {
                at += 1;
                continue;
            }
            let found = self.by_first[usize::from(byte)].iter().find(|name| {
                (special == Special::Parse || !name.control)
                    && rest.starts_with(name.name.as_bytes())
            });
            let Some(name) = found else {
                at += 1;
                continue;
            };
            if start < at {
                part(Part::Text(&text[start..at]));
            }
            part(Part::Token(name.id));
            at += name.name.len();
            start = at;
        }
        if start < text.len() {
            part(Part::Text(&text[start..]));
        }
    }
}

/// Whether `text` could be the middle or the end of `name`, its beginning being elsewhere.
fn goes_on(name: &str, text: &str) -> bool {
    let later = name.char_indices().skip(1).map(|(at, _)| &name[at..]);
    later.into_iter().any(|tail| text.starts_with(tail) || tail.starts_with(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts<'t>(specials: &Specials, text: &'t str, special: Special) -> Vec<Part<'t>> {
        let mut parts = Vec::new();
        specials.each(text, special, Some('\u{fdd0}'), |part| parts.push(part));
        parts
    }

    #[test]
    fn the_longest_name_wins_and_control_tokens_only_when_asked() {
        let names = [("<a>", 0, true), ("<a>>", 1, true), ("  ", 2, false), ("", 3, true)];
        let specials = Specials::new(names.map(|(n, i, c)| (n.to_owned(), i, c)).into_iter());
        let text = "x<a>>é<a><  y";
        assert_eq!(
            parts(&specials, text, Special::Parse),
            [
                Part::Text("x"),
                Part::Token(1),
                Part::Text("é"),
                Part::Token(0),
                Part::Text("<"),
                Part::Token(2),
                Part::Text("y")
            ]
        );
        assert_eq!(
            parts(&specials, text, Special::AsText),
            [Part::Text("x<a>>é<a><"), Part::Token(2), Part::Text("y")]
        );
        assert_eq!(parts(&specials, "", Special::Parse), []);
        assert_eq!(specials.control_names().count(), 2);
        assert_eq!(specials.control("<a>"), Some(0));
        assert_eq!(specials.control("  "), None);
    }

    #[test]
    fn no_token_begins_after_a_mark() {
        let names = [("<a>", 0, true), ("é", 1, true)];
        let specials = Specials::new(names.map(|(n, i, c)| (n.to_owned(), i, c)).into_iter());
        for text in ["\u{fdd0}<a>", "<\u{fdd0}a>", "x\u{fdd0}é", "\u{fdd0}", "\u{fdd0}\u{fdd0}<a>"]
        {
            assert_eq!(parts(&specials, text, Special::Parse), [Part::Text(text)]);
        }
        assert_eq!(
            parts(&specials, "\u{fdd0}<<a>", Special::Parse),
            [Part::Text("\u{fdd0}<"), Part::Token(0)]
        );
    }

    #[test]
    fn names_that_could_come_about_are_found() {
        let names = [("<ab>", 0, true), ("  ", 1, false)];
        let specials = Specials::new(names.map(|(n, i, c)| (n.to_owned(), i, c)).into_iter());
        for (text, openings) in [
            ("", &[][..]),
            ("plain <a text", &[]),
            ("x<ab>y<ab>", &[1, 6]),
            ("<ab>", &[0]),
            ("ends with <", &[10]),
            ("ends with <ab \n", &[10]),
            (" > quote", &[1]),
            ("b> x <a", &[0, 5]),
            ("a", &[0]),
            ("<", &[0]),
            ("  ", &[]),
        ] {
            assert_eq!(specials.openings(text), openings, "{text:?}");
        }
    }
}
