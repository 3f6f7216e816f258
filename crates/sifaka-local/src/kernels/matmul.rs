//! Weights times activations.
//!
//! Sixteen rows of weights stand side by side in a panel, so that a lane is a row and no sum across
//! lanes is ever needed. A row's sum runs over the blocks in order, whatever the tile: the result
//! for a token is the same alone and in any batch.

#![expect(unsafe_code, reason = "the kernels call instructions that not every processor has")]

use super::for_every_isa;
use super::lanes::Lanes;
use crate::matrix::{Form, Line, Panels, Quantized};

for_every_isa! {
    /// Multiplies panels of quantised weights with the activations of every token. The output is
    /// sixteen numbers a token, token by token, panel by panel.
    pub(crate) fn multiply_quantized(panels: &Panels<'_>, x: &Quantized, out: &mut [[f32; 16]]) = quantized;
}

for_every_isa! {
    /// The same for weights that are kept as floats; `x` has a row of `panels.columns` for each token.
    pub(crate) fn multiply_floats(panels: &Panels<'_>, x: &[f32], out: &mut [[f32; 16]]) = floats;
}

/// Goes through tokens in tiles as large as there are tokens for.
macro_rules! tiles {
    ($tokens:expr, |$first:ident, $size:ident| $body:expr) => {{
        let mut $first = 0;
        while $tokens - $first >= 8 {
            const $size: usize = 8;
            $body;
            $first += 8;
        }
        if $tokens - $first >= 4 {
            const $size: usize = 4;
            $body;
            $first += 4;
        }
        if $tokens - $first >= 2 {
            const $size: usize = 2;
            $body;
            $first += 2;
        }
        if $tokens - $first >= 1 {
            const $size: usize = 1;
            $body;
        }
    }};
}

#[inline(always)]
unsafe fn quantized<S: Lanes>(panels: &Panels<'_>, x: &Quantized, out: &mut [[f32; 16]]) {
    // What lets the tiles below do without a check for every number.
    assert_eq!(panels.columns, x.columns, "weights and activations of different widths");
    let tokens = x.tokens();
    for (panel, out) in panels.iter().zip(out.chunks_exact_mut(tokens.max(1))) {
        // SAFETY: as of this function.
        unsafe {
            match panels.form {
                Form::Q8 => {
                    tiles!(tokens, |first, T| q8::<S, T>(
                        panel.lines,
                        panel.scales,
                        x,
                        first,
                        &mut out[first..]
                    ));
                }
                Form::Q4 | Form::Q4Min => {
                    tiles!(tokens, |first, T| q4::<S, T>(
                        panel.lines,
                        panel.scales,
                        panel.minima,
                        x,
                        first,
                        &mut out[first..]
                    ));
                }
                Form::Half | Form::Single => {}
            }
        }
    }
}

/// One panel of eight-bit weights and `T` tokens.
#[inline(always)]
unsafe fn q8<S: Lanes, const T: usize>(
    lines: &[Line],
    scales: &[[u16; 16]],
    x: &Quantized,
    first: usize,
    out: &mut [[f32; 16]],
) {
    let rows: [_; T] = std::array::from_fn(|t| x.row(first + t));
    // SAFETY: as of this function.
    unsafe {
        let mut sums = [S::splat(0.0); T];
        for (block, (lines, scales)) in lines.chunks_exact(8).zip(scales).enumerate() {
            let mut ints: [S::Ints; T] = std::array::from_fn(|t| {
                S::splat_int(-S::WIDE_BIAS * rows[t].sums.get_unchecked(block))
            });
            for (j, line) in lines.iter().enumerate() {
                let weights = S::load_bytes(&line.0);
                for t in 0..T {
                    let x = *rows[t].words.get_unchecked(8 * block + j);
                    ints[t] = S::dot_wide(ints[t], weights, x);
                }
            }
            let scales = S::load_half(scales);
            for t in 0..T {
                let scale = scales.mul(S::splat(*rows[t].scales.get_unchecked(block)));
                sums[t] = S::to_floats(ints[t]).fma(scale, sums[t]);
            }
        }
        for (sum, out) in sums.into_iter().zip(out) {
            sum.store(out);
        }
    }
}

/// One panel of four-bit weights and `T` tokens: around 8 without minima, above them with.
#[inline(always)]
unsafe fn q4<S: Lanes, const T: usize>(
    lines: &[Line],
    scales: &[[u16; 16]],
    minima: &[[u16; 16]],
    x: &Quantized,
    first: usize,
    out: &mut [[f32; 16]],
) {
    let rows: [_; T] = std::array::from_fn(|t| x.row(first + t));
    let around = if minima.is_empty() { -8 } else { 0 };
    // SAFETY: as of this function.
    unsafe {
        let mut sums = [S::splat(0.0); T];
        for (block, (lines, scales)) in lines.chunks_exact(4).zip(scales).enumerate() {
            let mut ints: [S::Ints; T] =
                std::array::from_fn(|t| S::splat_int(around * rows[t].sums.get_unchecked(block)));
            for (j, line) in lines.iter().enumerate() {
                let (lower, upper) = S::nibbles(S::load_bytes(&line.0));
                for t in 0..T {
                    let words = rows[t].words;
                    let (near, far) = (8 * block + j, 8 * block + j + 4);
                    ints[t] = S::dot_narrow(ints[t], lower, *words.get_unchecked(near));
                    ints[t] = S::dot_narrow(ints[t], upper, *words.get_unchecked(far));
                }
            }
            let scales = S::load_half(scales);
            for t in 0..T {
                let scale = scales.mul(S::splat(*rows[t].scales.get_unchecked(block)));
                sums[t] = S::to_floats(ints[t]).fma(scale, sums[t]);
            }
            if let Some(minima) = minima.get(block) {
                let minima = S::load_half(minima);
                for t in 0..T {
                    let weighed = S::splat(*rows[t].weighed.get_unchecked(block));
                    sums[t] = minima.fma(weighed, sums[t]);
                }
            }
        }
        for (sum, out) in sums.into_iter().zip(out) {
            sum.store(out);
        }
    }
}

#[inline(always)]
unsafe fn floats<S: Lanes>(panels: &Panels<'_>, x: &[f32], out: &mut [[f32; 16]]) {
    let columns = panels.columns;
    let tokens = x.len() / columns.max(1);
    for (panel, out) in panels.iter().zip(out.chunks_exact_mut(tokens.max(1))) {
        // SAFETY: as of this function.
        unsafe {
            if panels.form == Form::Single {
                tiles!(tokens, |first, T| float::<S, _, T>(
                    panel.singles,
                    |column| S::load(column),
                    &x[first * columns..(first + T) * columns],
                    &mut out[first..]
                ));
            } else {
                tiles!(tokens, |first, T| float::<S, _, T>(
                    panel.scales,
                    |column| S::load_half(column),
                    &x[first * columns..(first + T) * columns],
                    &mut out[first..]
                ));
            }
        }
    }
}

/// One panel of weights, a column after the other, and `T` tokens.
#[inline(always)]
unsafe fn float<S: Lanes, C, const T: usize>(
    columns: &[C],
    load: impl Fn(&C) -> S,
    x: &[f32],
    out: &mut [[f32; 16]],
) {
    let rows: [&[f32]; T] = std::array::from_fn(|t| &x[t * columns.len()..(t + 1) * columns.len()]);
    // SAFETY: as of this function.
    unsafe {
        let mut sums = [S::splat(0.0); T];
        for (k, weights) in columns.iter().enumerate() {
            let weights = load(weights);
            for t in 0..T {
                sums[t] = weights.fma(S::splat(*rows[t].get_unchecked(k)), sums[t]);
            }
        }
        for (sum, out) in sums.into_iter().zip(out) {
            sum.store(out);
        }
    }
}
