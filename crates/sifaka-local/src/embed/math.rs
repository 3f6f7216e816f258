//! Functions over whole rows, written so that the compiler can do several numbers at a time.
//!
//! All of them are inlined into functions that are compiled for the processor at hand; see
//! [`Level`](super::gemm::Level). The approximations are our own fits, good to about 1e-7.

/// Numbers that are summed side by side. Fixed, so that a sum does not depend on the processor's
/// vectors.
const LANES: usize = 16;

/// `a × b + c`, rounded once where the processor can.
#[inline(always)]
pub(super) fn fma<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// A polynomial, highest coefficient first.
#[inline(always)]
fn polynomial<const FUSED: bool, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    coefficients.into_iter().fold(0.0, |sum, c| fma::<FUSED>(sum, x, c))
}

/// e to the power of `x`, for `x` from -87 to 88. Below, it stays at the smallest normal number.
#[inline(always)]
pub(super) fn exp<const FUSED: bool>(x: f32) -> f32 {
    // Adding this rounds to whole numbers, and leaves them in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 88.0);
    let shifted = fma::<FUSED>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    // ln 2 in two parts: n times the first is exact.
    let r = fma::<FUSED>(n, -0.693_359_4, x);
    let r = fma::<FUSED>(n, 0.000_212_194_44, r);
    let q = polynomial::<FUSED, 5>(
        r,
        [0.001_393_373_2, 0.008_363_236, 0.041_666_463, 0.166_665_76, 0.5],
    );
    let power = fma::<FUSED>(q, r * r, r) + 1.0;
    f32::from_bits(power.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// The error function.
#[inline(always)]
pub(super) fn erf<const FUSED: bool>(x: f32) -> f32 {
    // Beyond 4 it is 1 as far as an f32 can tell.
    let z = x.abs().min(4.0);
    let near = z * polynomial::<FUSED, 7>(
        z * z,
        [
            8.534_120_6e-5,
            -0.000_818_078_1,
            0.005_204_331_6,
            -0.026_860_708,
            0.112_837_19,
            -0.376_126_35,
            std::f32::consts::FRAC_2_SQRT_PI,
        ],
    );
    // The logarithm of what is missing to 1 is close to a parabola.
    let missing = polynomial::<FUSED, 9>(
        z,
        [
            1.610_240_4e-6,
            -4.551_277_4e-5,
            0.000_592_092_75,
            -0.004_736_950_6,
            0.026_355_121,
            -0.109_960_8,
            -0.631_956_2,
            -1.130_155_1,
            0.000_300_268_82,
        ],
    );
    let far = 1.0 - exp::<FUSED>(missing);
    (if z < 0.9 { near } else { far }).copysign(x)
}

#[inline(always)]
pub(super) fn gelu_all<const FUSED: bool>(values: &mut [f32]) {
    for x in values {
        let half = 0.5 * *x;
        *x = fma::<FUSED>(half, erf::<FUSED>(*x * std::f32::consts::FRAC_1_SQRT_2), half);
    }
}

#[inline(always)]
fn sum(values: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let (whole, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for chunk in whole {
        for l in 0..LANES {
            sums[l] += term(chunk[l]);
        }
    }
    for (sum, x) in sums.iter_mut().zip(rest) {
        *sum += term(*x);
    }
    sums.into_iter().sum()
}

#[inline(always)]
fn largest(values: &[f32]) -> f32 {
    let (whole, rest) = values.as_chunks::<LANES>();
    let mut tops = [f32::NEG_INFINITY; LANES];
    for chunk in whole {
        for l in 0..LANES {
            tops[l] = if chunk[l] > tops[l] { chunk[l] } else { tops[l] };
        }
    }
    tops.into_iter().chain(rest.iter().copied()).fold(f32::NEG_INFINITY, f32::max)
}

#[inline(always)]
pub(super) fn softmax_row<const FUSED: bool>(row: &mut [f32]) {
    let top = largest(row);
    for x in &mut *row {
        *x = exp::<FUSED>(*x - top);
    }
    let scale = 1.0 / sum(row, |x| x);
    for x in row {
        *x *= scale;
    }
}

#[inline(always)]
pub(super) fn norm_rows<const FUSED: bool>(
    rows: &mut [f32],
    more: &[f32],
    weight: &[f32],
    bias: &[f32],
    epsilon: f32,
) {
    let width = weight.len();
    for (row, more) in rows.chunks_exact_mut(width).zip(more.chunks_exact(width)) {
        for (x, more) in row.iter_mut().zip(more) {
            *x += more;
        }
        let mean = sum(row, |x| x) / width as f32;
        let variance = sum(row, |x| (x - mean) * (x - mean)) / width as f32;
        let scale = 1.0 / (variance + epsilon).sqrt();
        for ((x, weight), bias) in row.iter_mut().zip(weight).zip(bias) {
            *x = fma::<FUSED>((*x - mean) * scale, *weight, *bias);
        }
    }
}

/// Brings a vector to length 1. `None` when it has no direction: zero, or not finite.
pub(super) fn unit(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if !length.is_finite() || length == 0.0 {
        return None;
    }
    for x in &mut vector {
        *x = (f64::from(*x) / length) as f32;
    }
    Some(vector)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::gemm::Level;
    use super::*;

    #[test]
    fn exp_is_good_to_two_units_in_the_last_place() {
        let mut worst = 0.0_f64;
        for i in -870_000..=880_000 {
            let x = i as f32 / 10_000.0;
            let want = f64::from(x).exp();
            for got in [exp::<true>(x), exp::<false>(x)] {
                worst = worst.max((f64::from(got) / want - 1.0).abs());
            }
        }
        assert!(worst < 1.5e-7, "{worst}");
        assert!(exp::<true>(f32::NEG_INFINITY) < 1e-37);
    }

    /// The error function by its series, in double precision.
    fn erf_by_series(x: f64) -> f64 {
        let (mut term, mut total, mut n) = (x, x, 0.0);
        while term.abs() > 1e-18 {
            n += 1.0;
            term *= -x * x / n;
            total += term / (2.0 * n + 1.0);
        }
        total * std::f64::consts::FRAC_2_SQRT_PI
    }

    #[test]
    fn erf_is_good_to_two_units_in_the_last_place() {
        let mut worst = 0.0_f64;
        for i in 1..=400_000 {
            let x = i as f32 / 100_000.0;
            let want = erf_by_series(f64::from(x));
            for got in [erf::<true>(x), erf::<false>(x), -erf::<true>(-x)] {
                worst = worst.max((f64::from(got) / want - 1.0).abs());
            }
        }
        assert!(worst < 2.5e-7, "{worst}");
        assert_eq!(erf::<true>(0.0), 0.0);
        assert_eq!(erf::<true>(10.0), 1.0);
        assert_eq!(erf::<true>(-10.0), -1.0);
    }

    proptest! {
        #[test]
        fn probabilities_add_up(scores in prop::collection::vec(-30.0_f32..30.0, 1..300)) {
            for level in Level::all() {
                let mut row = scores.clone();
                level.softmax(&mut row);
                let total: f64 = row.iter().map(|p| f64::from(*p)).sum();
                prop_assert!((total - 1.0).abs() < 1e-5);
                let norm: f64 = scores.iter().map(|s| f64::from(*s).exp()).sum();
                for (score, p) in scores.iter().zip(row) {
                    // Up to 60 below the largest, where a unit in the last place is 4e-6.
                    let want = f64::from(*score).exp() / norm;
                    prop_assert!((want - f64::from(p)).abs() <= 5e-6 * want + 1e-30);
                }
            }
        }

        #[test]
        fn a_normed_row_has_mean_nought_and_variance_one(
            row in prop::collection::vec(-5.0_f32..5.0, 33),
        ) {
            let (ones, noughts) = (vec![1.0; 33], vec![0.0; 33]);
            for level in Level::all() {
                let mut row = row.clone();
                level.layer_norm(&mut row, &noughts, &ones, &noughts, 1e-12);
                let mean: f32 = row.iter().sum::<f32>() / 33.0;
                let variance: f32 = row.iter().map(|x| x * x).sum::<f32>() / 33.0;
                prop_assert!(mean.abs() < 1e-5 && (variance - 1.0).abs() < 1e-4);
            }
        }
    }

    #[test]
    fn a_vector_without_direction_has_no_unit() {
        assert_eq!(unit(vec![0.0; 4]), None);
        assert_eq!(unit(vec![f32::NAN, 1.0]), None);
        assert_eq!(unit(vec![3.0, 4.0]), Some(vec![0.6, 0.8]));
    }
}
