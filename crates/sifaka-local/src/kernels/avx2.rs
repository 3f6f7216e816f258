//! AVX2 with FMA and F16C: two registers for sixteen rows.

#![expect(unsafe_code, reason = "instructions of one processor family")]

use std::arch::x86_64::*;

use super::lanes::Lanes;

#[derive(Clone, Copy)]
pub(super) struct Avx2([__m256; 2]);

type Pair = [__m256i; 2];

macro_rules! both {
    (|$i:ident| $body:expr) => {{
        let make = |$i: usize| $body;
        [make(0), make(1)]
    }};
}

// SAFETY (of every block below): the caller of a `Lanes` method vouches for the instruction set,
// and every pointer comes from a reference to as many bytes as are touched.
impl Lanes for Avx2 {
    type Ints = Pair;
    type Bytes = Pair;
    const WIDE_BIAS: i32 = 0;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        unsafe { Self([_mm256_set1_ps(x); 2]) }
    }
    #[inline(always)]
    unsafe fn load(from: &[f32; 16]) -> Self {
        unsafe { Self(both!(|i| _mm256_loadu_ps(from.as_ptr().add(8 * i)))) }
    }
    #[inline(always)]
    unsafe fn load_half(from: &[u16; 16]) -> Self {
        unsafe {
            Self(both!(|i| _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().add(8 * i).cast()))))
        }
    }
    #[inline(always)]
    unsafe fn store(self, to: &mut [f32; 16]) {
        unsafe {
            _mm256_storeu_ps(to.as_mut_ptr(), self.0[0]);
            _mm256_storeu_ps(to.as_mut_ptr().add(8), self.0[1]);
        }
    }
    #[inline(always)]
    unsafe fn store_half(self, to: &mut [u16; 16]) {
        unsafe {
            let halves = both!(|i| _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0[i]));
            _mm_storeu_si128(to.as_mut_ptr().cast(), halves[0]);
            _mm_storeu_si128(to.as_mut_ptr().add(8).cast(), halves[1]);
        }
    }
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        unsafe { Self(both!(|i| _mm256_fmadd_ps(self.0[i], b.0[i], c.0[i]))) }
    }
    #[inline(always)]
    unsafe fn add(self, b: Self) -> Self {
        unsafe { Self(both!(|i| _mm256_add_ps(self.0[i], b.0[i]))) }
    }
    #[inline(always)]
    unsafe fn sub(self, b: Self) -> Self {
        unsafe { Self(both!(|i| _mm256_sub_ps(self.0[i], b.0[i]))) }
    }
    #[inline(always)]
    unsafe fn mul(self, b: Self) -> Self {
        unsafe { Self(both!(|i| _mm256_mul_ps(self.0[i], b.0[i]))) }
    }
    #[inline(always)]
    unsafe fn div(self, b: Self) -> Self {
        unsafe { Self(both!(|i| _mm256_div_ps(self.0[i], b.0[i]))) }
    }
    #[inline(always)]
    unsafe fn max(self, b: Self) -> Self {
        unsafe { Self(both!(|i| _mm256_max_ps(self.0[i], b.0[i]))) }
    }
    #[inline(always)]
    unsafe fn min(self, b: Self) -> Self {
        unsafe { Self(both!(|i| _mm256_min_ps(self.0[i], b.0[i]))) }
    }
    #[inline(always)]
    unsafe fn abs(self) -> Self {
        unsafe {
            let sign = _mm256_set1_ps(-0.0);
            Self(both!(|i| _mm256_andnot_ps(sign, self.0[i])))
        }
    }
    #[inline(always)]
    unsafe fn round(self) -> Self {
        unsafe {
            Self(both!(|i| _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(
                self.0[i]
            )))
        }
    }
    #[inline(always)]
    unsafe fn store_bytes(self, to: &mut [i8; 16]) {
        unsafe {
            let [a, b] = both!(|i| _mm256_cvtps_epi32(self.0[i]));
            let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(a, b));
            let bytes = _mm_packs_epi16(
                _mm256_castsi256_si128(words),
                _mm256_extracti128_si256::<1>(words),
            );
            _mm_storeu_si128(to.as_mut_ptr().cast(), bytes);
        }
    }
    #[inline(always)]
    unsafe fn power_of_two(self) -> Self {
        unsafe {
            Self(both!(|i| {
                let whole = _mm256_add_epi32(_mm256_cvtps_epi32(self.0[i]), _mm256_set1_epi32(127));
                _mm256_castsi256_ps(_mm256_slli_epi32::<23>(whole))
            }))
        }
    }

    #[inline(always)]
    unsafe fn splat_int(x: i32) -> Pair {
        unsafe { [_mm256_set1_epi32(x); 2] }
    }
    #[inline(always)]
    unsafe fn to_floats(ints: Pair) -> Self {
        unsafe { Self(both!(|i| _mm256_cvtepi32_ps(ints[i]))) }
    }
    #[inline(always)]
    unsafe fn load_bytes(from: &[u8; 64]) -> Pair {
        unsafe { both!(|i| _mm256_loadu_si256(from.as_ptr().add(32 * i).cast())) }
    }
    #[inline(always)]
    unsafe fn nibbles(bytes: Pair) -> (Pair, Pair) {
        unsafe {
            let mask = _mm256_set1_epi8(15);
            let upper = both!(|i| _mm256_and_si256(_mm256_srli_epi16::<4>(bytes[i]), mask));
            (both!(|i| _mm256_and_si256(bytes[i], mask)), upper)
        }
    }
    #[inline(always)]
    unsafe fn dot_narrow(sum: Pair, weights: Pair, x: i32) -> Pair {
        unsafe {
            let (x, ones) = (_mm256_set1_epi32(x), _mm256_set1_epi16(1));
            both!(|i| {
                let pairs = _mm256_maddubs_epi16(weights[i], x);
                _mm256_add_epi32(sum[i], _mm256_madd_epi16(pairs, ones))
            })
        }
    }
    #[inline(always)]
    unsafe fn dot_wide(sum: Pair, weights: Pair, x: i32) -> Pair {
        unsafe {
            let (x, ones) = (_mm256_set1_epi32(x), _mm256_set1_epi16(1));
            both!(|i| {
                // The product of sixteen bits would overflow with the bias in it, so the weight's
                // own value comes back and lends its sign to the other factor.
                let value = _mm256_xor_si256(weights[i], _mm256_set1_epi8(-128));
                let pairs =
                    _mm256_maddubs_epi16(_mm256_abs_epi8(value), _mm256_sign_epi8(x, value));
                _mm256_add_epi32(sum[i], _mm256_madd_epi16(pairs, ones))
            })
        }
    }
}
