//! Cuts a text into tokens by merging pairs, as a `tokenizer.json` of the Llama 2 kind says.
//!
//! A text gets a mark in front and one for each space. Its characters are the first tokens, and
//! those that have none are spelled in bytes. Then, of all neighbours that the list of merges has,
//! the pair that stands first in the list becomes one token, until there is none left.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use sifaka_core::Result;

use super::added::{Added, Part, parts};
use super::files::{damaged, json, unsupported};

/// Stands for a space.
const MARK: char = '▁';

/// No token.
const NONE: u32 = u32::MAX;

/// A vocabulary with its merges.
pub(super) struct Bpe {
    ascii: [u32; 128],
    chars: Map<char, u32>,
    /// Words that become one token, which most do.
    whole: Map<Box<str>, u32>,
    bytes: Option<Box<[u32; 256]>>,
    merges: Map<u64, Merge>,
    unknown: Option<u32>,
    fuse_unknown: bool,
    added: Vec<Added>,
    steps: Vec<Step>,
    /// Whether no token has a mark behind something else, so that words can be cut one by one.
    by_word: bool,
    last_id: u32,
}

/// The keys come from a vocabulary and not from whoever writes the text, so the hash need not
/// withstand an attack.
type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// What two neighbours become, and how early.
#[derive(Clone, Copy)]
struct Merge {
    rank: u32,
    id: u32,
}

/// Something done to a text before it is cut.
#[derive(Deserialize)]
#[serde(tag = "type")]
enum Step {
    Sequence { normalizers: Vec<Step> },
    Prepend { prepend: String },
    Replace { pattern: Pattern, content: String },
}

#[derive(Deserialize)]
struct Pattern {
    #[serde(rename = "String")]
    text: String,
}

#[derive(Deserialize)]
struct File {
    added_tokens: Vec<Added>,
    normalizer: Option<Value>,
    pre_tokenizer: Option<Value>,
    model: Model,
}

#[derive(Deserialize)]
struct Model {
    #[serde(default)]
    r#type: Option<String>,
    dropout: Option<f32>,
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    #[serde(default)]
    fuse_unk: bool,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
    vocab: HashMap<String, u32>,
    merges: Vec<Pair>,
}

/// Both ways of writing a pair are in use.
#[derive(Deserialize)]
#[serde(untagged)]
enum Pair {
    Line(String),
    Two(String, String),
}

