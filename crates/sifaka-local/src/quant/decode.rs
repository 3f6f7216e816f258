//! Blocks of one and of 32 numbers.

use super::{bf16_to_f32, f16_to_f32, half_at};

pub(super) fn f16(block: &[u8; 2], out: &mut [f32; 1]) {
    *out = [f16_to_f32(u16::from_le_bytes(*block))];
}

pub(super) fn bf16(block: &[u8; 2], out: &mut [f32; 1]) {
    *out = [bf16_to_f32(u16::from_le_bytes(*block))];
}

/// Scale, then 16 bytes: the low halves are the first 16 numbers, the high ones the rest.
pub(super) fn q4_0(block: &[u8; 18], out: &mut [f32; 32]) {
    let scale = half_at(block, 0);
    for (i, byte) in block[2..].iter().enumerate() {
        out[i] = scale * (f32::from(byte & 15) - 8.0);
        out[i + 16] = scale * (f32::from(byte >> 4) - 8.0);
    }
}

/// Scale, minimum, then as in Q4_0.
pub(super) fn q4_1(block: &[u8; 20], out: &mut [f32; 32]) {
    let (scale, least) = (half_at(block, 0), half_at(block, 2));
    for (i, byte) in block[4..].iter().enumerate() {
        out[i] = scale * f32::from(byte & 15) + least;
        out[i + 16] = scale * f32::from(byte >> 4) + least;
    }
}

/// Scale, the fifth bits of all 32 numbers, then as in Q4_0.
pub(super) fn q5_0(block: &[u8; 22], out: &mut [f32; 32]) {
    let scale = half_at(block, 0);
    five_bits(&block[2..], out, |number| scale * (number - 16.0));
}

/// Scale, minimum, the fifth bits, then as in Q4_0.
pub(super) fn q5_1(block: &[u8; 24], out: &mut [f32; 32]) {
    let (scale, least) = (half_at(block, 0), half_at(block, 2));
    five_bits(&block[4..], out, |number| scale * number + least);
}

fn five_bits(bytes: &[u8], out: &mut [f32; 32], number: impl Fn(f32) -> f32) {
    let fifth = |i: usize| (bytes[i / 8] >> (i % 8) & 1) << 4;
    for i in 0..16 {
        let byte = bytes[4 + i];
        out[i] = number(f32::from(byte & 15 | fifth(i)));
        out[i + 16] = number(f32::from(byte >> 4 | fifth(i + 16)));
    }
}

/// Scale, then 32 signed bytes.
pub(super) fn q8_0(block: &[u8; 34], out: &mut [f32; 32]) {
    let scale = half_at(block, 0);
    for (out, byte) in out.iter_mut().zip(&block[2..]) {
        *out = scale * f32::from(byte.cast_signed());
    }
}
