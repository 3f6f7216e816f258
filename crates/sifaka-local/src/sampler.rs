//! How the next token is chosen from the model's scores.

use std::collections::HashMap;

use sifaka_core::model::Sampling;
use sifaka_core::{Error, Problem, Result};

use crate::kernels::{self, Isa};
use crate::tokenizer::TokenId;

/// How tokens are chosen: the request's wishes, with our defaults where it has none.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// 0 always takes the likeliest.
    pub temperature: f32,
    /// Only from the likeliest that together have this probability.
    pub top_p: f32,
    /// Only from so many; 0 from all.
    pub top_k: usize,
    /// Only those at least this fraction as likely as the likeliest.
    pub min_p: f32,
    /// Divides the score of what the text already has.
    pub repetition_penalty: f32,
}

impl Default for Choice {
    /// What suits a small model: some freedom, no unlikely tokens, and a mild dislike of
    /// repetition.
    fn default() -> Self {
        Self { temperature: 0.7, top_p: 0.95, top_k: 0, min_p: 0.05, repetition_penalty: 1.1 }
    }
}

impl Choice {
    /// Always the likeliest token.
    #[must_use]
    pub const fn greedy() -> Self {
        Self { temperature: 0.0, top_p: 1.0, top_k: 0, min_p: 0.0, repetition_penalty: 1.0 }
    }

    /// From a request's wishes.
    ///
    /// # Errors
    /// For numbers that make no sense, all of them at once.
    pub fn from_sampling(sampling: &Sampling) -> Result<Self> {
        let default = Self::default();
        let mut problems = Vec::new();
        let mut take = |name: &str, value: Option<f64>, default: f32, low: f64, high: f64| {
            let Some(value) = value else { return default };
            if !(low..=high).contains(&value) {
                let message = format!("{value} does not lie within {low} and {high}");
                problems.push(Problem::new(
                    format!("sampling: {name}"),
                    message,
                    "mend the number",
                ));
            }
            value as f32
        };
        let choice = Self {
            temperature: take("temperature", sampling.temperature, default.temperature, 0.0, 100.0),
            top_p: take("top_p", sampling.top_p, default.top_p, 0.0, 1.0),
            min_p: take("min_p", sampling.min_p, default.min_p, 0.0, 1.0),
            repetition_penalty: take(
                "repetition_penalty",
                sampling.repetition_penalty,
                default.repetition_penalty,
                0.01,
                100.0,
            ),
            top_k: sampling.top_k.map_or(0, |k| k as usize),
        };
        if problems.is_empty() { Ok(choice) } else { Err(Error::problems("local", problems)) }
    }
}

/// Chooses tokens. The same seed makes the same choices from the same scores.
#[derive(Clone, Debug)]
pub struct Sampler {
    choice: Choice,
    isa: Isa,
    random: u64,
    /// How often each token was taken.
    taken: HashMap<TokenId, u32>,
    work: Vec<[f32; 16]>,
    kept: Vec<(f32, TokenId)>,
}

