//! AVX-512 with VNNI: one register is sixteen rows, one instruction 64 products.

#![expect(unsafe_code, reason = "instructions of one processor family")]

use std::arch::x86_64::*;

use super::lanes::Lanes;

#[derive(Clone, Copy)]
pub(super) struct Avx512(__m512);

// SAFETY (of every block below): the caller of a `Lanes` method vouches for the instruction set,
// and every pointer comes from a reference to as many bytes as are touched.
impl Lanes for Avx512 {
    type Ints = __m512i;
    type Bytes = __m512i;
    const WIDE_BIAS: i32 = 128;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        unsafe { Self(_mm512_set1_ps(x)) }
    }
    #[inline(always)]
    unsafe fn load(from: &[f32; 16]) -> Self {
        unsafe { Self(_mm512_loadu_ps(from.as_ptr())) }
    }
    #[inline(always)]
    unsafe fn load_half(from: &[u16; 16]) -> Self {
        unsafe { Self(_mm512_cvtph_ps(_mm256_loadu_si256(from.as_ptr().cast()))) }
    }
    #[inline(always)]
    unsafe fn store(self, to: &mut [f32; 16]) {
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    unsafe fn store_half(self, to: &mut [u16; 16]) {
        unsafe {
            let halves = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0);
            _mm256_storeu_si256(to.as_mut_ptr().cast(), halves);
        }
    }
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        unsafe { Self(_mm512_fmadd_ps(self.0, b.0, c.0)) }
    }
    #[inline(always)]
    unsafe fn add(self, b: Self) -> Self {
        unsafe { Self(_mm512_add_ps(self.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn sub(self, b: Self) -> Self {
        unsafe { Self(_mm512_sub_ps(self.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn mul(self, b: Self) -> Self {
        unsafe { Self(_mm512_mul_ps(self.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn div(self, b: Self) -> Self {
        unsafe { Self(_mm512_div_ps(self.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn max(self, b: Self) -> Self {
        unsafe { Self(_mm512_max_ps(self.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn min(self, b: Self) -> Self {
        unsafe { Self(_mm512_min_ps(self.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn abs(self) -> Self {
        unsafe { Self(_mm512_abs_ps(self.0)) }
    }
    #[inline(always)]
    unsafe fn round(self) -> Self {
        unsafe {
            Self(_mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0))
        }
    }
    #[inline(always)]
    unsafe fn store_bytes(self, to: &mut [i8; 16]) {
        unsafe {
            let bytes = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(self.0));
            _mm_storeu_si128(to.as_mut_ptr().cast(), bytes);
        }
    }
    #[inline(always)]
    unsafe fn power_of_two(self) -> Self {
        unsafe {
            let whole = _mm512_add_epi32(_mm512_cvtps_epi32(self.0), _mm512_set1_epi32(127));
            Self(_mm512_castsi512_ps(_mm512_slli_epi32::<23>(whole)))
        }
    }

    #[inline(always)]
    unsafe fn splat_int(x: i32) -> __m512i {
        unsafe { _mm512_set1_epi32(x) }
    }
    #[inline(always)]
    unsafe fn to_floats(ints: __m512i) -> Self {
        unsafe { Self(_mm512_cvtepi32_ps(ints)) }
    }
    #[inline(always)]
    unsafe fn load_bytes(from: &[u8; 64]) -> __m512i {
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }
    #[inline(always)]
    unsafe fn nibbles(bytes: __m512i) -> (__m512i, __m512i) {
        unsafe {
            let mask = _mm512_set1_epi8(15);
            let upper = _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), mask);
            (_mm512_and_si512(bytes, mask), upper)
        }
    }
    #[inline(always)]
    unsafe fn dot_narrow(sum: __m512i, weights: __m512i, x: i32) -> __m512i {
        unsafe { _mm512_dpbusd_epi32(sum, weights, _mm512_set1_epi32(x)) }
    }
    #[inline(always)]
    unsafe fn dot_wide(sum: __m512i, weights: __m512i, x: i32) -> __m512i {
        unsafe { _mm512_dpbusd_epi32(sum, weights, _mm512_set1_epi32(x)) }
    }
}
