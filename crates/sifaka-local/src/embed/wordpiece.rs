//! Cuts a text into word pieces as BERT without case does.
//!
//! Control characters go, ideographs become words of their own, accents are stripped, letters are
//! made small, words are cut at spaces and around punctuation, and each word is cut into the
//! longest pieces of the vocabulary from its beginning on. A word that cannot be cut this way, or of
//! more than a hundred characters, is one unknown piece.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use sifaka_core::Result;
use unicode_normalization::UnicodeNormalization;

use super::added::{Added, Part, parts};
use super::files::{damaged, json, text, unsupported};
use super::unicode::{is_control, is_mark, is_punctuation};

/// A longer word is not cut into pieces.
const LONGEST_WORD: usize = 100;

/// A vocabulary of word pieces.
pub(super) struct WordPiece {
    /// Pieces that begin a word.
    first: HashMap<Box<str>, u32>,
    /// Pieces that go on with one, without their mark.
    further: HashMap<Box<str>, u32>,
    /// Bytes of the longest piece.
    longest: usize,
    added: Vec<Added>,
    unknown: u32,
    start: u32,
    end: u32,
}

/// What is read of a `tokenizer.json`. All that decides which pieces a text has is checked.
#[derive(Deserialize)]
struct File {
    added_tokens: Vec<Added>,
    normalizer: Value,
    pre_tokenizer: Value,
    model: Model,
}

#[derive(Deserialize)]
struct Model {
    #[serde(default)]
    r#type: Option<String>,
    unk_token: String,
    continuing_subword_prefix: String,
    max_input_chars_per_word: usize,
    vocab: HashMap<String, u32>,
}

impl WordPiece {
    /// Reads `tokenizer.json` of a folder, or its `vocab.txt` when there is none.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("tokenizer.json");
        if path.exists() {
            Self::from_json(&path)
        } else {
            Self::from_list(&folder.join("vocab.txt"))
        }
    }

    fn from_json(path: &Path) -> Result<Self> {
        let file: File = json(path)?;
        let (normalizer, model) = (&file.normalizer, &file.model);
        let is = |value: &Value, name: &str| value["type"] == name;
        let stripped = normalizer["strip_accents"].is_null() || normalizer["strip_accents"] == true;
        let as_we_do = is(normalizer, "BertNormalizer")
            && normalizer["clean_text"] == true
            && normalizer["handle_chinese_chars"] == true
            && normalizer["lowercase"] == true
            && stripped
            && is(&file.pre_tokenizer, "BertPreTokenizer")
            && model.r#type.as_deref().is_none_or(|name| name == "WordPiece")
            && model.unk_token == "[UNK]"
            && model.continuing_subword_prefix == "##"
            && model.max_input_chars_per_word == LONGEST_WORD
            && file.added_tokens.iter().all(Added::is_plain);
        if !as_we_do {
            return Err(unsupported(path, "it is not a tokenizer of BERT without case"));
        }
        Self::new(path, file.model.vocab, file.added_tokens)
    }

    fn from_list(path: &Path) -> Result<Self> {
        let text = text(path)?;
        let vocab: HashMap<String, u32> = text.lines().map(str::to_owned).zip(0..).collect();
        let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
        let added = special
            .iter()
            .filter_map(|name| vocab.get(*name).map(|id| Added::new(*id, name)))
            .collect();
        Self::new(path, vocab, added)
    }

    fn new(path: &Path, vocab: HashMap<String, u32>, added: Vec<Added>) -> Result<Self> {
        let special = |name: &str| {
            vocab.get(name).copied().ok_or_else(|| damaged(path, format!("there is no {name}")))
        };
        let (unknown, start, end) = (special("[UNK]")?, special("[CLS]")?, special("[SEP]")?);
        let longest = vocab.keys().map(String::len).max().unwrap_or_default();
        let (mut first, mut further) = (HashMap::new(), HashMap::new());
        for (piece, id) in vocab {
            match piece.strip_prefix("##") {
                Some(piece) => further.insert(piece.into(), id),
                None => first.insert(piece.into(), id),
            };
        }
        Ok(Self { first, further, longest, added, unknown, start, end })
    }

    /// The largest number a piece has.
    pub(super) fn last_id(&self) -> u32 {
        let ids = self.first.values().chain(self.further.values()).copied();
        ids.chain(self.added.iter().map(|token| token.id)).max().unwrap_or_default()
    }

    /// The pieces of a text between the marks of its start and end, at most `limit` with them.
    pub(super) fn encode(&self, text: &str, limit: usize) -> Vec<u32> {
        let mut ids = vec![self.start];
        self.pieces(text, &mut |id| {
            if ids.len() + 1 >= limit {
                return ControlFlow::Break(());
            }
            ids.push(id);
            ControlFlow::Continue(())
        });
        ids.push(self.end);
        ids
    }

    /// How many pieces a text has, without the marks.
    pub(super) fn count(&self, text: &str) -> usize {
        let mut count = 0;
        self.pieces(text, &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        count
    }

    /// Gives each piece until told to stop. Works word by word, so that the rest of a long text is
    /// not looked at.
    fn pieces(&self, text: &str, each: &mut impl FnMut(u32) -> ControlFlow<()>) {
        let mut clean = String::new();
        for part in parts(&self.added, text) {
            let flow = match part {
                Part::Token(id) => each(id),
                Part::Text(text) => text
                    .split(|c: char| c.is_whitespace() && !is_control(c))
                    .filter(|word| !word.is_empty())
                    .try_for_each(|word| {
                        normalise(word, &mut clean);
                        words(&clean).try_for_each(|word| self.cut(word, each))
                    }),
            };
            if flow.is_break() {
                return;
            }
        }
    }

    /// The pieces of one word.
    fn cut(&self, word: &str, each: &mut impl FnMut(u32) -> ControlFlow<()>) -> ControlFlow<()> {
        if let Some(id) = self.first.get(word).filter(|_| word.len() <= LONGEST_WORD) {
            return each(*id);
        }
        // Known only at its end, so the pieces wait. A word has at most a hundred characters.
        let mut ids = [0; LONGEST_WORD];
        let mut count = 0;
        let mut rest = word;
        if word.chars().count() > LONGEST_WORD {
            return each(self.unknown);
        }
        while !rest.is_empty() {
            let pieces = if count == 0 { &self.first } else { &self.further };
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
            let longest = ends
                .take_while(|end| *end <= self.longest)
                .filter_map(|end| pieces.get(&rest[..end]).map(|id| (end, *id)))
                .last();
            let Some((end, id)) = longest else { return each(self.unknown) };
            ids[count] = id;
            count += 1;
            rest = &rest[end..];
        }
        ids[..count].iter().try_for_each(|id| each(*id))
    }
}