impl Sampler {
    /// One that draws by this seed.
    #[must_use]
    pub fn new(choice: Choice, seed: u64) -> Self {
        Self {
            choice,
            isa: Isa::detect(),
            random: seed,
            taken: HashMap::new(),
            work: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// Tells it that a token was taken, so that it is penalised from now on.
    pub fn taken(&mut self, token: TokenId) {
        *self.taken.entry(token).or_default() += 1;
    }

    /// Takes back [`taken`](Self::taken), when a text is rewound.
    pub fn untaken(&mut self, token: TokenId) {
        if let Some(count) = self.taken.get_mut(&token) {
            *count -= 1;
            if *count == 0 {
                self.taken.remove(&token);
            }
        }
    }

    /// Chooses by these scores. A score of minus infinity is never chosen; `None` if all are.
    pub fn choose(&mut self, scores: &[f32]) -> Option<TokenId> {
        self.prepare(scores);
        if self.choice.temperature <= 0.0 {
            self.likeliest(scores.len())
        } else {
            self.draw(scores.len())
        }
    }

    /// Copies the scores and penalises what was taken.
    fn prepare(&mut self, scores: &[f32]) {
        self.work.clear();
        let (whole, rest) = scores.as_chunks::<16>();
        self.work.extend_from_slice(whole);
        if !rest.is_empty() {
            let mut last = [f32::NEG_INFINITY; 16];
            last[..rest.len()].copy_from_slice(rest);
            self.work.push(last);
        }
        let penalty = self.choice.repetition_penalty;
        if (penalty - 1.0).abs() > f32::EPSILON {
            let scores = self.work.as_flattened_mut();
            for token in self.taken.keys() {
                if let Some(score) = scores.get_mut(*token as usize) {
                    *score = if *score > 0.0 { *score / penalty } else { *score * penalty };
                }
            }
        }
    }

    fn likeliest(&self, count: usize) -> Option<TokenId> {
        let largest = kernels::largest(self.isa, &self.work);
        if largest == f32::NEG_INFINITY {
            return None;
        }
        let scores = self.work.as_flattened().iter().take(count).zip(0..);
        scores.filter(|(score, _)| **score >= largest).map(|(_, token)| token).next()
    }

    fn draw(&mut self, count: usize) -> Option<TokenId> {
        let largest = kernels::largest(self.isa, &self.work);
        if largest == f32::NEG_INFINITY {
            return None;
        }
        // What is refused must have no chance at all, and the exponential below gives it one of
        // 10^-38; the cut-off takes care of it.
        let total =
            kernels::exponentials(self.isa, &mut self.work, largest, 1.0 / self.choice.temperature);
        self.keep_likely(count, total);
        let sum: f32 = self.kept.iter().map(|(p, _)| p).sum();
        let mut left = self.unit() * sum;
        for &(p, token) in &self.kept {
            left -= p;
            if left < 0.0 {
                return Some(token);
            }
        }
        self.kept.last().map(|(_, token)| *token)
    }

    /// Puts the tokens to draw from into `kept`, the likeliest first.
    fn keep_likely(&mut self, count: usize, total: f32) {
        let Choice { top_p, top_k, min_p, .. } = self.choice;
        // The likeliest has 1. Look at few first; most of the vocabulary is never worth sorting.
        let mut least = 1e-4_f32;
        loop {
            let cut = min_p.max(least);
            self.kept.clear();
            let all = self.work.as_flattened().iter().take(count).zip(0..);
            self.kept.extend(all.filter(|(p, _)| **p >= cut).map(|(p, token)| (*p, token)));
            self.kept.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let mut sum = 0.0;
            let enough = self.kept.iter().position(|(p, _)| {
                sum += p;
                sum >= top_p * total
            });
            let complete = cut <= 1e-30 || min_p >= least;
            let full = top_k > 0 && self.kept.len() >= top_k;
            match enough {
                Some(last) => self.kept.truncate(last + 1),
                None if complete || full => {}
                None => {
                    least = if least > 1e-8 { 1e-8 } else { 1e-30 };
                    continue;
                }
            }
            if top_k > 0 {
                self.kept.truncate(top_k);
            }
            return;
        }
    }

    /// The next random number in `0.0..1.0`.
    fn unit(&mut self) -> f32 {
        // SplitMix64: small, and good enough to draw tokens with.
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 40) as f32 / (1_u64 << 24) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(choice: Choice, scores: &[f32], draws: u32) -> HashMap<TokenId, u32> {
        let mut sampler = Sampler::new(choice, 7);
        let mut counts = HashMap::new();
        for _ in 0..draws {
            *counts.entry(sampler.choose(scores).unwrap()).or_default() += 1;
        }
        counts
    }

    fn free(temperature: f32) -> Choice {
        Choice { temperature, ..Choice::greedy() }
    }

    #[test]
    fn draws_follow_the_probabilities() {
        let scores: Vec<f32> = [0.5_f32, 0.3, 0.15, 0.05].map(f32::ln).to_vec();
        let counts = counts(free(1.0), &scores, 20_000);
        for (token, p) in [(0, 0.5), (1, 0.3), (2, 0.15), (3, 0.05)] {
            let share = f64::from(counts[&token]) / 20_000.0;
            assert!((share - p).abs() < 0.015, "{token}: {share}");
        }
    }

    #[test]
    fn each_limit_leaves_out_what_it_should() {
        let scores: Vec<f32> = [0.5_f32, 0.3, 0.15, 0.05].map(f32::ln).to_vec();
        let tokens = |choice| {
            let mut all: Vec<TokenId> = counts(choice, &scores, 3000).into_keys().collect();
            all.sort_unstable();
            all
        };
        assert_eq!(tokens(Choice { top_k: 2, ..free(1.0) }), [0, 1]);
        assert_eq!(tokens(Choice { top_p: 0.79, ..free(1.0) }), [0, 1]);
        assert_eq!(tokens(Choice { top_p: 0.81, ..free(1.0) }), [0, 1, 2]);
        assert_eq!(tokens(Choice { min_p: 0.2, ..free(1.0) }), [0, 1, 2]);
        assert_eq!(tokens(Choice::greedy()), [0]);
        assert_eq!(tokens(free(1.0)), [0, 1, 2, 3]);
    }

    #[test]
    fn what_is_refused_is_never_chosen() {
        let mut scores = vec![0.0; 50];
        scores[7] = f32::NEG_INFINITY;
        assert!(!counts(free(50.0), &scores, 5000).contains_key(&7));
        assert_eq!(Sampler::new(free(1.0), 1).choose(&[f32::NEG_INFINITY; 20]), None);
        assert_eq!(Sampler::new(Choice::greedy(), 1).choose(&[f32::NEG_INFINITY; 20]), None);
    }

    #[test]
    fn the_penalty_falls_on_what_was_taken_and_can_be_taken_back() {
        let mut sampler = Sampler::new(Choice { repetition_penalty: 2.0, ..Choice::greedy() }, 1);
        let scores = [3.0, 2.0, -1.0];
        assert_eq!(sampler.choose(&scores), Some(0));
        sampler.taken(0);
        assert_eq!(sampler.choose(&scores), Some(1));
        sampler.untaken(0);
        assert_eq!(sampler.choose(&scores), Some(0));
    }

    #[test]
    fn a_wish_that_makes_no_sense_is_refused() {
        let sampling =
            Sampling { temperature: Some(-1.0), top_p: Some(2.0), ..Sampling::default() };
        let error = Choice::from_sampling(&sampling).unwrap_err();
        assert_eq!(error.all_problems().len(), 2);
        assert!(Choice::from_sampling(&Sampling { min_p: Some(f64::NAN), ..sampling }).is_err());
    }
}
