//! Block formats: numbers of few bits that share a scale, to floats and back.
//!
//! The formats are ggml's. Reading gives bit for bit what its reference gives, and so does writing
//! for the kinds that [`quantize`] knows.

mod decode;
mod encode;
mod half;
mod k;

use sifaka_core::{Error, ErrorKind, Result};

use crate::gguf::TensorKind;

pub use half::{bf16_to_f32, f16_to_f32, f32_to_f16};

const COMPONENT: &str = "quant";

/// Turns whole blocks of `kind` into floats.
///
/// # Errors
/// `kind` is not read here, or `bytes` and `out` are not the same whole number of blocks.
pub fn dequantize(kind: TensorKind, bytes: &[u8], out: &mut [f32]) -> Result<()> {
    if kind.bytes_for(out.len() as u64) != Some(bytes.len() as u64) {
        return Err(mismatch(kind, bytes.len(), out.len()));
    }
    match kind {
        TensorKind::F32 => each(bytes, out, |bytes, out| *out = [f32::from_le_bytes(*bytes)]),
        TensorKind::F16 => each(bytes, out, decode::f16),
        TensorKind::BF16 => each(bytes, out, decode::bf16),
        TensorKind::Q4_0 => each(bytes, out, decode::q4_0),
        TensorKind::Q4_1 => each(bytes, out, decode::q4_1),
        TensorKind::Q5_0 => each(bytes, out, decode::q5_0),
        TensorKind::Q5_1 => each(bytes, out, decode::q5_1),
        TensorKind::Q8_0 => each(bytes, out, decode::q8_0),
        TensorKind::Q2K => each(bytes, out, k::q2),
        TensorKind::Q3K => each(bytes, out, k::q3),
        TensorKind::Q4K => each(bytes, out, k::q4),
        TensorKind::Q5K => each(bytes, out, k::q5),
        TensorKind::Q6K => each(bytes, out, k::q6),
        TensorKind::Other(_) => return Err(mismatch(kind, bytes.len(), out.len())),
    }
    Ok(())
}

/// Turns floats into whole blocks of `kind`: F32, F16, Q8_0, Q4_0 or Q4_1.
///
/// # Errors
/// `kind` is another one, or the numbers fill no whole number of blocks.
pub fn quantize(kind: TensorKind, numbers: &[f32]) -> Result<Vec<u8>> {
    let encode: fn(&[f32], &mut Vec<u8>) = match kind {
        TensorKind::F32 => encode::f32,
        TensorKind::F16 => encode::f16,
        TensorKind::Q8_0 => encode::q8_0,
        TensorKind::Q4_0 => encode::q4_0,
        TensorKind::Q4_1 => encode::q4_1,
        other => {
            let message = format!("weights cannot be written as {other}");
            return Err(Error::new(ErrorKind::Unsupported, COMPONENT, "quantize", message)
                .suggest("choose F32, F16, Q8_0, Q4_0 or Q4_1"));
        }
    };
    let Some(bytes) = kind.bytes_for(numbers.len() as u64) else {
        return Err(mismatch(kind, 0, numbers.len()));
    };
    let mut out = Vec::with_capacity(bytes as usize);
    encode(numbers, &mut out);
    Ok(out)
}

/// Decodes block after block; the lengths were checked.
fn each<const B: usize, const N: usize>(
    bytes: &[u8],
    out: &mut [f32],
    block: impl Fn(&[u8; B], &mut [f32; N]),
) {
    let blocks = bytes.as_chunks::<B>().0;
    for (bytes, out) in blocks.iter().zip(out.as_chunks_mut::<N>().0) {
        block(bytes, out);
    }
}

/// The half at `at` of a block.
fn half_at(block: &[u8], at: usize) -> f32 {
    f16_to_f32(u16::from_le_bytes([block[at], block[at + 1]]))
}

fn mismatch(kind: TensorKind, bytes: usize, numbers: usize) -> Error {
    let message = format!("{bytes} bytes and {numbers} numbers are not the same {kind} blocks");
    Error::new(ErrorKind::InvalidInput, COMPONENT, "dequantize", message)
}

#[cfg(test)]
mod tests;
