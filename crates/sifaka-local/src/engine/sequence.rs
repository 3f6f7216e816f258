//! A text under way, as tokens, with the scores of what may come next.

use std::sync::Arc;

use sifaka_core::{Error, ErrorKind, Result};
use tokio::sync::oneshot;

use super::batch::{Reply, Want, Work};
use super::worker::Desk;
use crate::pages::Table;
use crate::tokenizer::TokenId;

/// A text under way. Tokens are pushed; after that [`scores`](Self::scores) says how likely each
/// token of the vocabulary comes next. It can be forked, rewound, and asked how likely a
/// continuation would be; keys and values follow.
///
/// After an error or a dropped `push` the sequence has lost its tokens and starts from nothing.
#[derive(Debug)]
pub struct Sequence {
    desk: Arc<Desk>,
    table: Table,
    scores: Arc<[f32]>,
    reused: usize,
    is_fork: bool,
}

/// A place in a sequence to come back to.
#[derive(Clone, Debug)]
pub struct Mark {
    length: usize,
    scores: Arc<[f32]>,
}

impl Mark {
    /// How many tokens the sequence had.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }
}

impl Sequence {
    pub(super) fn new(desk: Arc<Desk>) -> Self {
        Self { desk, table: Table::default(), scores: Arc::from([]), reused: 0, is_fork: false }
    }

    /// The tokens so far.
    #[must_use]
    pub fn tokens(&self) -> &[TokenId] {
        self.table.tokens()
    }

    /// How many tokens there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.tokens().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many more tokens there is room for.
    #[must_use]
    pub fn room(&self) -> usize {
        self.desk.context().saturating_sub(self.len())
    }

    /// How many tokens of the first push were known from before.
    #[must_use]
    pub fn reused(&self) -> usize {
        self.reused
    }

    /// A score for each token of the vocabulary, as the model gives it (a logit); empty before the
    /// first push.
    #[must_use]
    pub fn scores(&self) -> &[f32] {
        &self.scores
    }

    /// Adds tokens, and computes the scores of what comes after them.
    ///
    /// # Errors
    /// [`ErrorKind::ContextTooLong`] with the numbers when there is no room for them.
    pub async fn push(&mut self, tokens: &[TokenId]) -> Result<()> {
        if tokens.is_empty() {
            return Ok(());
        }
        let reply = self.ask(tokens, Want::Scores).await?;
        self.reused += reply.reused;
        self.table = reply.table;
        self.scores = reply.scores;
        Ok(())
    }

    /// The log-probability of each token of `continuation`, if it came next. The sequence stays as
    /// it is.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub async fn score(&self, continuation: &[TokenId]) -> Result<Vec<f32>> {
        let Some((&first, _)) = continuation.split_first() else { return Ok(Vec::new()) };
        let mut all = vec![log_probability(&self.scores, first)];
        if continuation.len() > 1 {
            let mut fork = self.fork();
            let reply = fork.ask(continuation, Want::LogProbabilities).await?;
            all.extend(reply.log_probabilities);
        }
        Ok(all)
    }

    async fn ask(&mut self, tokens: &[TokenId], want: Want) -> Result<Reply> {
        if tokens.len() > self.room() {
            let (have, more, most) = (self.len(), tokens.len(), self.desk.context());
            return Err(Error::new(
                ErrorKind::ContextTooLong,
                "local",
                "read",
                format!("{} tokens, where the model's window has {most}", have + more),
            )
            .suggest("shorten the prompt, or take a model with a larger window"));
        }
        let (reply, answer) = oneshot::channel();
        let table = std::mem::take(&mut self.table);
        self.scores = Arc::from([]);
        self.desk.add(Work::new(table, tokens.to_vec(), want, reply));
        answer.await.map_err(|_| {
            Error::new(
                ErrorKind::Internal,
                "local",
                "read",
                "the model's thread gave up on this text",
            )
            .suggest("this is a defect; the log says more")
        })
    }

    /// A place to come back to, without computing anything again.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark { length: self.len(), scores: Arc::clone(&self.scores) }
    }

    /// Goes back to an earlier place of this very sequence, or of the one it was forked from
    /// before they parted.
    pub fn return_to(&mut self, mark: &Mark) {
        self.table.truncate(mark.length);
        self.scores = Arc::clone(&mark.scores);
    }

    /// Goes back to the first `length` tokens. The last of them is computed again; a
    /// [`Mark`] saves even that.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub async fn rewind(&mut self, length: usize) -> Result<()> {
        if length >= self.len() {
            return Ok(());
        }
        let last = length.checked_sub(1).and_then(|n| self.tokens().get(n)).copied();
        self.table.truncate(length.saturating_sub(1));
        self.scores = Arc::from([]);
        match last {
            Some(last) => self.push(&[last]).await,
            None => Ok(()),
        }
    }

    /// A copy that goes its own way; what both have in common is kept once.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            desk: Arc::clone(&self.desk),
            table: self.table.clone(),
            scores: Arc::clone(&self.scores),
            reused: 0,
            is_fork: true,
        }
    }
}

impl Drop for Sequence {
    fn drop(&mut self) {
        if !self.is_fork && !self.is_empty() {
            self.desk.keep(std::mem::take(&mut self.table));
        }
    }
}

/// The log-probability of one token by these scores.
pub(crate) fn log_probability(scores: &[f32], token: TokenId) -> f32 {
    let score = scores.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY);
    score - log_sum(scores)
}

/// What is to be taken off each score to make a log-probability of it.
pub(crate) fn log_sum(scores: &[f32]) -> f32 {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = scores.iter().map(|&s| f64::from((s - largest).exp())).sum();
    largest + sum.ln() as f32
}
