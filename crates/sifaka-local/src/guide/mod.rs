//! What may take part in the choice of every token.
//!
//! A [`Guide`] stands between the model's probabilities and the choice. It sees them as they are,
//! may refuse or favour tokens, take one of its own, go back, try several ways on before it
//! decides, and rewrite what comes out. The engine knows nothing of what it does.

mod grammar;
mod shortest;

use std::sync::Arc;

use async_trait::async_trait;
use sifaka_core::Result;

pub use grammar::{GrammarGuide, Grammars};

use crate::engine::{Sequence, log_probability};
use crate::sampler::Sampler;
use crate::tokenizer::{TokenId, Tokenizer};

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// This token.
    Take(TokenId),
    /// These tokens, one after the other, whatever the model thinks of them; they are read in one
    /// pass.
    Force(Vec<TokenId>),
    /// The text so far is cut to this many of its tokens, and written on from there.
    Rewind(usize),
    /// The text ends here.
    End,
}

/// Takes part in the choice of every token of one text.
///
/// **Contract.** A guide is asked before every token, and told of every one that was taken, its own
/// included. It runs on the model's thread: it may await the sequences it forks, and must not block
/// or compute for long.
#[async_trait]
pub trait Guide: Send + Sync {
    /// Says what comes next.
    async fn next(&mut self, draft: &mut Draft<'_>) -> Result<Move>;

    /// Tells of tokens that now stand in the text.
    ///
    /// # Errors
    /// When they cannot stand there; the text ends with that error.
    fn took(&mut self, tokens: &[TokenId]) -> Result<()>;

    /// Tells that the text was cut to so many tokens.
    ///
    /// # Errors
    /// When the guide cannot go back.
    fn rewound(&mut self, length: usize) -> Result<()>;

    /// What the reader gets for these bytes of the text: the bytes themselves unless the guide
    /// rewrites them, as for case.
    fn emit(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        bytes
    }

    /// What it did, for the record, once the text has ended.
    fn report(&self) -> Option<Guided> {
        None
    }
}

/// What a guide did to a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guided {
    /// Tokens the guide put there.
    pub forced: u64,
    /// Choices of the model that were refused.
    pub refused: u64,
}

/// A text under way, as its guide sees it.
#[derive(Debug)]
pub struct Draft<'a> {
    pub(crate) sequence: &'a mut Sequence,
    pub(crate) sampler: &'a mut Sampler,
    pub(crate) tokenizer: &'a Arc<Tokenizer>,
    /// The scores, with what the guide changed in them; a copy once it changes anything.
    pub(crate) scores: Option<Vec<f32>>,
    /// Where in the sequence the text begins.
    pub(crate) start: usize,
    /// How many more tokens it may have.
    pub(crate) room: usize,
}

impl Draft<'_> {
    /// The tokens of the text so far, without the prompt's.
    #[must_use]
    pub fn tokens(&self) -> &[TokenId] {
        &self.sequence.tokens()[self.start..]
    }

    /// How many more tokens it may have.
    #[must_use]
    pub fn room(&self) -> usize {
        self.room
    }

    /// The model's tokenizer.
    #[must_use]
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        self.tokenizer
    }

    /// The model's own scores, before anything was refused or favoured.
    #[must_use]
    pub fn scores(&self) -> &[f32] {
        self.sequence.scores()
    }

    /// How likely the model itself holds a token, as a logarithm.
    #[must_use]
    pub fn log_probability(&self, token: TokenId) -> f32 {
        log_probability(self.sequence.scores(), token)
    }

    /// Refuses a token.
    pub fn refuse(&mut self, token: TokenId) {
        self.bias(token, f32::NEG_INFINITY);
    }

    /// Refuses every token but these.
    pub fn allow_only(&mut self, mut allowed: impl FnMut(TokenId) -> bool) {
        for (score, token) in self.changed().iter_mut().zip(0..) {
            if !allowed(token) {
                *score = f32::NEG_INFINITY;
            }
        }
    }

    /// Makes a token likelier, or less likely.
    pub fn bias(&mut self, token: TokenId, by: f32) {
        if let Some(score) = self.changed().get_mut(token as usize) {
            *score += by;
        }
    }

    /// Chooses from what is left, as the request wishes; `None` if nothing is.
    pub fn choose(&mut self) -> Option<TokenId> {
        match &self.scores {
            Some(scores) => self.sampler.choose(scores),
            None => self.sampler.choose(self.sequence.scores()),
        }
    }

    /// A copy of the sequence, to try a way on with. It is computed together with whatever else is
    /// under way.
    #[must_use]
    pub fn fork(&self) -> Sequence {
        self.sequence.fork()
    }

    /// How likely each token of a continuation is, as logarithms.
    ///
    /// # Errors
    /// When there is no room for it.
    pub async fn score(&self, continuation: &[TokenId]) -> Result<Vec<f32>> {
        self.sequence.score(continuation).await
    }

    fn changed(&mut self) -> &mut Vec<f32> {
        let sequence = &*self.sequence;
        self.scores.get_or_insert_with(|| sequence.scores().to_vec())
    }
}

/// Leaves the choice to the sampler.
#[derive(Clone, Copy, Debug, Default)]
pub struct Free;

#[async_trait]
impl Guide for Free {
    async fn next(&mut self, draft: &mut Draft<'_>) -> Result<Move> {
        Ok(draft.choose().map_or(Move::End, Move::Take))
    }
    fn took(&mut self, _: &[TokenId]) -> Result<()> {
        Ok(())
    }
    fn rewound(&mut self, _: usize) -> Result<()> {
        Ok(())
    }
}