impl Bpe {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let File { added_tokens, normalizer, pre_tokenizer, model } = json(path)?;
        let empty = |text: &Option<String>| text.as_deref().is_none_or(str::is_empty);
        let as_we_do = pre_tokenizer.is_none()
            && model.r#type.as_deref().is_none_or(|name| name == "BPE")
            && model.dropout.is_none_or(|dropout| dropout == 0.0)
            && empty(&model.continuing_subword_prefix)
            && empty(&model.end_of_word_suffix)
            && !model.ignore_merges
            && added_tokens.iter().all(Added::is_plain);
        if !as_we_do {
            return Err(unsupported(path, "it is not a tokenizer of the Llama 2 kind"));
        }
        let steps = match normalizer {
            None => Vec::new(),
            Some(value) => {
                let step: Step = serde_json::from_value(value).map_err(|error| {
                    unsupported(path, "its normalizer does what is not known here")
                        .with_source(error)
                })?;
                vec![step]
            }
        };
        Self::new(path, &model, added_tokens, steps)
    }

    fn new(path: &Path, model: &Model, added: Vec<Added>, steps: Vec<Step>) -> Result<Self> {
        let vocab = &model.vocab;
        let known = |token: &str| {
            vocab.get(token).copied().ok_or_else(|| damaged(path, format!("no token {token:?}")))
        };
        let mut merges = Map::default();
        for (rank, pair) in model.merges.iter().enumerate() {
            let (left, right) = match pair {
                Pair::Two(left, right) => (left.as_str(), right.as_str()),
                Pair::Line(line) => line
                    .split_once(' ')
                    .ok_or_else(|| damaged(path, format!("merge {rank} is not a pair")))?,
            };
            let id = known(&format!("{left}{right}"))?;
            let rank = u32::try_from(rank).map_err(|_| damaged(path, "too many merges"))?;
            // Of a pair that is listed twice the later counts, as in the original.
            merges.insert(key(known(left)?, known(right)?), Merge { rank, id });
        }
        let mut chars = Map::default();
        for (token, id) in vocab {
            let mut letters = token.chars();
            if let (Some(letter), None) = (letters.next(), letters.next()) {
                chars.insert(letter, *id);
            }
        }
        let mut ascii = [NONE; 128];
        for (byte, id) in (0_u8..).zip(&mut ascii) {
            *id = chars.get(&char::from(byte)).copied().unwrap_or(NONE);
        }
        let mut bytes = None;
        if model.byte_fallback {
            let mut table = Box::new([NONE; 256]);
            for (byte, id) in table.iter_mut().enumerate() {
                *id = vocab.get(&format!("<0x{byte:02X}>")).copied().unwrap_or(NONE);
            }
            bytes = Some(table);
        }
        let unknown = model.unk_token.as_deref().map(known).transpose()?;
        let by_word = chars.contains_key(&MARK)
            && vocab.keys().all(|token| !token.trim_start_matches(MARK).contains(MARK));
        let ids = vocab.values().copied().chain(added.iter().map(|token| token.id));
        let last_id = ids.max().unwrap_or_default();
        let fuse_unknown = model.fuse_unk;
        let mut bpe = Self {
            ascii,
            chars,
            whole: Map::default(),
            bytes,
            merges,
            unknown,
            fuse_unknown,
            added,
            steps,
            by_word,
            last_id,
        };
        bpe.remember_words(vocab.keys());
        Ok(bpe)
    }

    /// Remembers which tokens a text of just their letters becomes: all that merges can reach.
    fn remember_words<'a>(&mut self, tokens: impl Iterator<Item = &'a String>) {
        let mut line = Line::default();
        for token in tokens.filter(|token| self.by_word && token.starts_with(MARK)) {
            let (mut last, mut count) = (NONE, 0);
            self.spell(token, &mut line.ids);
            line.merge(&self.merges, &mut |id| (last, count) = (id, count + 1));
            if count == 1 {
                self.whole.insert(token.as_str().into(), last);
            }
        }
    }

    /// The largest number a token has.
    pub(super) fn last_id(&self) -> u32 {
        self.last_id
    }

    /// The number of a token that is found as written.
    pub(super) fn special(&self, content: &str) -> Option<u32> {
        self.added.iter().find(|token| token.content == content).map(|token| token.id)
    }

    /// Gives each token of a text, without marks of its start or end.
    pub(super) fn tokens(&self, text: &str, mut each: impl FnMut(u32)) {
        let mut line = Line::default();
        for part in parts(&self.added, text) {
            let text = match part {
                Part::Token(id) => {
                    each(id);
                    continue;
                }
                Part::Text(text) => self.steps.iter().fold(text.to_owned(), apply),
            };
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (word, after) =
                    rest.split_at(if self.by_word { word_end(rest) } else { rest.len() });
                match self.whole.get(word) {
                    Some(id) => each(*id),
                    None => {
                        self.spell(word, &mut line.ids);
                        line.merge(&self.merges, &mut each);
                    }
                }
                rest = after;
            }
        }
    }

    /// The tokens of single characters.
    fn spell(&self, word: &str, ids: &mut Vec<u32>) {
        ids.clear();
        let mut after_unknown = false;
        for c in word.chars() {
            let id = match self.ascii.get(c as usize) {
                Some(id) => *id,
                None => self.chars.get(&c).copied().unwrap_or(NONE),
            };
            if id != NONE {
                ids.push(id);
                after_unknown = false;
                continue;
            }
            let mut buffer = [0; 4];
            let spelled = c.encode_utf8(&mut buffer).bytes();
            if let Some(bytes) = &self.bytes
                && spelled.clone().all(|byte| bytes[usize::from(byte)] != NONE)
            {
                ids.extend(spelled.map(|byte| bytes[usize::from(byte)]));
                after_unknown = false;
            } else if let Some(unknown) = self.unknown {
                if !(after_unknown && self.fuse_unknown) {
                    ids.push(unknown);
                }
                after_unknown = true;
            }
        }
    }
}

fn apply(text: String, step: &Step) -> String {
    match step {
        Step::Sequence { normalizers } => normalizers.iter().fold(text, apply),
        Step::Prepend { .. } if text.is_empty() => text,
        Step::Prepend { prepend } => prepend.to_owned() + &text,
        Step::Replace { pattern, content } => text.replace(&pattern.text, content),
    }
}

/// Where the first word ends: before a mark that follows something else.
fn word_end(text: &str) -> usize {
    let marks = text.len() - text.trim_start_matches(MARK).len();
    text[marks..].find(MARK).map_or(text.len(), |end| marks + end)
}

/// The two tokens of a pair in one number.
fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// A word while its tokens are merged: a list linked both ways, so that a merge costs the same
/// wherever it is, and a heap of the pairs to merge, so that a long word does not cost its square.
#[derive(Default)]
struct Line {
    ids: Vec<u32>,
    next: Vec<u32>,
    before: Vec<u32>,
    pairs: BinaryHeap<Reverse<(u32, u32, u32)>>,
}

impl Line {
    fn merge(&mut self, merges: &Map<u64, Merge>, each: &mut impl FnMut(u32)) {
        // No text is near four billion characters; one that is would be cut short of its last.
        let count = u32::try_from(self.ids.len()).unwrap_or(NONE - 1);
        self.next.clear();
        self.next.extend((1..=count).map(|next| if next == count { NONE } else { next }));
        self.before.clear();
        self.before.extend((0..count).map(|at| at.wrapping_sub(1)));
        self.pairs.clear();
        for at in 0..count {
            self.offer(merges, at);
        }
        while let Some(Reverse((_, at, id))) = self.pairs.pop() {
            let right = self.next[at as usize];
            // What was offered may be merged into something else by now. Then either there is no
            // such pair any more, or it makes another token.
            if self.ids[at as usize] == NONE || right == NONE {
                continue;
            }
            let pair = key(self.ids[at as usize], self.ids[right as usize]);
            if merges.get(&pair).is_none_or(|merge| merge.id != id) {
                continue;
            }
            self.ids[at as usize] = id;
            self.ids[right as usize] = NONE;
            let after = self.next[right as usize];
            self.next[at as usize] = after;
            if after != NONE {
                self.before[after as usize] = at;
            }
            self.offer(merges, at);
            if self.before[at as usize] != NONE {
                self.offer(merges, self.before[at as usize]);
            }
        }
        self.ids.iter().filter(|id| **id != NONE).for_each(|id| each(*id));
    }

