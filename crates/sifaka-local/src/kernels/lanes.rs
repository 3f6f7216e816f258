//! Sixteen numbers side by side: what every kernel is written in.
//!
//! Each instruction set implements [`Lanes`] once, and a kernel is written once over it. All of
//! them round the same way at every step, so a kernel gives the same bits whichever one runs it.

#![expect(unsafe_code, reason = "the methods stand for instructions that not every processor has")]

use crate::quant as half;

/// Sixteen `f32`, and the integers that the quantised products need.
///
/// **Safety.** Every method may only be called on a processor that has the instruction set the
/// implementation stands for; [`Isa::detect`](super::Isa::detect) sees to that.
pub(super) trait Lanes: Copy {
    /// Sixteen `i32`.
    type Ints: Copy;
    /// Four bytes of each of sixteen rows.
    type Bytes: Copy;

    /// What is taken off every product of [`dot_wide`](Self::dot_wide) with a weight, because the
    /// weight is multiplied as it is stored, 128 above its value; 0 if it is not.
    const WIDE_BIAS: i32;

    unsafe fn splat(x: f32) -> Self;
    unsafe fn load(from: &[f32; 16]) -> Self;
    /// Sixteen halves.
    unsafe fn load_half(from: &[u16; 16]) -> Self;
    unsafe fn store(self, to: &mut [f32; 16]);
    unsafe fn store_half(self, to: &mut [u16; 16]);
    /// `self * b + c`, rounded once.
    unsafe fn fma(self, b: Self, c: Self) -> Self;
    unsafe fn add(self, b: Self) -> Self;
    unsafe fn sub(self, b: Self) -> Self;
    unsafe fn mul(self, b: Self) -> Self;
    unsafe fn div(self, b: Self) -> Self;
    unsafe fn max(self, b: Self) -> Self;
    unsafe fn min(self, b: Self) -> Self;
    unsafe fn abs(self) -> Self;
    /// To the nearest whole number, halves to the even one.
    unsafe fn round(self) -> Self;
    /// Rounded to signed bytes; every number lies within -128 and 127.
    unsafe fn store_bytes(self, to: &mut [i8; 16]);
    /// 2 to the power of these whole numbers, which must lie within -126 and 127.
    unsafe fn power_of_two(self) -> Self;

    unsafe fn splat_int(x: i32) -> Self::Ints;
    unsafe fn to_floats(ints: Self::Ints) -> Self;
    unsafe fn load_bytes(from: &[u8; 64]) -> Self::Bytes;
    /// The lower four bits of each byte, and the upper four.
    unsafe fn nibbles(bytes: Self::Bytes) -> (Self::Bytes, Self::Bytes);
    /// Adds, in each lane, the four products of weights below 128 with four signed bytes.
    unsafe fn dot_narrow(sum: Self::Ints, weights: Self::Bytes, x: i32) -> Self::Ints;
    /// The same for weights stored 128 above their value; see [`WIDE_BIAS`](Self::WIDE_BIAS).
    unsafe fn dot_wide(sum: Self::Ints, weights: Self::Bytes, x: i32) -> Self::Ints;
}

/// Plain Rust, for processors whose instructions we do not know: the compiler makes of it what it
/// can.
#[derive(Clone, Copy)]
pub(super) struct Portable([f32; 16]);

impl Portable {
    #[inline(always)]
    fn map(self, f: impl Fn(f32) -> f32) -> Self {
        Self(std::array::from_fn(|i| f(self.0[i])))
    }

    #[inline(always)]
    fn zip(self, b: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Self(std::array::from_fn(|i| f(self.0[i], b.0[i])))
    }
}

#[inline(always)]
fn signed_bytes(x: i32) -> [i32; 4] {
    x.to_le_bytes().map(|byte| i32::from(byte.cast_signed()))
}

impl Lanes for Portable {
    type Ints = [i32; 16];
    type Bytes = [u8; 64];
    const WIDE_BIAS: i32 = 0;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Self([x; 16])
    }
    #[inline(always)]
    unsafe fn load(from: &[f32; 16]) -> Self {
        Self(*from)
    }
    #[inline(always)]
    unsafe fn load_half(from: &[u16; 16]) -> Self {
        Self(from.map(half::f16_to_f32))
    }
    #[inline(always)]
    unsafe fn store(self, to: &mut [f32; 16]) {
        *to = self.0;
    }
    #[inline(always)]
    unsafe fn store_half(self, to: &mut [u16; 16]) {
        *to = self.0.map(half::f32_to_f16);
    }
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i].mul_add(b.0[i], c.0[i])))
    }
    #[inline(always)]
    unsafe fn add(self, b: Self) -> Self {
        self.zip(b, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn sub(self, b: Self) -> Self {
        self.zip(b, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn mul(self, b: Self) -> Self {
        self.zip(b, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn div(self, b: Self) -> Self {
        self.zip(b, |a, b| a / b)
    }
    #[inline(always)]
    unsafe fn max(self, b: Self) -> Self {
        self.zip(b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    unsafe fn min(self, b: Self) -> Self {
        self.zip(b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    unsafe fn abs(self) -> Self {
        self.map(f32::abs)
    }
    #[inline(always)]
    unsafe fn round(self) -> Self {
        self.map(f32::round_ties_even)
    }
    #[inline(always)]
    unsafe fn store_bytes(self, to: &mut [i8; 16]) {
        *to = self.0.map(|x| x.round_ties_even() as i8);
    }
    #[inline(always)]
    unsafe fn power_of_two(self) -> Self {
        self.map(|x| f32::from_bits(((x as i32 + 127) << 23).cast_unsigned()))
    }

    #[inline(always)]
    unsafe fn splat_int(x: i32) -> [i32; 16] {
        [x; 16]
    }
    #[inline(always)]
    unsafe fn to_floats(ints: [i32; 16]) -> Self {
        Self(ints.map(|x| x as f32))
    }
    #[inline(always)]
    unsafe fn load_bytes(from: &[u8; 64]) -> [u8; 64] {
        *from
    }
    #[inline(always)]
    unsafe fn nibbles(bytes: [u8; 64]) -> ([u8; 64], [u8; 64]) {
        (bytes.map(|b| b & 15), bytes.map(|b| b >> 4))
    }
    #[inline(always)]
    unsafe fn dot_narrow(sum: [i32; 16], weights: [u8; 64], x: i32) -> [i32; 16] {
        let x = signed_bytes(x);
        std::array::from_fn(|lane| {
            let products = (0..4).map(|i| i32::from(weights[4 * lane + i]) * x[i]);
            sum[lane] + products.sum::<i32>()
        })
    }
    #[inline(always)]
    unsafe fn dot_wide(sum: [i32; 16], weights: [u8; 64], x: i32) -> [i32; 16] {
        let x = signed_bytes(x);
        std::array::from_fn(|lane| {
            let products = (0..4).map(|i| (i32::from(weights[4 * lane + i]) - 128) * x[i]);
            sum[lane] + products.sum::<i32>()
        })
    }
}
