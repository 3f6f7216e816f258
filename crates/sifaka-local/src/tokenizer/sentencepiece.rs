//! Byte-pair encoding over characters with scores, as SentencePiece does it for the first Llamas.

use std::collections::HashMap;

use sifaka_core::Result;

use super::merge::{Merger, NONE};
use super::vocabulary::{Kind, Raw};
use super::{TokenId, damaged};
use crate::gguf::{Array, Gguf, Strings};

/// What stands for a space within tokens.
const SPACE: &str = "▁";
/// A text is cut here at the latest, so that its symbols can be counted in 32 bits.
const LONGEST: usize = 1 << 28;

#[derive(Debug)]
pub(super) struct SentencePiece {
    /// The tokens by their text, with the order in which they are merged.
    tokens: HashMap<Box<str>, (u32, TokenId)>,
    longest: usize,
    letters: [TokenId; 256],
    space_first: bool,
}

impl SentencePiece {
    pub(super) fn read(gguf: &Gguf, raw: &Raw<'_>) -> Result<(Self, Strings)> {
        let key = "tokenizer.ggml.scores";
        let Array::F32s(scores) = gguf.array(key)? else {
            return Err(damaged(gguf, format!("{key} is no list of floats")));
        };
        if scores.len() != raw.tokens.len() || scores.iter().any(|score| score.is_nan()) {
            return Err(damaged(gguf, format!("{key} does not have a number for every token")));
        }
        let mut letters = [raw.unknown.unwrap_or(NONE); 256];
        let mut tokens: HashMap<Box<str>, _> = HashMap::with_capacity(raw.tokens.len());
        let mut bytes = Strings::new();
        for (id, (token, kind)) in (0..).zip(raw.tokens.iter().zip(&raw.kinds)) {
            match (kind, byte(token)) {
                (Kind::Byte, Some(byte)) => {
                    letters[usize::from(byte)] = id;
                    bytes.push(&[byte]);
                    continue;
                }
                (Kind::Byte, None) => {
                    return Err(damaged(gguf, format!("the token {token} stands for no byte")));
                }
                (Kind::Normal, _) => bytes.push(token.replace(SPACE, " ").as_bytes()),
                (Kind::Control | Kind::Defined, _) => bytes.push(token.as_bytes()),
            }
            // A text must not be merged into a token that steers the model.
            if *kind != Kind::Control {
                tokens.insert((*token).into(), (order(scores[id as usize]), id));
            }
        }
        let longest = tokens.keys().map(|token| token.len()).max().unwrap_or(0);
        let space_first = gguf.bool_opt("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
        Ok((Self { tokens, longest, letters, space_first }, bytes))
    }

    /// Adds the tokens of `text`; `first` says that nothing but special tokens came before.
    pub(super) fn encode(&self, text: &str, first: bool, out: &mut Vec<TokenId>) {
        let mut escaped = String::with_capacity(text.len() + SPACE.len());
        if first && self.space_first {
            escaped.push_str(SPACE);
        }
        for (at, part) in text.split(' ').enumerate() {
            if at > 0 {
                escaped.push_str(SPACE);
            }
            escaped.push_str(part);
        }
        let mut rest = escaped.as_str();
        let mut merger = Merger::default();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.floor_char_boundary(LONGEST));
            self.merge(now, &mut merger, out);
            rest = later;
        }
    }

    fn merge(&self, text: &str, merger: &mut Merger, out: &mut Vec<TokenId>) {
        let token = |text: &str| self.tokens.get(text).copied();
        merger.clear();
        let mut utf8 = [0; 4];
        for c in text.chars() {
            let c = c.encode_utf8(&mut utf8);
            merger.push(token(c).map_or(NONE, |(_, id)| id), c.len() as u32);
        }
        merger.merge(|left, right| {
            let len = (left.len + right.len) as usize;
            if len > self.longest { None } else { token(&text[left.start as usize..][..len]) }
        });
        for symbol in merger.symbols() {
            if symbol.id != NONE {
                out.push(symbol.id);
                continue;
            }
            // A character that is no token is spelt in bytes.
            let bytes = text[symbol.start as usize..][..symbol.len as usize].bytes();
            let letters = bytes.map(|byte| self.letters[usize::from(byte)]);
            out.extend(letters.filter(|id| *id != NONE));
        }
    }
}

/// The byte of a token such as `<0x0A>`.
fn byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    let plain = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    plain.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

/// A number that is lower the higher the score, in the order of the floats.
fn order(score: f32) -> u32 {
    // Adding zero makes the negative zero the same as the other.
    let bits = (score + 0.0).to_bits();
    if bits >> 31 == 1 { bits } else { !bits & 0x7fff_ffff }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_score_comes_first() {
        let scores = [f32::INFINITY, 1e9, 2.5, 0.0, -1e-9, -1.0, -2.0, -1e30];
        assert!(scores.iter().map(|score| order(*score)).is_sorted());
        assert_eq!(order(0.0), order(-0.0));
        assert!(order(-1.0) < order(-2.0) && order(2.0) < order(1.0));
    }

    #[test]
    fn byte_tokens_are_recognised() {
        assert_eq!(byte("<0x0A>"), Some(10));
        assert_eq!(byte("<0xff>"), Some(255));
        for token in ["<0x0>", "<0x0AB>", "<0x+1>", "0x0A", "<0xéa>"] {
            assert_eq!(byte(token), None);
        }
    }
}
