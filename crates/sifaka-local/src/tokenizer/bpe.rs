//! Byte-level byte-pair encoding, which GPT-2 began with.

use std::collections::HashMap;

use sifaka_core::{Error, ErrorKind, Result};

use super::bytes::Alphabet;
use super::hash::Seeded;
use super::merge::{Merger, NONE};
use super::split::Split;
use super::unicode::Classes;
use super::vocabulary::{Kind, Raw};
use super::{COMPONENT, TokenId, damaged};
use crate::gguf::{Array, Gguf, Strings};

/// A word is cut here at the latest, so that its symbols can be counted in 32 bits.
const LONGEST: usize = 1 << 28;

#[derive(Debug)]
pub(super) struct Bpe {
    split: Split,
    classes: Classes,
    /// The token of each byte. A vocabulary may lack some that its makers never saw.
    letters: [TokenId; 256],
    /// What two tokens make, and in which order pairs are merged.
    pairs: HashMap<u64, (u32, TokenId), Seeded>,
    /// The tokens by their bytes, where a word that is a token is not merged at all.
    whole: Option<HashMap<Box<[u8]>, TokenId>>,
}

impl Bpe {
    pub(super) fn read(gguf: &Gguf, raw: &Raw<'_>) -> Result<(Self, Strings)> {
        let pre = gguf.str_opt("tokenizer.ggml.pre")?.unwrap_or("default");
        let Some((split, whole)) = Split::named(pre) else {
            let message = format!(
                "{}: it cuts text like \"{pre}\", which is not known",
                gguf.path().display()
            );
            let known: Vec<_> = Split::names().collect();
            return Err(Error::new(ErrorKind::Unsupported, COMPONENT, "open", message).suggest(
                format!("use a model whose tokenizer.ggml.pre is one of {}", known.join(", ")),
            ));
        };
        let alphabet = Alphabet::new();
        let text = |(token, kind): (&&str, &Kind)| match kind {
            Kind::Normal | Kind::Byte => {
                alphabet.decode(token).unwrap_or_else(|| token.as_bytes().to_vec())
            }
            Kind::Control | Kind::Defined => token.as_bytes().to_vec(),
        };
        let bytes: Strings = raw.tokens.iter().zip(&raw.kinds).map(text).collect();

        let mut letters = [NONE; 256];
        let mut words = HashMap::new();
        for (id, (token, kind)) in (0..).zip(bytes.iter().zip(&raw.kinds)) {
            if matches!(kind, Kind::Control | Kind::Defined) {
                continue;
            }
            if let [byte] = token {
                letters[usize::from(*byte)] = id;
            }
            if whole {
                words.insert(token.into(), id);
            }
        }
        let pairs = pairs(gguf, raw)?;
        let whole = whole.then_some(words);
        Ok((Self { split, classes: Classes::new()?, letters, pairs, whole }, bytes))
    }

    /// Whether a word that is a token is taken as it is.
    pub(super) fn takes_whole_words(&self) -> bool {
        self.whole.is_some()
    }

    pub(super) fn encode(&self, text: &str, out: &mut Vec<TokenId>) {
        let mut merger = Merger::default();
        self.split.each(&self.classes, text, |word| {
            for word in word.as_bytes().chunks(LONGEST) {
                self.word(word, &mut merger, out);
            }
        });
    }

    fn word(&self, word: &[u8], merger: &mut Merger, out: &mut Vec<TokenId>) {
        if let Some(&id) = self.whole.as_ref().and_then(|whole| whole.get(word)) {
            out.push(id);
            return;
        }
        merger.clear();
        word.iter().for_each(|byte| merger.push(self.letters[usize::from(*byte)], 1));
        merger.merge(|left, right| self.pairs.get(&pair(left.id, right.id)).copied());
        // A byte that is no token is left out, as llama.cpp does: there is nothing to say it with.
        out.extend(merger.symbols().map(|symbol| symbol.id).filter(|id| *id != NONE));
    }
}

fn pair(left: TokenId, right: TokenId) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

fn pairs(gguf: &Gguf, raw: &Raw<'_>) -> Result<HashMap<u64, (u32, TokenId), Seeded>> {
    let key = "tokenizer.ggml.merges";
    let Array::Strings(merges) = gguf.array(key)? else {
        return Err(damaged(gguf, format!("{key} is no list of strings")));
    };
    let ids = raw.by_text();
    let mut pairs = HashMap::with_capacity_and_hasher(merges.len(), Seeded::default());
    for (order, merge) in (0..).zip(merges.iter()) {
        let found = str::from_utf8(merge).ok().and_then(|merge| {
            let (left, right) = merge.split_once(' ')?;
            let joined = ids.get(format!("{left}{right}").as_str())?;
            Some((pair(*ids.get(left)?, *ids.get(right)?), *joined))
        });
        let Some((pair, joined)) = found else {
            let merge = String::from_utf8_lossy(merge);
            return Err(damaged(gguf, format!("the merge \"{merge}\" is not of known tokens")));
        };
        // Or a text could be merged into a token that steers the model.
        if raw.kinds[joined as usize] == Kind::Control {
            continue;
        }
        pairs.entry(pair).or_insert((order, joined));
    }
    Ok(pairs)
}
