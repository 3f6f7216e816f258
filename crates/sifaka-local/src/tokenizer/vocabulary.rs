//! The tokens of a file and what they are for.

use std::collections::{BTreeSet, HashMap};

use sifaka_core::Result;

use super::{TokenId, damaged};
use crate::gguf::{Array, Gguf, Strings};

/// More tokens than any model has; a file with more is damaged.
const MAX_TOKENS: usize = 1 << 24;

/// Tokens that end an answer in the models that have them, whatever their files say.
const END_NAMES: &[&str] = &[
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
    "<EOT>",
    "[EOT]",
    "[EOS]",
    "<eos>",
    "</s>",
];

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    /// Steers the model, and is no text. The unknown token counts as one.
    Control,
    /// Text that is always one token.
    Defined,
    Byte,
}

/// The tokens as the file has them, and the special ones among them.
#[derive(Debug)]
pub(super) struct Raw<'f> {
    pub(super) tokens: Vec<&'f str>,
    pub(super) kinds: Vec<Kind>,
    pub(super) bos: Option<TokenId>,
    pub(super) eos: Option<TokenId>,
    pub(super) unknown: Option<TokenId>,
    pub(super) ends: BTreeSet<TokenId>,
}

impl<'f> Raw<'f> {
    pub(super) fn read(gguf: &'f Gguf) -> Result<Self> {
        let key = "tokenizer.ggml.tokens";
        let Array::Strings(tokens) = gguf.array(key)? else {
            return Err(damaged(gguf, format!("{key} is no list of strings")));
        };
        if tokens.is_empty() || tokens.len() > MAX_TOKENS {
            return Err(damaged(gguf, format!("{} tokens", tokens.len())));
        }
        let texts = tokens.iter().map(str::from_utf8).collect::<Result<Vec<_>, _>>();
        let Ok(tokens) = texts else {
            return Err(damaged(gguf, "a token is not UTF-8"));
        };
        let mut raw = Self {
            kinds: kinds(gguf, tokens.len())?,
            bos: token_id(gguf, "bos", tokens.len())?,
            eos: token_id(gguf, "eos", tokens.len())?,
            unknown: token_id(gguf, "unknown", tokens.len())?,
            ends: BTreeSet::new(),
            tokens,
        };
        for name in ["eos", "eot", "eom"] {
            raw.ends.extend(token_id(gguf, name, raw.tokens.len())?);
        }
        raw.find_ends();
        Ok(raw)
    }

    /// Adds the ends that are known by name. Some files have them as ordinary text, which would let
    /// a model write them into its answer.
    fn find_ends(&mut self) {
        for (id, token) in (0..).zip(&self.tokens) {
            let kind = &mut self.kinds[id as usize];
            // A short name may well be a piece of markup that was merged like any other.
            let marked = *kind != Kind::Normal || token.starts_with("<|");
            if END_NAMES.contains(token) && marked {
                *kind = Kind::Control;
                self.ends.insert(id);
            }
        }
    }

    /// The ids by the tokens' text. Of two tokens with one text the later is meant, as in llama.cpp.
    pub(super) fn by_text(&self) -> HashMap<&'f str, TokenId> {
        (0..).zip(&self.tokens).map(|(id, token)| (*token, id)).collect()
    }
}

fn kinds(gguf: &Gguf, count: usize) -> Result<Vec<Kind>> {
    let key = "tokenizer.ggml.token_type";
    let types: Vec<u64> = match gguf.array_opt(key)? {
        None => return Ok(vec![Kind::Normal; count]),
        Some(Array::I32s(types)) => types.iter().map(|kind| *kind as u64).collect(),
        Some(Array::U32s(types)) => types.iter().map(|kind| u64::from(*kind)).collect(),
        Some(_) => return Err(damaged(gguf, format!("{key} is no list of numbers"))),
    };
    if types.len() != count {
        return Err(damaged(gguf, format!("{count} tokens, but {} types of them", types.len())));
    }
    let kind = |kind: &u64| match kind {
        2 | 3 => Kind::Control,
        4 => Kind::Defined,
        6 => Kind::Byte,
        _ => Kind::Normal,
    };
    Ok(types.iter().map(kind).collect())
}

fn token_id(gguf: &Gguf, name: &str, count: usize) -> Result<Option<TokenId>> {
    let key = format!("tokenizer.ggml.{name}_token_id");
    match gguf.u64_opt(&key)? {
        Some(id) if id >= count as u64 => {
            Err(damaged(gguf, format!("{key} is {id}, but there are {count} tokens")))
        }
        id => Ok(id.map(|id| id as TokenId)),
    }
}

/// The tokens as bytes of text.
#[derive(Debug)]
pub(super) struct Vocabulary {
    pub(super) bytes: Strings,
    pub(super) kinds: Vec<Kind>,
}

impl Vocabulary {
    pub(super) fn bytes(&self, id: TokenId) -> &[u8] {
        self.bytes.get(id as usize).unwrap_or_default()
    }

    pub(super) fn is_control(&self, id: TokenId) -> bool {
        self.kinds.get(id as usize) == Some(&Kind::Control)
    }
}
