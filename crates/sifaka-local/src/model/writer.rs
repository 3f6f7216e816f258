//! Writes one text, token by token.

use std::sync::Arc;

use sifaka_core::model::{Completion, Delta, FinishReason, TokenLogprob, TopLogprob};
use sifaka_core::{Error, ErrorKind, Result};
use tokio::sync::mpsc;

use crate::engine::{Sequence, log_sum};
use crate::guide::{Draft, Guide, Move};
use crate::sampler::Sampler;
use crate::tokenizer::{TokenId, Tokenizer};

/// A guide that goes back this often gets nowhere.
const MOST_REWINDS: usize = 10_000;

pub(super) struct Writer {
    pub(super) index: u32,
    pub(super) sequence: Sequence,
    pub(super) sampler: Sampler,
    pub(super) guide: Box<dyn Guide>,
    pub(super) tokenizer: Arc<Tokenizer>,
    pub(super) stop: Arc<[String]>,
    pub(super) max_tokens: usize,
    /// How many alternatives to tell of, if any.
    pub(super) logprobs: Option<usize>,
    pub(super) deltas: Option<mpsc::Sender<Delta>>,
}

/// A text, and how many tokens it took to write it.
pub(super) struct Written {
    pub(super) completion: Completion,
    pub(super) tokens: u64,
}

/// What has come out so far.
#[derive(Default)]
struct Text {
    bytes: Vec<u8>,
    /// For each token, where its bytes end.
    ends: Vec<usize>,
    logprobs: Vec<TokenLogprob>,
    /// How many bytes have been told of.
    told: usize,
}

impl Writer {
    pub(super) async fn write(mut self) -> Result<Written> {
        let start = self.sequence.len();
        let mut text = Text::default();
        let (mut spent, mut rewinds) = (0_u64, 0);
        let finish_reason = loop {
            let room = self.max_tokens.saturating_sub(text.ends.len());
            if room == 0 {
                break FinishReason::Length;
            }
            let mut draft = Draft {
                sequence: &mut self.sequence,
                sampler: &mut self.sampler,
                tokenizer: &self.tokenizer,
                scores: None,
                start,
                room,
            };
            let tokens = match self.guide.next(&mut draft).await? {
                Move::End => break FinishReason::Stop,
                Move::Take(token) if self.tokenizer.is_end(token) => break FinishReason::Stop,
                Move::Take(token) => vec![token],
                Move::Force(mut tokens) => {
                    tokens.truncate(room);
                    tokens
                }
                Move::Rewind(length) => {
                    rewinds += 1;
                    if rewinds > MOST_REWINDS {
                        return Err(stuck());
                    }
                    self.rewind(&mut text, start, length).await?;
                    continue;
                }
            };
            if tokens.is_empty() {
                return Err(stuck());
            }
            spent += tokens.len() as u64;
            self.take(&mut text, &tokens).await?;
            if let Some(end) = self.stopped(&text) {
                text.bytes.truncate(end);
                break FinishReason::Stop;
            }
            self.tell(&mut text, false).await?;
            if text.ends.len() < self.max_tokens {
                self.sequence.push(&tokens).await?;
            }
        };
        self.tell(&mut text, true).await?;
        let mut completion = Completion::new(String::from_utf8_lossy(&text.bytes).into_owned());
        completion.finish_reason = finish_reason;
        completion.logprobs = self.logprobs.map(|_| text.logprobs);
        Ok(Written { completion, tokens: spent })
    }

    /// Puts tokens into the text.
    async fn take(&mut self, text: &mut Text, tokens: &[TokenId]) -> Result<()> {
        if let Some(top) = self.logprobs {
            text.logprobs.extend(self.log_probabilities(tokens, top).await?);
        }
        self.guide.took(tokens)?;
        for &token in tokens {
            self.sampler.taken(token);
            if !self.tokenizer.is_control(token) {
                let bytes = self.guide.emit(self.tokenizer.bytes(token).to_vec());
                text.bytes.extend_from_slice(&bytes);
            }
            text.ends.push(text.bytes.len());
        }
        Ok(())
    }

    async fn rewind(&mut self, text: &mut Text, start: usize, length: usize) -> Result<()> {
        for &token in self.sequence.tokens().iter().skip(start + length) {
            self.sampler.untaken(token);
        }
        self.sequence.rewind(start + length).await?;
        self.guide.rewound(length)?;
        text.ends.truncate(length);
        text.logprobs.truncate(length);
        text.bytes.truncate(text.ends.last().copied().unwrap_or_default());
        if text.told > text.bytes.len() {
            text.told = 0;
            self.send(Delta::Restart { index: self.index }).await?;
        }
        Ok(())
    }