    /// Puts the pair that begins here on the heap, if it can be merged.
    fn offer(&mut self, merges: &Map<u64, Merge>, at: u32) {
        let right = self.next[at as usize];
        if right == NONE {
            return;
        }
        let pair = key(self.ids[at as usize], self.ids[right as usize]);
        if let Some(merge) = merges.get(&pair) {
            self.pairs.push(Reverse((merge.rank, at, merge.id)));
        }
    }
}

/// Hashes a character, a word or a pair of tokens.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for eight in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded[..eight.len()].copy_from_slice(eight);
            self.write_u64(u64::from_le_bytes(padded));
        }
    }
    fn write_u8(&mut self, n: u8) {
        self.write_u64(u64::from(n));
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    fn write_u64(&mut self, n: u64) {
        let mixed = (self.0 ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn small(merges: &[&str], by_word: bool) -> Bpe {
        let mut tokens: Vec<String> = ["<unk>", "▁", "a", "b", "c"].map(String::from).to_vec();
        tokens.extend((0..=255).map(|byte| format!("<0x{byte:02X}>")));
        tokens.extend(merges.iter().map(|pair| pair.replace(' ', "")));
        let mut vocab: HashMap<String, u32> = HashMap::new();
        for token in tokens {
            let id = vocab.len() as u32;
            vocab.entry(token).or_insert(id);
        }
        let text = serde_json::json!({
            "added_tokens": [],
            "normalizer": {"type": "Sequence", "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            ]},
            "pre_tokenizer": null,
            "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "fuse_unk": true,
                "byte_fallback": true, "vocab": vocab, "merges": merges},
        });
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        std::fs::write(&path, text.to_string()).unwrap();
        let mut bpe = Bpe::open(&path).unwrap();
        if !by_word {
            bpe.by_word = false;
            bpe.whole.clear();
        }
        bpe
    }

    fn tokens(bpe: &Bpe, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        bpe.tokens(text, |id| ids.push(id));
        ids
    }

    /// The rule itself, without any haste: merge the leftmost pair of the lowest rank.
    fn slowly(bpe: &Bpe, text: &str) -> Vec<u32> {
        let text = bpe.steps.iter().fold(text.to_owned(), apply);
        let mut ids = Vec::new();
        bpe.spell(&text, &mut ids);
        loop {
            let best = ids
                .windows(2)
                .enumerate()
                .filter_map(|(at, pair)| Some((*bpe.merges.get(&key(pair[0], pair[1]))?, at)))
                .min_by_key(|(merge, at)| (merge.rank, *at));
            let Some((merge, at)) = best else { return ids };
            ids.splice(at..at + 2, [merge.id]);
        }
    }

    const MERGES: [&str; 11] =
        ["a b", "▁ a", "b c", "ab c", "▁ ▁", "a a", "▁▁ ▁▁", "▁▁ ▁", "▁ ▁▁▁", "▁a b", "aa aa"];

    #[test]
    fn pairs_merge_in_the_order_of_the_list() {
        let bpe = small(&MERGES, true);
        assert!(bpe.by_word);
        assert!(tokens(&bpe, "").is_empty());
        assert_eq!(tokens(&bpe, "abc"), slowly(&bpe, "abc"));
        assert_eq!(tokens(&bpe, "é").len(), 3, "a mark and two bytes");
    }

    #[test]
    fn a_very_long_word_is_cut_in_time() {
        let bpe = small(&MERGES, true);
        assert_eq!(tokens(&bpe, &"a".repeat(400_000)).len(), 100_002);
    }

    #[test]
    fn a_merge_of_what_is_no_token_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        let text = r#"{"added_tokens":[],"normalizer":null,"pre_tokenizer":null,
            "model":{"vocab":{"a":0},"merges":["a b"]}}"#;
        std::fs::write(&path, text).unwrap();
        assert_eq!(Bpe::open(&path).err().unwrap().kind(), sifaka_core::ErrorKind::Corrupt);
    }

    proptest! {
        #[test]
        fn it_is_the_rule(text in "[abc x]{0,40}") {
            let by_word = small(&MERGES, true);
            let whole = small(&MERGES, false);
            let want = slowly(&whole, &text);
            prop_assert_eq!(if text.is_empty() { vec![] } else { want.clone() }, tokens(&whole, &text));
            prop_assert_eq!(want, tokens(&by_word, &text));
        }
    }
}
