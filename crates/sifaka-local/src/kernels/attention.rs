//! Attention of some queries over the pages of one sequence and one key-value head.

#![expect(unsafe_code, reason = "the kernels call instructions that not every processor has")]

use super::for_every_isa;
use super::lanes::Lanes;
use super::vector::{exp, max, sum};

/// How many positions a page has: one register of keys.
pub(crate) const TILE: usize = 16;

/// The keys and values of a page for one layer and head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys<'a> {
    /// For each dimension, the sixteen positions.
    pub(crate) keys: &'a [[u16; TILE]],
    /// For each position, its dimensions, sixteen at a time.
    pub(crate) values: &'a [[u16; 16]],
}

for_every_isa! {
    /// Attends with each query (a row of `queries`, already scaled) to the positions below its
    /// limit. `scores` has a row of `pages.len()` for each query; what is in it does not matter.
    pub(crate) fn attend(
        pages: &[Keys<'_>],
        queries: &[f32],
        limits: &[usize],
        scores: &mut [[f32; TILE]],
        out: &mut [[f32; 16]],
    ) = attend_kernel;
}

#[inline(always)]
unsafe fn attend_kernel<S: Lanes>(
    pages: &[Keys<'_>],
    queries: &[f32],
    limits: &[usize],
    scores: &mut [[f32; TILE]],
    out: &mut [[f32; 16]],
) {
    let (count, width) = (limits.len(), pages.len());
    if count == 0 || width == 0 {
        return;
    }
    let size = queries.len() / count;
    // SAFETY: as of this function.
    unsafe {
        let mut first = 0;
        while first < count {
            let rows = &queries[first * size..];
            let scores = &mut scores[first * width..];
            first += match count - first {
                8.. => score::<S, 8>(pages, rows, size, scores),
                4.. => score::<S, 4>(pages, rows, size, scores),
                2.. => score::<S, 2>(pages, rows, size, scores),
                _ => score::<S, 1>(pages, rows, size, scores),
            };
        }
        for (row, &limit) in scores.chunks_exact_mut(width).zip(limits) {
            soften::<S>(row, limit);
        }
        let mut first = 0;
        while first < count {
            let scores = &scores[first * width..];
            let out = &mut out[first * (size / 16)..];
            first += match count - first {
                4.. => gather_all::<S, 4>(pages, scores, size / 16, out),
                _ => gather_all::<S, 1>(pages, scores, size / 16, out),
            };
        }
    }
}

/// The products of `Q` queries with every key.
#[inline(always)]
unsafe fn score<S: Lanes, const Q: usize>(
    pages: &[Keys<'_>],
    queries: &[f32],
    size: usize,
    scores: &mut [[f32; TILE]],
) -> usize {
    let rows: [&[f32]; Q] = std::array::from_fn(|q| &queries[q * size..(q + 1) * size]);
    // SAFETY: as of this function; `keys` is as long as a row.
    unsafe {
        for (p, page) in pages.iter().enumerate() {
            let mut sums = [S::splat(0.0); Q];
            for (d, keys) in page.keys.iter().take(size).enumerate() {
                let keys = S::load_half(keys);
                for q in 0..Q {
                    sums[q] = keys.fma(S::splat(*rows[q].get_unchecked(d)), sums[q]);
                }
            }
            for (q, sum) in sums.into_iter().enumerate() {
                sum.store(&mut scores[q * pages.len() + p]);
            }
        }
    }
    Q
}

/// Makes of a row of scores shares that add up to one; what is not below the limit gets none.
#[inline(always)]
unsafe fn soften<S: Lanes>(row: &mut [[f32; TILE]], limit: usize) {
    let used = limit.div_ceil(TILE).min(row.len());
    let (row, beyond) = row.split_at_mut(used);
    beyond.as_flattened_mut().fill(0.0);
    row.as_flattened_mut()[limit.min(used * TILE)..].fill(f32::NEG_INFINITY);
    // SAFETY: as of this function.
    unsafe {
        let mut largest = S::splat(f32::NEG_INFINITY);
        for scores in &*row {
            largest = largest.max(S::load(scores));
        }
        let largest = S::splat(max(largest));
        let mut total = S::splat(0.0);
        for scores in &mut *row {
            let e = exp(S::load(scores).sub(largest));
            e.store(scores);
            total = total.add(e);
        }
        // The exponential of what was refused is next to nothing, which no sum feels; its share
        // must be nothing.
        row.as_flattened_mut()[limit.min(used * TILE)..].fill(0.0);
        let share = S::splat(1.0 / sum(total));
        for scores in row {
            S::load(scores).mul(share).store(scores);
        }
    }
}

/// The values of every position, weighed by the shares of `Q` queries.
#[inline(always)]
unsafe fn gather_all<S: Lanes, const Q: usize>(
    pages: &[Keys<'_>],
    shares: &[[f32; TILE]],
    chunks: usize,
    out: &mut [[f32; 16]],
) -> usize {
    let mut first = 0;
    while first < chunks {
        // SAFETY: as of this function.
        first += unsafe {
            if chunks - first >= 4 {
                gather::<S, Q, 4>(pages, shares, first, chunks, out)
            } else {
                gather::<S, Q, 1>(pages, shares, first, chunks, out)
            }
        };
    }
    Q
}

#[inline(always)]
unsafe fn gather<S: Lanes, const Q: usize, const C: usize>(
    pages: &[Keys<'_>],
    shares: &[[f32; TILE]],
    first: usize,
    chunks: usize,
    out: &mut [[f32; 16]],
) -> usize {
    // SAFETY: as of this function.
    unsafe {
        let mut sums = [[S::splat(0.0); C]; Q];
        for (p, page) in pages.iter().enumerate() {
            let rows: [&[f32; TILE]; Q] = std::array::from_fn(|q| &shares[q * pages.len() + p]);
            for (position, values) in page.values.chunks_exact(chunks).enumerate().take(TILE) {
                let values: [S; C] = std::array::from_fn(|c| S::load_half(&values[first + c]));
                for q in 0..Q {
                    let share = S::splat(rows[q][position]);
                    for c in 0..C {
                        sums[q][c] = values[c].fma(share, sums[q][c]);
                    }
                }
            }
        }
        for (q, sums) in sums.into_iter().enumerate() {
            for (c, sum) in sums.into_iter().enumerate() {
                sum.store(&mut out[q * chunks + first + c]);
            }
        }
    }
    C
}
