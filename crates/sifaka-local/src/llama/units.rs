//! How attention is shared out: which tokens and heads are worked on together, and by whom.

use std::ops::Range;

use super::forward::Entry;
use super::shape::Shape;

/// Some neighbouring tokens of one entry, and some heads that share keys and values.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// Which entry.
    pub(super) entry: usize,
    /// Tokens of the batch.
    pub(super) tokens: Range<usize>,
    /// The position of the first.
    pub(super) position: usize,
    pub(super) heads: Range<usize>,
}

impl Unit {
    /// Rows of output it gives.
    pub(super) fn rows(&self) -> usize {
        self.tokens.len() * self.heads.len()
    }
}

/// All units of a batch, and where the output of each token and head stands.
#[derive(Debug, Default)]
pub(super) struct Units {
    pub(super) all: Vec<Unit>,
    /// For each share of the work, its units.
    pub(super) shares: Vec<Range<usize>>,
    /// For each token and head, its row.
    pub(super) places: Vec<usize>,
}

/// Tokens of a unit, where there are as many.
const TOKENS: usize = 4;

impl Units {
    pub(super) fn new(shape: &Shape, entries: &[Entry<'_>], threads: usize) -> Self {
        let mut all = Vec::new();
        let mut token = 0;
        for (n, entry) in entries.iter().enumerate() {
            // Few tokens give too few units to share out evenly, so then a head is one.
            let heads = if entry.tokens.len() < TOKENS { 1 } else { shape.group() };
            for first in (0..entry.tokens.len()).step_by(TOKENS) {
                let count = TOKENS.min(entry.tokens.len() - first);
                for head in (0..shape.heads).step_by(heads) {
                    all.push(Unit {
                        entry: n,
                        tokens: token + first..token + first + count,
                        position: entry.position + first,
                        heads: head..head + heads,
                    });
                }
            }
            token += entry.tokens.len();
        }
        let mut places = vec![0; token * shape.heads];
        let mut row = 0;
        for unit in &all {
            for token in unit.tokens.clone() {
                for head in unit.heads.clone() {
                    places[token * shape.heads + head] = row;
                    row += 1;
                }
            }
        }
        let shares = share(&all, threads);
        Self { all, shares, places }
    }
}

/// Cuts the units into shares of nearly the same work.
fn share(all: &[Unit], threads: usize) -> Vec<Range<usize>> {
    // A position costs as much to attend to for every row; starting a unit costs a little.
    let cost = |unit: &Unit| unit.rows() * (unit.position + unit.tokens.len()) + 64;
    let total: usize = all.iter().map(cost).sum();
    let mut shares = Vec::with_capacity(threads);
    let (mut first, mut done) = (0, 0);
    for (n, unit) in all.iter().enumerate() {
        done += cost(unit);
        if done * threads >= total * (shares.len() + 1) {
            shares.push(first..n + 1);
            first = n + 1;
        }
    }
    if first < all.len() {
        match shares.last_mut() {
            Some(last) => last.end = all.len(),
            None => shares.push(first..all.len()),
        }
    }
    shares
}
