//! Text to tokens and back, with the vocabulary that a GGUF file carries.
//!
//! Two families are read: byte-level byte-pair encoding (`gpt2` in the file; SmolLM, Llama 3, Qwen
//! and many more) and SentencePiece with scores (`llama`; the first Llamas, Mistral). The tokens are
//! those of llama.cpp for the same file.
//!
//! A text of a user must not be able to steer the model by naming a control token. So names are only
//! looked for when [`Special::Parse`] says that the text can be trusted.

mod bpe;
mod bytes;
mod hash;
mod merge;
mod sentencepiece;
mod special;
mod split;
mod unicode;
mod utf8;
mod vocabulary;

use std::collections::BTreeSet;

use sifaka_core::{Error, ErrorKind, Result};

use bpe::Bpe;
use sentencepiece::SentencePiece;
use special::{Part, Specials};
use vocabulary::{Kind, Raw, Vocabulary};

use crate::gguf::Gguf;

pub use utf8::Utf8;

const COMPONENT: &str = "tokenizer";

/// The number of a token.
pub type TokenId = u32;

/// What the name of a control token in a text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// The token itself: for templates and other texts that can be trusted.
    Parse,
    /// Letters like any others: for what users and models write.
    AsText,
}

/// Turns text into tokens and tokens into text.
#[derive(Debug)]
pub struct Tokenizer {
    vocabulary: Vocabulary,
    specials: Specials,
    model: Model,
    bos: Option<TokenId>,
    eos: Option<TokenId>,
    ends: BTreeSet<TokenId>,
    add_bos: bool,
}

#[derive(Debug)]
enum Model {
    Bpe(Bpe),
    SentencePiece(SentencePiece),
}

