//! What happens to a token's activations between the products.
//!
//! A row is the activations of one token, sixteen at a time. Sums run over sixteen lanes side by
//! side and are then added pair by pair, in the same order everywhere.

#![expect(unsafe_code, reason = "the kernels call instructions that not every processor has")]

use super::for_every_isa;
use super::lanes::Lanes;
use crate::matrix::QuantizedPart;
use crate::quant::{f16_to_f32, f32_to_f16};

for_every_isa! {
    /// Divides `x`, every `step`-th from the first, by its root mean square and multiplies it with
    /// `weights`.
    pub(crate) fn normalize(
        x: &[[f32; 16]],
        step: usize,
        weights: &[[f32; 16]],
        epsilon: f32,
        out: &mut [[f32; 16]],
    ) = normalize_kernel;
}

for_every_isa! {
    /// Rounds a row to eight bits, with a scale for each 32.
    pub(crate) fn quantize(row: &[[f32; 16]], out: QuantizedPart<'_>) = quantize_kernel;
}

for_every_isa! {
    /// `gate / (1 + e^-gate) * up`, every `step`-th of each.
    pub(crate) fn silu_times(gate: &[[f32; 16]], up: &[[f32; 16]], step: usize, out: &mut [[f32; 16]]) = silu_kernel;
}

for_every_isa! {
    /// Adds `y` to `x`.
    pub(crate) fn add(x: &mut [[f32; 16]], y: &[[f32; 16]]) = add_kernel;
}

for_every_isa! {
    /// Turns pairs of numbers by the angles of a position: `turns` has a cosine and a sine for
    /// each pair.
    pub(crate) fn rotate(x: &mut [f32], turns: &[[f32; 2]]) = rotate_kernel;
}

for_every_isa! {
    /// Sixteen numbers in half precision.
    pub(crate) fn halves(x: &[f32; 16]) -> [u16; 16] = halves_kernel;
}

for_every_isa! {
    /// Puts `e^((x - shift) * factor)` in place of every number, and gives their sum.
    pub(crate) fn exponentials(x: &mut [[f32; 16]], shift: f32, factor: f32) -> f32 = exponentials_kernel;
}

for_every_isa! {
    /// The largest of all.
    pub(crate) fn largest(x: &[[f32; 16]]) -> f32 = largest_kernel;
}

/// The sum of the lanes, pair by pair.
#[inline(always)]
pub(super) unsafe fn sum<S: Lanes>(x: S) -> f32 {
    let mut lanes = [0.0_f32; 16];
    // SAFETY: as of this function.
    unsafe { x.store(&mut lanes) };
    let mut width = 8;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// The largest of the lanes.
#[inline(always)]
pub(super) unsafe fn max<S: Lanes>(x: S) -> f32 {
    let mut lanes = [0.0_f32; 16];
    // SAFETY: as of this function.
    unsafe { x.store(&mut lanes) };
    lanes.into_iter().fold(f32::NEG_INFINITY, |a, b| if a > b { a } else { b })
}

/// e to the power of each, to about one part in 10^7; below -87 it is next to nothing.
#[inline(always)]
pub(super) unsafe fn exp<S: Lanes>(x: S) -> S {
    // SAFETY: as of this function.
    unsafe {
        let x = x.max(S::splat(-87.0)).min(S::splat(88.0));
        let n = x.mul(S::splat(std::f32::consts::LOG2_E)).round();
        // ln 2 in two parts, the first short enough that its product is exact.
        let r = n.fma(S::splat(-0.693_359_4), x);
        let r = n.fma(S::splat(2.121_944_4e-4), r);
        let mut p = S::splat(1.987_569_1e-4);
        for c in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5e-1] {
            p = p.fma(r, S::splat(c));
        }
        let e = p.mul(r).fma(r, r).add(S::splat(1.0));
        e.mul(n.power_of_two())
    }
}

#[inline(always)]
unsafe fn normalize_kernel<S: Lanes>(
    x: &[[f32; 16]],
    step: usize,
    weights: &[[f32; 16]],
    epsilon: f32,
    out: &mut [[f32; 16]],
) {
    // SAFETY: as of this function.
    unsafe {
        let mut squares = S::splat(0.0);
        for chunk in x.iter().step_by(step).take(weights.len()) {
            let x = S::load(chunk);
            squares = x.fma(x, squares);
        }
        let mean = sum(squares) / (weights.len() * 16) as f32;
        let scale = S::splat(1.0 / (mean + epsilon).sqrt());
        for ((chunk, weights), out) in x.iter().step_by(step).zip(weights).zip(out) {
            S::load(chunk).mul(scale).mul(S::load(weights)).store(out);
        }
    }
}

#[inline(always)]
unsafe fn quantize_kernel<S: Lanes>(row: &[[f32; 16]], out: QuantizedPart<'_>) {
    let blocks = row
        .as_chunks::<2>()
        .0
        .iter()
        .zip(out.words.as_chunks_mut::<8>().0)
        .zip(out.scales.iter_mut().zip(out.sums.iter_mut()).zip(out.weighed));
    for (([a, b], words), ((scale, sum), weighed)) in blocks {
        // SAFETY: as of this function.
        unsafe {
            let (a, b) = (S::load(a), S::load(b));
            let d = max(a.abs().max(b.abs())) / 127.0;
            let inverse = S::splat(if d > 0.0 { 1.0 / d } else { 0.0 });
            let mut bytes = [[0_i8; 16]; 2];
            a.mul(inverse).store_bytes(&mut bytes[0]);
            b.mul(inverse).store_bytes(&mut bytes[1]);
            let bytes = bytes.as_flattened();
            *sum = bytes.iter().map(|&x| i32::from(x)).sum();
            // Scales are kept in half precision, as in the formats' own definition.
            *scale = f16_to_f32(f32_to_f16(d));
            *weighed = f16_to_f32(f32_to_f16(d * *sum as f32));
            for (word, four) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *word = i32::from_le_bytes(four.map(i8::cast_unsigned));
            }
        }
    }
}

