//! Tokens that are found in a text as they are written, before anything else is done to it.

use serde::Deserialize;

/// A token as `tokenizer.json` lists it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Added {
    pub id: u32,
    pub content: String,
    #[serde(default)]
    pub single_word: bool,
    #[serde(default)]
    pub lstrip: bool,
    #[serde(default)]
    pub rstrip: bool,
    #[serde(default)]
    pub normalized: bool,
}

impl Added {
    pub(super) fn new(id: u32, content: &str) -> Self {
        let content = content.to_owned();
        Self { id, content, single_word: false, lstrip: false, rstrip: false, normalized: false }
    }

    /// Whether it is found as written and nothing else.
    pub(super) fn is_plain(&self) -> bool {
        let special = self.single_word || self.lstrip || self.rstrip || self.normalized;
        !special && !self.content.is_empty()
    }
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    Text(&'a str),
    Token(u32),
}

/// Cuts a text at the tokens: the leftmost first, and the longest of those that begin there.
pub(super) fn parts<'a>(tokens: &'a [Added], text: &'a str) -> impl Iterator<Item = Part<'a>> {
    let mut rest = text;
    let mut found: Option<&Added> = None;
    std::iter::from_fn(move || {
        if let Some(token) = found.take() {
            return Some(Part::Token(token.id));
        }
        if rest.is_empty() {
            return None;
        }
        let hit = (0..rest.len()).find_map(|at| {
            let here = rest.as_bytes().get(at..)?;
            let at_token = |token: &&Added| {
                // Most of the time the first byte tells, without a comparison of texts.
                token.content.as_bytes().first() == here.first()
                    && here.starts_with(token.content.as_bytes())
            };
            let token = tokens.iter().filter(at_token).max_by_key(|token| token.content.len())?;
            Some((at, token))
        });
        let Some((at, token)) = hit else {
            return Some(Part::Text(std::mem::take(&mut rest)));
        };
        let before = &rest[..at];
        rest = &rest[at + token.content.len()..];
        if before.is_empty() {
            return Some(Part::Token(token.id));
        }
        found = Some(token);
        Some(Part::Text(before))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_its_tokens() {
        let tokens = [Added::new(1, "<s>"), Added::new(2, "</s>"), Added::new(3, "<s><s>")];
        let cut = |text| parts(&tokens, text).collect::<Vec<_>>();
        assert_eq!(cut(""), []);
        assert_eq!(cut("a<b"), [Part::Text("a<b")]);
        assert_eq!(cut("é</s>b"), [Part::Text("é"), Part::Token(2), Part::Text("b")]);
        assert_eq!(cut("<s><s><s>"), [Part::Token(3), Part::Token(1)]);
    }
}