impl Tokenizer {
    /// The tokenizer of a file.
    ///
    /// # Errors
    /// The file has none, has one of a family that is not read, or its metadata contradict
    /// themselves.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self> {
        let family = gguf.str("tokenizer.ggml.model")?;
        if !matches!(family, "gpt2" | "llama") {
            let message =
                format!("{}: its tokenizer is of the family \"{family}\"", gguf.path().display());
            return Err(Error::new(ErrorKind::Unsupported, COMPONENT, "open", message)
                .suggest("use a model whose tokenizer.ggml.model is gpt2 or llama"));
        }
        let mut raw = Raw::read(gguf)?;
        let count = raw.tokens.len() as TokenId;
        let (model, bytes) = if family == "gpt2" {
            let (bpe, bytes) = Bpe::read(gguf, &raw)?;
            (Model::Bpe(bpe), bytes)
        } else {
            // What SentencePiece takes when nothing is said.
            let or = |id: Option<TokenId>, usual: TokenId| id.or((usual < count).then_some(usual));
            raw.unknown = or(raw.unknown, 0);
            raw.bos = or(raw.bos, 1);
            raw.eos = or(raw.eos, 2);
            raw.ends.extend(raw.eos);
            let (pieces, bytes) = SentencePiece::read(gguf, &raw)?;
            (Model::SentencePiece(pieces), bytes)
        };
        let whole_first = matches!(&model, Model::Bpe(bpe) if bpe.takes_whole_words());
        let usual = whole_first || family == "llama";
        let add_bos = gguf.bool_opt("tokenizer.ggml.add_bos_token")?.unwrap_or(usual);
        let named =
            (0..).zip(raw.tokens.iter().zip(&raw.kinds)).filter_map(|(id, (token, kind))| {
                let special = matches!(kind, Kind::Control | Kind::Defined);
                special.then(|| ((*token).to_owned(), id, *kind == Kind::Control))
            });
        Ok(Self {
            specials: Specials::new(named),
            vocabulary: Vocabulary { bytes, kinds: raw.kinds },
            model,
            bos: raw.bos,
            eos: raw.eos,
            ends: raw.ends,
            add_bos,
        })
    }

    /// The tokens of a text. A token for the beginning is not added; see
    /// [`add_bos`](Self::add_bos).
    ///
    /// Bytes for which a byte-level vocabulary has no token are left out, as llama.cpp does. A
    /// vocabulary with a space before the first word says so with a token more.
    #[must_use]
    pub fn encode(&self, text: &str, special: Special) -> Vec<TokenId> {
        let mut out = Vec::with_capacity(text.len() / 3);
        self.encode_parts(text, special, &mut true, &mut out);
        out
    }

    /// As [`encode`](Self::encode) with [`Special::Parse`], for a text in which `mark` stands
    /// wherever no control token may begin. The marks are no part of the text.
    pub(crate) fn encode_marked(&self, text: &str, mark: char) -> Vec<TokenId> {
        let mut out = Vec::with_capacity(text.len() / 3);
        let mut first = true;
        self.specials.each(text, Special::Parse, Some(mark), |part| match part {
            Part::Text(text) if text.contains(mark) => {
                let text = text.replace(mark, "");
                self.encode_parts(&text, Special::AsText, &mut first, &mut out);
            }
            Part::Text(text) => self.encode_text(text, &mut first, &mut out),
            Part::Token(id) => {
                out.push(id);
                first = true;
            }
        });
        out
    }

    fn encode_parts(&self, text: &str, special: Special, first: &mut bool, out: &mut Vec<TokenId>) {
        self.specials.each(text, special, None, |part| match part {
            Part::Text(text) => self.encode_text(text, first, out),
            Part::Token(id) => {
                out.push(id);
                *first = true;
            }
        });
    }

    fn encode_text(&self, text: &str, first: &mut bool, out: &mut Vec<TokenId>) {
        match &self.model {
            Model::Bpe(bpe) => bpe.encode(text, out),
            Model::SentencePiece(pieces) => pieces.encode(text, *first, out),
        }
        *first = false;
    }

    /// The bytes that a token stands for in a text, of a control token those of its name. They may
    /// be part of a character. A token that is not in the vocabulary has none.
    #[must_use]
    pub fn bytes(&self, id: TokenId) -> &[u8] {
        self.vocabulary.bytes(id)
    }

    /// The text of tokens, without control tokens. What is no UTF-8 becomes U+FFFD; for tokens as
    /// they come, use [`Utf8`].
    #[must_use]
    pub fn decode(&self, ids: &[TokenId]) -> String {
        let texts = ids.iter().filter(|id| !self.is_control(**id)).map(|id| self.bytes(*id));
        String::from_utf8_lossy(&texts.collect::<Vec<_>>().concat()).into_owned()
    }

    /// Every token with its bytes, in order.
    pub fn vocabulary(&self) -> impl ExactSizeIterator<Item = (TokenId, &[u8])> {
        self.vocabulary.bytes.iter().enumerate().map(|(id, bytes)| (id as TokenId, bytes))
    }

    /// How many tokens there are.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a vocabulary is never empty")]
    pub fn len(&self) -> usize {
        self.vocabulary.bytes.len()
    }

    /// Whether a token steers the model and is no text.
    #[must_use]
    pub fn is_control(&self, id: TokenId) -> bool {
        self.vocabulary.is_control(id)
    }

    /// Whether a token ends an answer.
    #[must_use]
    pub fn is_end(&self, id: TokenId) -> bool {
        self.ends.contains(&id)
    }

    /// The tokens that end an answer.
    pub fn ends(&self) -> impl ExactSizeIterator<Item = TokenId> {
        self.ends.iter().copied()
    }

    /// The token for the beginning of a text.
    #[must_use]
    pub fn bos(&self) -> Option<TokenId> {
        self.bos
    }

    /// The token for the end of a text.
    #[must_use]
    pub fn eos(&self) -> Option<TokenId> {
        self.eos
    }

    /// Puts the token for the beginning before `ids`, if the file asks for it and it is not there
    /// yet.
    pub fn add_bos(&self, ids: &mut Vec<TokenId>) {
        if let Some(bos) = self.bos.filter(|bos| self.add_bos && ids.first() != Some(bos)) {
            ids.insert(0, bos);
        }
    }

    /// The control token with this name.
    #[must_use]
    pub fn control(&self, name: &str) -> Option<TokenId> {
        self.specials.control(name)
    }

    /// Where control tokens begin in `text`, or might once it stands within another text.
    pub(crate) fn openings(&self, text: &str) -> Vec<usize> {
        self.specials.openings(text)
    }

    /// Whether the name of a control token holds this character.
    pub(crate) fn is_in_a_name(&self, c: char) -> bool {
        self.specials.control_names().any(|name| name.contains(c))
    }
}

fn damaged(gguf: &Gguf, message: impl Into<String>) -> Error {
    let message = format!("{}: {}", gguf.path().display(), message.into());
    Error::new(ErrorKind::InvalidInput, COMPONENT, "open", message)
        .suggest("the file's tokenizer is damaged: fetch the file again, or use another")
}

#[cfg(test)]
pub(crate) mod tests;