/// Cleans a word that has no spaces. Spaces may come in, around ideographs.
fn normalise(word: &str, clean: &mut String) {
    clean.clear();
    if word.is_ascii() {
        clean
            .extend(word.chars().filter(|c| !c.is_ascii_control()).map(|c| c.to_ascii_lowercase()));
        return;
    }
    let spaced = word.chars().filter(|c| !is_control(*c)).flat_map(|c| {
        let space = is_ideograph(c).then_some(' ');
        space.into_iter().chain([c]).chain(space)
    });
    clean.extend(spaced.nfd().filter(|c| !is_mark(*c)).flat_map(char::to_lowercase));
}

/// Cuts at spaces and around punctuation.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let end = if is_punctuation(first) {
            first.len_utf8()
        } else {
            rest.find(|c: char| c.is_whitespace() || is_punctuation(c)).unwrap_or(rest.len())
        };
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

/// The blocks of ideographs the model's own tokenizer knows; it lacks a part of extension E.
fn is_ideograph(c: char) -> bool {
    matches!(
        u32::from(c),
        0x3400..=0x4DBF
            | 0x4E00..=0x9FFF
            | 0xF900..=0xFAFF
            | 0x20000..=0x2A6DF
            | 0x2A700..=0x2B81F
            | 0x2B920..=0x2CEAF
            | 0x2F800..=0x2FA1F
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn small() -> WordPiece {
        let folder = tempfile::tempdir().unwrap();
        let pieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\n!\nhe\n##llo\n中";
        std::fs::write(folder.path().join("vocab.txt"), pieces).unwrap();
        WordPiece::open(folder.path()).unwrap()
    }

    #[test]
    fn words_become_their_longest_pieces() {
        let pieces = small();
        assert_eq!(pieces.encode("Unaffable!", 256), [2, 5, 6, 7, 8, 3]);
        assert_eq!(pieces.encode("HÉLLO中he", 256), [2, 9, 10, 11, 9, 3]);
        assert_eq!(pieces.encode("unknown he", 256), [2, 1, 9, 3]);
        assert_eq!(pieces.encode("he[SEP]he", 256), [2, 9, 3, 9, 3]);
        assert_eq!(pieces.encode("", 256), [2, 3]);
        assert_eq!(pieces.encode(&"un".repeat(60), 256), [2, 1, 3]);
        assert_eq!(pieces.last_id(), 11);
    }

    #[test]
    fn a_limit_holds_and_the_count_tells() {
        let pieces = small();
        let text = "he ".repeat(500);
        assert_eq!(pieces.encode(&text, 256).len(), 256);
        assert_eq!(pieces.count(&text), 500);
    }

    #[test]
    fn another_tokenizer_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        std::fs::write(
            &path,
            r###"{"added_tokens":[],"normalizer":{"type":"Lowercase"},"pre_tokenizer":null,"model":
            {"unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{}}}"###,
        )
        .unwrap();
        let error = WordPiece::open(folder.path()).err().unwrap();
        assert_eq!(error.kind(), sifaka_core::ErrorKind::Unsupported);
    }

    proptest! {
        #[test]
        fn the_count_is_that_of_the_pieces(text in "\\PC{0,60}|[a-z!é中\u{301} ]{0,60}") {
            let pieces = small();
            prop_assert_eq!(pieces.count(&text) + 2, pieces.encode(&text, usize::MAX).len());
        }
    }
}
