//! The keys and values of what was read, in pages that sequences share.

use std::collections::HashMap;
use std::sync::Arc;

use crate::kernels::{Keys, TILE};
use crate::llama::Shape;
use crate::tokenizer::TokenId;

/// Keys and values of sixteen positions, for every layer and head.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// For each layer and head: its keys by dimension, then its values by position.
    halves: Vec<[u16; TILE]>,
}

impl Page {
    pub(crate) fn new(shape: &Shape) -> Self {
        Self { halves: vec![[0; TILE]; shape.layers * shape.kv_heads * shape.head * 2] }
    }

    /// What attention reads.
    pub(crate) fn keys(&self, shape: &Shape, layer: usize, head: usize) -> Keys<'_> {
        let size = shape.head;
        let first = (layer * shape.kv_heads + head) * size * 2;
        let (keys, values) = self.halves[first..first + 2 * size].split_at(size);
        Keys { keys, values }
    }

    /// Writes a position's key and value.
    pub(crate) fn write(
        &mut self,
        shape: &Shape,
        (layer, head): (usize, usize),
        position: usize,
        key: &[u16],
        value: &[[u16; 16]],
    ) {
        let size = shape.head;
        let first = (layer * shape.kv_heads + head) * size * 2;
        let (keys, values) = self.halves[first..first + 2 * size].split_at_mut(size);
        for (to, from) in keys.iter_mut().zip(key) {
            to[position] = *from;
        }
        let chunks = size / 16;
        values[position * chunks..(position + 1) * chunks].copy_from_slice(value);
    }
}

/// The pages of one sequence, and the tokens they hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pages: Vec<Arc<Page>>,
    tokens: Vec<TokenId>,
}

impl Table {
    /// The tokens whose keys and values are there.
    pub(crate) fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    pub(crate) fn pages(&self) -> &[Arc<Page>] {
        &self.pages
    }

    /// Forgets all but the first tokens.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.tokens.truncate(length);
        self.pages.truncate(length.div_ceil(TILE));
    }

    /// Takes tokens whose keys and values are about to be written, and makes sure that nobody else
    /// sees the pages they go to.
    pub(crate) fn extend(&mut self, shape: &Shape, tokens: &[TokenId]) {
        let first = self.tokens.len() / TILE;
        self.tokens.extend_from_slice(tokens);
        for page in self.pages.iter_mut().skip(first) {
            if Arc::get_mut(page).is_none() {
                *page = Arc::new(Page::clone(page));
            }
        }
        while self.pages.len() < self.tokens.len().div_ceil(TILE) {
            self.pages.push(Arc::new(Page::new(shape)));
        }
    }

    /// The page of a position that was just added.
    pub(crate) fn page_mut(&mut self, position: usize) -> Option<&mut Page> {
        self.pages.get_mut(position / TILE).and_then(Arc::get_mut)
    }
}

/// Pages of what was read before, by the tokens they hold and all that stood before them.
///
/// The least recently used go when there are too many.
#[derive(Debug)]
pub(crate) struct Prefixes {
    known: HashMap<(u64, [TokenId; TILE]), Known>,
    most: usize,
    next_id: u64,
    tick: u64,
}

#[derive(Debug)]
struct Known {
    id: u64,
    depth: usize,
    used: u64,
    page: Arc<Page>,
}

impl Prefixes {
    /// Keeps at most so many pages.
    pub(crate) fn new(most: usize) -> Self {
        Self { known: HashMap::new(), most, next_id: 1, tick: 0 }
    }

    /// How many pages are kept.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// What is known of the beginning of `tokens`; never all of them, since the last one's
    /// probabilities are wanted.
    pub(crate) fn find(&mut self, tokens: &[TokenId]) -> Table {
        self.tick += 1;
        let mut table = Table::default();
        let mut parent = 0;
        for chunk in tokens[..tokens.len().saturating_sub(1)].as_chunks::<TILE>().0 {
            let Some(known) = self.known.get_mut(&(parent, *chunk)) else { break };
            known.used = self.tick;
            parent = known.id;
            table.pages.push(Arc::clone(&known.page));
            table.tokens.extend_from_slice(chunk);
        }
        table
    }

    /// Keeps the full pages of a table.
    pub(crate) fn keep(&mut self, table: &Table) {
        if self.most == 0 {
            return;
        }
        self.tick += 1;
        let mut parent = 0;
        let chunks = table.tokens.as_chunks::<TILE>().0;
        for (depth, (chunk, page)) in chunks.iter().zip(&table.pages).enumerate() {
            let next_id = &mut self.next_id;
            let known = self.known.entry((parent, *chunk)).or_insert_with(|| {
                *next_id += 1;
                Known { id: *next_id, depth, used: 0, page: Arc::clone(page) }
            });
            known.used = self.tick;
            parent = known.id;
        }
        while self.known.len() > self.most {
            // Of those used together the deepest goes first: what comes after it is of no use alone.
            let oldest = self.known.iter().min_by_key(|(_, k)| (k.used, usize::MAX - k.depth));
            let Some(key) = oldest.map(|(key, _)| *key) else { break };
            self.known.remove(&key);
        }
    }
}