#[inline(always)]
unsafe fn silu_kernel<S: Lanes>(
    gate: &[[f32; 16]],
    up: &[[f32; 16]],
    step: usize,
    out: &mut [[f32; 16]],
) {
    for ((gate, up), out) in gate.iter().step_by(step).zip(up.iter().step_by(step)).zip(out) {
        // SAFETY: as of this function.
        unsafe {
            let (gate, one) = (S::load(gate), S::splat(1.0));
            let below = one.add(exp(S::splat(0.0).sub(gate)));
            gate.div(below).mul(S::load(up)).store(out);
        }
    }
}

#[inline(always)]
unsafe fn add_kernel<S: Lanes>(x: &mut [[f32; 16]], y: &[[f32; 16]]) {
    for (x, y) in x.iter_mut().zip(y) {
        // SAFETY: as of this function.
        unsafe { S::load(x).add(S::load(y)).store(x) }
    }
}

#[inline(always)]
unsafe fn rotate_kernel<S: Lanes>(x: &mut [f32], turns: &[[f32; 2]]) {
    for ([a, b], [cos, sin]) in x.as_chunks_mut::<2>().0.iter_mut().zip(turns) {
        (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
    }
}

#[inline(always)]
unsafe fn halves_kernel<S: Lanes>(x: &[f32; 16]) -> [u16; 16] {
    let mut out = [0; 16];
    // SAFETY: as of this function.
    unsafe { S::load(x).store_half(&mut out) };
    out
}

#[inline(always)]
unsafe fn exponentials_kernel<S: Lanes>(x: &mut [[f32; 16]], shift: f32, factor: f32) -> f32 {
    // SAFETY: as of this function.
    unsafe {
        let (shift, factor) = (S::splat(shift), S::splat(factor));
        let mut total = S::splat(0.0);
        for x in x {
            let e = exp(S::load(x).sub(shift).mul(factor));
            e.store(x);
            total = total.add(e);
        }
        sum(total)
    }
}

#[inline(always)]
unsafe fn largest_kernel<S: Lanes>(x: &[[f32; 16]]) -> f32 {
    // SAFETY: as of this function.
    unsafe {
        let mut largest = S::splat(f32::NEG_INFINITY);
        for x in x {
            largest = largest.max(S::load(x));
        }
        max(largest)
    }
}
