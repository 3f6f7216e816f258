//! The forward pass over several sequences at once.
//!
//! Activations stand sixteen rows at a time, and within that token by token: the order in which the
//! products give them, so that threads write to parts of their own.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Llama;
use super::units::Units;
use crate::kernels::{self, Isa, TILE};
use crate::matrix::{BLOCK, Matrix, Quantized};
use crate::pages::Table;
use crate::team::{Team, split};
use crate::tokenizer::TokenId;

type Chunk = [f32; 16];

/// What is wanted of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Keys and values alone.
    Nothing,
    /// The scores after the last token.
    Last,
    /// The scores after every token.
    All,
}

/// Some tokens of one sequence. Their keys and values go to `table`, which already holds the tokens.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) table: &'a mut Table,
    /// The position of the first.
    pub(crate) position: usize,
    pub(crate) tokens: &'a [TokenId],
    pub(crate) wanted: Wanted,
}

/// Memory that passes use again and again.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    x: Vec<Chunk>,
    query: Vec<Chunk>,
    key: Vec<Chunk>,
    value: Vec<Chunk>,
    attended: Vec<Chunk>,
    wide: Vec<Chunk>,
    up: Vec<Chunk>,
    out: Vec<Chunk>,
    input: Input,
    turns: Vec<[f32; 2]>,
    /// One for each thread; nobody ever waits for one.
    threads: Vec<Mutex<ThreadScratch>>,
}

#[derive(Debug, Default)]
struct ThreadScratch {
    row: Vec<Chunk>,
    queries: Vec<f32>,
    scores: Vec<[f32; TILE]>,
}

/// Activations as the products take them: in eight bits, as they are, or both.
#[derive(Debug, Default)]
struct Input {
    quantized: Quantized,
    floats: Vec<f32>,
}

/// How many rows of scores are made at once.
const ROWS: usize = 16;

