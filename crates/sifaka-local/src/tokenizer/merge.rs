//! Merges neighbours, the best pair first, until no pair is left.
//!
//! Pairs wait in a heap and symbols are linked, so that a word of a million letters costs its
//! length times a logarithm.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::TokenId;

/// A symbol that is no token of the vocabulary.
pub(super) const NONE: TokenId = TokenId::MAX;

/// No neighbour on this side.
const END: u32 = u32::MAX;

/// A stretch of the text that is one token so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbol {
    pub(super) id: TokenId,
    /// Where it begins in the text.
    pub(super) start: u32,
    /// How long it is; 0 when it was merged into the one before.
    pub(super) len: u32,
    before: u32,
    after: u32,
}

/// A pair that may be merged. The lowest `order` comes first, then the leftmost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    order: u32,
    left: u32,
    right: u32,
    len: u32,
    id: TokenId,
}

/// The symbols of a word and the pairs among them; kept from word to word for its memory.
#[derive(Debug, Default)]
pub(super) struct Merger {
    symbols: Vec<Symbol>,
    pairs: BinaryHeap<Reverse<Pair>>,
}

impl Merger {
    pub(super) fn clear(&mut self) {
        self.symbols.clear();
        self.pairs.clear();
    }

    /// Adds a symbol after the others.
    pub(super) fn push(&mut self, id: TokenId, len: u32) {
        let at = self.symbols.len() as u32;
        let mut start = 0;
        if let Some(last) = self.symbols.last_mut() {
            last.after = at;
            start = last.start + last.len;
        }
        self.symbols.push(Symbol { id, start, len, before: at.wrapping_sub(1), after: END });
    }

    /// Merges. `join` says what two neighbours make, if anything, and how soon they are to be
    /// merged: the lowest first.
    pub(super) fn merge(&mut self, join: impl Fn(&Symbol, &Symbol) -> Option<(u32, TokenId)>) {
        for left in 1..self.symbols.len() as u32 {
            self.offer(left - 1, left, &join);
        }
        while let Some(Reverse(pair)) = self.pairs.pop() {
            let left = self.symbols[pair.left as usize];
            let right = self.symbols[pair.right as usize];
            // One of the two was merged with another neighbour meanwhile.
            if left.len == 0 || right.len == 0 || left.len + right.len != pair.len {
                continue;
            }
            self.symbols[pair.right as usize].len = 0;
            let merged = &mut self.symbols[pair.left as usize];
            merged.id = pair.id;
            merged.len = pair.len;
            merged.after = right.after;
            if right.after != END {
                self.symbols[right.after as usize].before = pair.left;
                self.offer(pair.left, right.after, &join);
            }
            if left.before != END {
                self.offer(left.before, pair.left, &join);
            }
        }
    }

    fn offer(
        &mut self,
        left: u32,
        right: u32,
        join: &impl Fn(&Symbol, &Symbol) -> Option<(u32, TokenId)>,
    ) {
        let (a, b) = (&self.symbols[left as usize], &self.symbols[right as usize]);
        if let Some((order, id)) = join(a, b) {
            self.pairs.push(Reverse(Pair { order, left, right, len: a.len + b.len, id }));
        }
    }

    /// What is left, in order.
    pub(super) fn symbols(&self) -> impl Iterator<Item = &Symbol> {
        self.symbols.iter().filter(|symbol| symbol.len > 0)
    }
}