    /// Where a text ends at which it was to stop.
    fn stopped(&self, text: &Text) -> Option<usize> {
        let longest = self.stop.iter().map(String::len).max()?;
        // All but the newest token's bytes were looked at before.
        let newest = text.ends.len().checked_sub(2).and_then(|n| text.ends.get(n)).copied();
        let from = newest.unwrap_or_default().saturating_sub(longest);
        let found = self.stop.iter().filter(|stop| !stop.is_empty()).filter_map(|stop| {
            let mut places = text.bytes[from..].windows(stop.len());
            places.position(|bytes| bytes == stop.as_bytes()).map(|at| from + at)
        });
        found.min()
    }

    /// Tells of what is new and certain: no character in pieces, nothing that may yet become a text
    /// at which to stop.
    async fn tell(&mut self, text: &mut Text, all: bool) -> Result<()> {
        if self.deltas.is_none() {
            return Ok(());
        }
        let new = &text.bytes[text.told.min(text.bytes.len())..];
        let certain = if all {
            new.len()
        } else {
            let held = self.stop.iter().map(|stop| overlap(&text.bytes, stop.as_bytes())).max();
            whole(&new[..new.len().saturating_sub(held.unwrap_or_default())])
        };
        if certain > 0 {
            let piece = String::from_utf8_lossy(&new[..certain]).into_owned();
            text.told += certain;
            self.send(Delta::Text { index: self.index, text: piece.into() }).await?;
        }
        Ok(())
    }

    async fn send(&self, delta: Delta) -> Result<()> {
        match &self.deltas {
            None => Ok(()),
            Some(deltas) => deltas.send(delta).await.map_err(|_| {
                Error::new(
                    ErrorKind::Cancelled,
                    "local",
                    "stream",
                    "nobody reads the text any more",
                )
            }),
        }
    }

    /// How likely the model held each token, before anything was refused, and what it held likelier.
    async fn log_probabilities(&self, tokens: &[TokenId], top: usize) -> Result<Vec<TokenLogprob>> {
        let own = match tokens {
            [_] | [] => tokens.iter().map(|&t| self.log_probability(t)).collect(),
            forced => self.sequence.score(forced).await?,
        };
        let name =
            |token: TokenId| String::from_utf8_lossy(self.tokenizer.bytes(token)).into_owned();
        let mut all: Vec<TokenLogprob> = tokens
            .iter()
            .zip(own)
            .map(|(&token, logprob)| TokenLogprob {
                token: name(token),
                logprob: f64::from(logprob),
                top: Vec::new(),
            })
            .collect();
        if top > 0
            && let Some(first) = all.first_mut()
        {
            let scores = self.sequence.scores();
            let all = log_sum(scores);
            let mut best: Vec<(f32, TokenId)> = scores.iter().copied().zip(0..).collect();
            let top = top.min(best.len());
            if top > 0 {
                best.select_nth_unstable_by(top - 1, |a, b| b.0.total_cmp(&a.0));
                best.truncate(top);
                best.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            }
            let likely = |(score, token): (f32, TokenId)| TopLogprob {
                token: name(token),
                logprob: f64::from(score - all),
            };
            first.top = best.into_iter().map(likely).collect();
        }
        Ok(all)
    }

    fn log_probability(&self, token: TokenId) -> f32 {
        crate::engine::log_probability(self.sequence.scores(), token)
    }
}

fn stuck() -> Error {
    Error::new(ErrorKind::Internal, "local", "guide", "the guide of this text gets nowhere")
        .suggest("see whether the checks contradict each other, or turn guiding off")
}

/// How many bytes at the end of `text` may be the beginning of `stop`.
fn overlap(text: &[u8], stop: &[u8]) -> usize {
    let most = stop.len().saturating_sub(1).min(text.len());
    (1..=most).rev().find(|&n| text[text.len() - n..] == stop[..n]).unwrap_or_default()
}

/// How many bytes there are before a character that is not whole yet.
fn whole(bytes: &[u8]) -> usize {
    let mut from = 0;
    while let Err(error) = std::str::from_utf8(&bytes[from..]) {
        match error.error_len() {
            Some(wrong) => from += error.valid_up_to() + wrong,
            None => return from + error.valid_up_to(),
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_become_a_stop_is_held_back() {
        assert_eq!(overlap(b"the en", b"end"), 2);
        assert_eq!(overlap(b"the end", b"end"), 0);
        assert_eq!(overlap(b"aab", b"aabaab"), 3);
        assert_eq!(overlap(b"", b"end"), 0);
    }

    #[test]
    fn a_character_in_pieces_is_held_back_and_a_wrong_byte_is_not() {
        let bytes = "a\u{1F600}".as_bytes();
        assert_eq!(whole(&bytes[..3]), 1);
        assert_eq!(whole(bytes), 5);
        assert_eq!(whole(b"\xffab"), 3);
    }
}