impl Llama {
    /// Reads the tokens of every entry, and gives the scores that are wanted, in order, to `take`:
    /// the entry, which of its tokens, and a score for each token of the vocabulary.
    pub(crate) fn forward(
        &self,
        team: &mut Team,
        scratch: &mut Scratch,
        entries: &mut [Entry<'_>],
        mut take: impl FnMut(usize, usize, &[f32]),
    ) {
        let tokens: usize = entries.iter().map(|e| e.tokens.len()).sum();
        if tokens == 0 {
            return;
        }
        self.begin(team, scratch, entries, tokens);
        let units = Units::new(&self.shape, entries, PARTS * team.size());
        for n in 0..self.weights.layers.len() {
            self.attend(team, scratch, entries, &units, n, tokens);
            self.feed_forward(team, scratch, n, tokens);
        }
        let mut wanted = Vec::new();
        let mut first = 0;
        for (n, entry) in entries.iter().enumerate() {
            let count = entry.tokens.len();
            let rows = match entry.wanted {
                Wanted::Nothing => 0..0,
                Wanted::Last => count.saturating_sub(1)..count,
                Wanted::All => 0..count,
            };
            wanted.extend(rows.map(|row| (n, row, first + row)));
            first += count;
        }
        let mut flat = Vec::new();
        for rows in wanted.chunks(ROWS) {
            let places: Vec<usize> = rows.iter().map(|&(_, _, token)| token).collect();
            self.score(team, scratch, &places, tokens);
            for (r, &(entry, row, _)) in rows.iter().enumerate() {
                let vocabulary = self.shape.vocabulary;
                if rows.len() == 1 {
                    take(entry, row, &scratch.out.as_flattened()[..vocabulary]);
                } else {
                    flat.clear();
                    flat.extend(scratch.out.iter().skip(r).step_by(rows.len()));
                    take(entry, row, &flat.as_flattened()[..vocabulary]);
                }
            }
        }
    }

    /// Looks the tokens up, and the angles of their positions.
    fn begin(&self, team: &Team, scratch: &mut Scratch, entries: &[Entry<'_>], tokens: usize) {
        let shape = &self.shape;
        scratch.threads.resize_with(team.size(), Mutex::default);
        scratch.x.resize(shape.hidden / 16 * tokens, [0.0; 16]);
        scratch.turns.clear();
        let mut row = vec![0.0; shape.hidden];
        let mut t = 0;
        for entry in entries {
            for (&token, position) in entry.tokens.iter().zip(entry.position..) {
                self.weights.embedding.row(token as usize, &mut row);
                for (p, chunk) in row.as_chunks::<16>().0.iter().enumerate() {
                    scratch.x[p * tokens + t] = *chunk;
                }
                scratch.turns.extend(shape.angles.iter().map(|angle| {
                    let (sin, cos) = (position as f64 * angle).sin_cos();
                    [cos as f32, sin as f32]
                }));
                t += 1;
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what a layer works on")]
    fn attend(
        &self,
        team: &mut Team,
        scratch: &mut Scratch,
        entries: &mut [Entry<'_>],
        units: &Units,
        n: usize,
        tokens: usize,
    ) {
        let (shape, isa, layer) = (&self.shape, self.isa, &self.weights.layers[n]);
        let Scratch { x, query, key, value, attended, out, input, turns, threads, .. } = scratch;
        let (x_now, norm) = (&*x, &layer.attention_norm);
        input.fill(
            team,
            isa,
            threads,
            tokens,
            norm.len(),
            &[&layer.query, &layer.key, &layer.value],
            |t, row| {
                kernels::normalize(isa, &x_now[t..], tokens, norm, shape.epsilon, row);
            },
        );
        multiply(
            team,
            isa,
            input,
            tokens,
            [(&layer.query, &mut *query), (&layer.key, key), (&layer.value, value)],
        );
        self.remember(entries, n, (key, value), turns, tokens);

        let chunks = shape.head / 16;
        attended.resize(units.places.len() * chunks, [0.0; 16]);
        let mut rest = attended.as_mut_slice();
        let mut parts = Vec::with_capacity(units.shares.len());
        for share in &units.shares {
            let rows: usize = units.all[share.clone()].iter().map(super::units::Unit::rows).sum();
            let (part, others) = rest.split_at_mut(rows * chunks);
            rest = others;
            parts.push((share.clone(), part));
        }
        let (entries, query, turns) = (&*entries, &*query, &*turns);
        team.share(parts, |rank, (share, out): (Range<usize>, &mut [Chunk])| {
            let own = &mut own(threads, rank);
            self.attend_units(entries, units, share, n, (query, turns, tokens), out, own);
        });

        let (attended, places) = (&*attended, &units.places);
        let columns = shape.heads * chunks;
        input.fill(team, isa, threads, tokens, columns, &[&layer.attention_out], |t, row| {
            for (head, to) in row.chunks_exact_mut(chunks).enumerate() {
                let from = places[t * shape.heads + head] * chunks;
                to.copy_from_slice(&attended[from..from + chunks]);
            }
        });
        multiply(team, isa, input, tokens, [(&layer.attention_out, &mut *out)]);
        kernels::add(isa, x, out);
    }

    /// Writes keys and values of every token to its page.
    fn remember(
        &self,
        entries: &mut [Entry<'_>],
        n: usize,
        (key, value): (&[Chunk], &[Chunk]),
        turns: &[[f32; 2]],
        tokens: usize,
    ) {
        let shape = &self.shape;
        let chunks = shape.head / 16;
        let mut row = vec![0.0; shape.head];
        let mut halves = vec![0_u16; shape.head];
        let mut values = vec![[0_u16; 16]; chunks];
        let mut t = 0;
        for entry in entries {
            for position in entry.position..entry.position + entry.tokens.len() {
                let turns = &turns[t * shape.head / 2..(t + 1) * shape.head / 2];
                if let Some(page) = entry.table.page_mut(position) {
                    for head in 0..shape.kv_heads {
                        for c in 0..chunks {
                            let place = (head * chunks + c) * tokens + t;
                            row[16 * c..16 * c + 16].copy_from_slice(&key[place]);
                            values[c] = kernels::halves(self.isa, &value[place]);
                        }
                        kernels::rotate(self.isa, &mut row, turns);
                        for (to, from) in
                            halves.as_chunks_mut::<16>().0.iter_mut().zip(row.as_chunks::<16>().0)
                        {
                            *to = kernels::halves(self.isa, from);
                        }
                        page.write(shape, (n, head), position % TILE, &halves, &values);
                    }
                }
                t += 1;
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one thread's work")]
    fn attend_units(
        &self,
        entries: &[Entry<'_>],
        units: &Units,
        share: Range<usize>,
        n: usize,
        (query, turns, tokens): (&[Chunk], &[[f32; 2]], usize),
        mut out: &mut [Chunk],
        own: &mut ThreadScratch,
    ) {
        let shape = &self.shape;
        let (chunks, size) = (shape.head / 16, shape.head);
        let scale = 1.0 / (size as f32).sqrt();
        let mut limits = Vec::new();
        for unit in &units.all[share] {
            let end = unit.position + unit.tokens.len();
            let kv_head = unit.heads.start / shape.group();
            let pages: Vec<_> = entries[unit.entry].table.pages()[..end.div_ceil(TILE)]
                .iter()
                .map(|page| page.keys(shape, n, kv_head))
                .collect();
            own.queries.resize(unit.rows() * size, 0.0);
            limits.clear();
            let mut rows = own.queries.chunks_exact_mut(size);
            for (t, position) in unit.tokens.clone().zip(unit.position..) {
                let turns = &turns[t * size / 2..(t + 1) * size / 2];
                for (head, row) in unit.heads.clone().zip(rows.by_ref()) {
                    for c in 0..chunks {
                        let from = &query[(head * chunks + c) * tokens + t];
                        row[16 * c..16 * c + 16].copy_from_slice(&from.map(|x| x * scale));
                    }
                    kernels::rotate(self.isa, row, turns);
                    limits.push(position + 1);
                }
            }
            own.scores.resize(unit.rows() * pages.len(), [0.0; TILE]);
            let (part, rest) = out.split_at_mut(unit.rows() * chunks);
            out = rest;
            kernels::attend(self.isa, &pages, &own.queries, &limits, &mut own.scores, part);
        }
    }

    fn feed_forward(&self, team: &mut Team, scratch: &mut Scratch, n: usize, tokens: usize) {
        let (shape, isa, layer) = (&self.shape, self.isa, &self.weights.layers[n]);
        let Scratch { x, wide, up, out, input, threads, .. } = scratch;
        let (x_now, norm) = (&*x, &layer.norm);
        input.fill(team, isa, threads, tokens, norm.len(), &[&layer.gate, &layer.up], |t, row| {
            kernels::normalize(isa, &x_now[t..], tokens, norm, shape.epsilon, row);
        });
        multiply(team, isa, input, tokens, [(&layer.gate, &mut *wide), (&layer.up, &mut *up)]);
        let (gate, up) = (&*wide, &*up);
        input.fill(team, isa, threads, tokens, shape.wide / 16, &[&layer.down], |t, row| {
            kernels::silu_times(isa, &gate[t..], &up[t..], tokens, row);
        });
        multiply(team, isa, input, tokens, [(&layer.down, &mut *out)]);
        kernels::add(isa, x, out);
    }

    /// Puts the scores of the vocabulary after some tokens into `scratch.out`.
    fn score(&self, team: &mut Team, scratch: &mut Scratch, places: &[usize], tokens: usize) {
        let (shape, isa) = (&self.shape, self.isa);
        let Scratch { x, out, input, threads, .. } = scratch;
        let norm = &self.weights.norm;
        let output = self.weights.output();
        let x = &*x;
        input.fill(team, isa, threads, places.len(), norm.len(), &[output], |t, row| {
            kernels::normalize(isa, &x[places[t]..], tokens, norm, shape.epsilon, row);
        });
        multiply(team, isa, input, places.len(), [(output, out)]);
    }
}

/// Parts of a product for each thread: a thread that comes late leaves some to the others.
const PARTS: usize = 2;

/// Below this many tokens, one thread is quicker than telling the others.
const WORTH_SHARING: usize = 8;

impl Input {
    /// Has `make` give every token's row of so many chunks, and keeps it in the forms that the
    /// matrices want.
    #[expect(clippy::too_many_arguments, reason = "what the threads need")]
    fn fill(
        &mut self,
        team: &mut Team,
        isa: Isa,
        threads: &[Mutex<ThreadScratch>],
        tokens: usize,
        chunks: usize,
        matrices: &[&Matrix],
        make: impl Fn(usize, &mut [Chunk]) + Sync,
    ) {
        let columns = chunks * 16;
        let quantized = matrices.iter().any(|m| !m.form().is_float());
        let floats = matrices.iter().any(|m| m.form().is_float());
        self.quantized.reset(if quantized { tokens } else { 0 }, columns);
        self.floats.resize(if floats { tokens * columns } else { 0 }, 0.0);
        let ranges = split(tokens, if tokens < WORTH_SHARING { 1 } else { PARTS * team.size() });
        let sizes: Vec<usize> =
            ranges.iter().map(|r| if quantized { r.len() } else { 0 }).collect();
        let mut rest = self.floats.as_mut_slice();
        let mut parts = Vec::with_capacity(ranges.len());
        for (range, part) in ranges.into_iter().zip(self.quantized.parts(&sizes)) {
            let size = if floats { range.len() * columns } else { 0 };
            let (floats, others) = rest.split_at_mut(size);
            rest = others;
            parts.push((range, part, floats));
        }
        team.share(parts, |rank, (range, mut part, floats)| {
            let row = &mut own(threads, rank).row;
            row.resize(chunks, [0.0; 16]);
            for (n, t) in range.enumerate() {
                make(t, row);
                if quantized {
                    kernels::quantize(isa, row, part.row(n, columns));
                }
                if let Some(to) = floats.get_mut(n * columns..(n + 1) * columns) {
                    to.copy_from_slice(row.as_flattened());
                }
            }
        });
    }
}

fn own(threads: &[Mutex<ThreadScratch>], rank: usize) -> MutexGuard<'_, ThreadScratch> {
    threads[rank].lock().unwrap_or_else(PoisonError::into_inner)
}

/// Multiplies several matrices with the same activations.
fn multiply<const N: usize>(
    team: &mut Team,
    isa: Isa,
    input: &Input,
    tokens: usize,
    jobs: [(&Matrix, &mut Vec<Chunk>); N],
) {
    let size = PARTS * team.size();
    let mut parts: Vec<Vec<_>> = (0..size).map(|_| Vec::with_capacity(N)).collect();
    for (matrix, out) in jobs {
        debug_assert!(matrix.columns().is_multiple_of(BLOCK));
        out.resize(matrix.panels() * tokens, [0.0; 16]);
        let mut rest = out.as_mut_slice();
        for (range, part) in split(matrix.panels(), size).into_iter().zip(&mut parts) {
            let (own, others) = rest.split_at_mut(range.len() * tokens);
            rest = others;
            part.push((matrix.slice(range), own));
        }
    }
    team.share(parts, |_, part| {
        for (panels, out) in part {
            if panels.form.is_float() {
                kernels::multiply_floats(isa, &panels, &input.floats, out);
            } else {
                kernels::multiply_quantized(isa, &panels, &input.quantized, out);
            }
        }
    });
}
