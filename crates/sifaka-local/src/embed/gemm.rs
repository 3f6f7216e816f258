//! Matrix products, and the few other loops that are worth compiling for the processor at hand.
//!
//! Everything here is plain Rust that the compiler turns into vector instructions. It is compiled
//! three times, for AVX-512, for AVX2 with FMA, and for whatever every processor has, and the best
//! that this machine can run is chosen when a model is loaded.
//!
//! Each number of a product is one chain of multiply-adds in the order of `k`, whichever rows it is
//! computed with. So a text's vector does not depend on what else is in its batch. It may differ in
//! its last bits from one kind of processor to another.

#![expect(unsafe_code, reason = "calling a function that was compiled for other instructions")]

use super::math::{fma, gelu_all, norm_rows, softmax_row};

/// Columns of a panel.
pub(super) const PANEL: usize = 32;

/// How many steps of `k` are done before the next panel: a block of a panel stays in the
/// first-level cache while all rows pass over it.
const DEPTH: usize = 192;

/// Rows of a matrix that lies in a larger one: `stride` apart, `width` of each used.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub data: &'a [f32],
    pub count: usize,
    pub width: usize,
    pub stride: usize,
}

/// One row of a panel, where a cache line begins: a vector across two lines costs twice.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Step(pub [f32; PANEL]);

/// A matrix of `depth` rows as panels of [`PANEL`] columns each, one after the other.
#[derive(Clone, Copy)]
pub(super) struct Panels<'a> {
    pub data: &'a [Step],
    pub depth: usize,
}

impl Step {
    pub(super) const ZERO: Self = Self([0.0; PANEL]);
}

/// Where a product goes: rows `stride` apart.
pub(super) struct Target<'a> {
    pub data: &'a mut [f32],
    pub stride: usize,
}

/// Weights of a linear layer, laid out once for all products to come.
pub(super) struct Weights {
    panels: Vec<Step>,
    bias: Vec<f32>,
    depth: usize,
}

impl Weights {
    /// Takes a matrix of `bias.len()` rows, a row for each output. Outputs must fill whole panels.
    pub(super) fn new(matrix: &[f32], bias: Vec<f32>, depth: usize) -> Self {
        let mut panels = vec![Step::ZERO; matrix.len() / PANEL];
        for (panel, rows) in panels.chunks_exact_mut(depth).zip(matrix.chunks_exact(PANEL * depth))
        {
            for (column, row) in rows.chunks_exact(depth).enumerate() {
                for (step, x) in panel.iter_mut().zip(row) {
                    step.0[column] = *x;
                }
            }
        }
        Self { panels, bias, depth }
    }

    /// `out = rows × weights + bias`.
    pub(super) fn apply(&self, level: Level, rows: &[f32], out: &mut [f32], packed: &mut Vec<f32>) {
        let count = rows.len() / self.depth;
        let rows = Rows { data: rows, count, width: self.depth, stride: self.depth };
        let panels = Panels { data: &self.panels, depth: self.depth };
        let out = Target { data: out, stride: self.bias.len() };
        level.multiply(rows, panels, Some(&self.bias), out, packed);
    }
}

/// Which instructions to use. One exists only where the processor has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level(Instructions);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instructions {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl Level {
    /// The fastest this processor has.
    pub(super) fn best() -> Self {
        Self::all().into_iter().next().unwrap_or(Self(Instructions::Portable))
    }

    /// All this processor has, fastest first.
    pub(super) fn all() -> Vec<Self> {
        let mut levels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                levels.push(Self(Instructions::Avx512));
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                levels.push(Self(Instructions::Avx2));
            }
        }
        levels.push(Self(Instructions::Portable));
        levels
    }
}

/// ARM's vectors always have a fused multiply-add; elsewhere it would be a call for each number.
const FUSED: bool = cfg!(target_arch = "aarch64");

/// Compiles a function for each level, and chooses at the call.
macro_rules! for_each_level {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) = $body:ident,
        $avx512:tt, $avx2:tt, $portable:tt;)*) => {
        impl Level {$(
            $(#[$doc])*
            pub(super) fn $name(self, $($argument: $type),*) {
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx512f")]
                fn avx512($($argument: $type),*) {
                    for_each_level!(@call $body $avx512 ($($argument),*));
                }
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($argument: $type),*) {
                    for_each_level!(@call $body $avx2 ($($argument),*));
                }
                match self.0 {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: there is such a level only where the processor was seen to have it.
                    Instructions::Avx512 => unsafe { avx512($($argument),*) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: as above.
                    Instructions::Avx2 => unsafe { avx2($($argument),*) },
                    Instructions::Portable => {
                        for_each_level!(@call $body $portable ($($argument),*));
                    }
                }
            }
        )*}
    };
    (@call $body:ident [$($parameter:expr),*] $arguments:tt) => {
        $body::<$({ $parameter }),*> $arguments
    };
}

// Of `multiply`: rows and vectors of a tile, and the lanes of a vector. Rows times vectors must fit
// the registers with some to spare, and stay few enough for the compiler to unroll: it gives up on
// tiles of 7 rows of 32, which are then fifty times slower.
for_each_level! {
    /// `out = rows × panels + bias`. The bias has a number for each column.
    fn multiply(
        rows: Rows<'_>,
        panels: Panels<'_>,
        bias: Option<&[f32]>,
        out: Target<'_>,
        packed: &mut Vec<f32>
    ) = product, [true, 6, 16, 2], [true, 6, 8, 2], [FUSED, 2, 4, 4];

    /// Makes each number its GELU, by the error function.
    fn gelu(values: &mut [f32]) = gelu_all, [true], [true], [FUSED];

    /// Makes a row of scores probabilities.
    fn softmax(row: &mut [f32]) = softmax_row, [true], [true], [FUSED];

    /// Adds `more` to each row, brings it to mean 0 and variance 1, then scales and shifts it.
    fn layer_norm(
        rows: &mut [f32],
        more: &[f32],
        weight: &[f32],
        bias: &[f32],
        epsilon: f32
    ) = norm_rows, [true], [true], [FUSED];
}

#[inline(always)]
fn product<const FUSED: bool, const ROWS: usize, const LANES: usize, const VECTORS: usize>(
    rows: Rows<'_>,
    panels: Panels<'_>,
    bias: Option<&[f32]>,
    mut out: Target<'_>,
    packed: &mut Vec<f32>,
) {
    let depth = rows.width;
    pack::<ROWS>(rows, packed);
    for start in (0..depth).step_by(DEPTH) {
        let steps = DEPTH.min(depth - start);
        let block = &packed[start * rows.count..][..steps * rows.count];
        for (p, panel) in panels.data.chunks_exact(panels.depth).enumerate() {
            let panel = &panel[start..][..steps];
            // The next panel comes from far away; each group of rows calls a part of it nearer.
            let next = panels.data.get((p + 1) * panels.depth + start..).unwrap_or_default();
            let next = &next[..steps.min(next.len())];
            let share = (steps * ROWS).div_ceil(rows.count);
            for (row, next) in (0..rows.count)
                .step_by(ROWS)
                .zip(next.chunks(share).chain(std::iter::repeat(&[][..])))
            {
                next.iter().for_each(call_nearer);
                let height = ROWS.min(rows.count - row);
                let a = &block[row * steps..][..height * steps];
                for part in (0..PANEL).step_by(LANES * VECTORS) {
                    let column = p * PANEL + part;
                    let from = if start > 0 {
                        From::Target
                    } else {
                        bias.map_or(From::Zero, |bias| From::Bias(&bias[column..]))
                    };
                    let tile = Tile { row, column, part, from };
                    match height {
                        1 => tile.fill::<FUSED, 1, LANES, VECTORS>(a, panel, &mut out),
                        2 => tile.fill::<FUSED, 2, LANES, VECTORS>(a, panel, &mut out),
                        3 => tile.fill::<FUSED, 3, LANES, VECTORS>(a, panel, &mut out),
                        4 => tile.fill::<FUSED, 4, LANES, VECTORS>(a, panel, &mut out),
                        5 => tile.fill::<FUSED, 5, LANES, VECTORS>(a, panel, &mut out),
                        _ => tile.fill::<FUSED, ROWS, LANES, VECTORS>(a, panel, &mut out),
                    }
                }
            }
        }
    }
}

/// Asks for a part of a panel that will be needed soon.
#[inline(always)]
fn call_nearer(step: &Step) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let at = step.0.as_ptr().cast::<i8>();
        // SAFETY: a hint that reads nothing; both addresses lie within the step.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(at);
            _mm_prefetch::<_MM_HINT_T0>(at.add(64));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = step;
}

/// Lays rows out as tiles read them: for each block of `k`, groups of rows, step by step.
#[inline(always)]
fn pack<const ROWS: usize>(rows: Rows<'_>, packed: &mut Vec<f32>) {
    packed.resize(rows.count * rows.width, 0.0);
    for start in (0..rows.width).step_by(DEPTH) {
        let steps = DEPTH.min(rows.width - start);
        let block = &mut packed[start * rows.count..][..steps * rows.count];
        for (group, to) in block.chunks_mut(ROWS * steps).enumerate() {
            let height = to.len() / steps;
            let row = |r: usize| &rows.data[(group * ROWS + r) * rows.stride + start..][..steps];
            if height == ROWS {
                let from: [&[f32]; ROWS] = std::array::from_fn(row);
                for (n, to) in to.as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
                    *to = std::array::from_fn(|r| from[r][n]);
                }
            } else {
                for r in 0..height {
                    for (to, from) in to.iter_mut().skip(r).step_by(height).zip(row(r)) {
                        *to = *from;
                    }
                }
            }
        }
    }
}

/// What a tile's sums begin with.
enum From<'a> {
    Zero,
    Bias(&'a [f32]),
    Target,
}

/// A few rows and columns of the product, held in registers.
struct Tile<'a> {
    row: usize,
    column: usize,
    part: usize,
    from: From<'a>,
}

impl Tile<'_> {
    #[inline(always)]
    fn fill<const FUSED: bool, const ROWS: usize, const LANES: usize, const VECTORS: usize>(
        &self,
        a: &[f32],
        panel: &[Step],
        out: &mut Target<'_>,
    ) {
        let mut sums = [[[0.0_f32; LANES]; VECTORS]; ROWS];
        for (r, sums) in sums.iter_mut().enumerate() {
            for (v, sum) in sums.iter_mut().enumerate() {
                match self.from {
                    From::Zero => {}
                    From::Bias(bias) => sum.copy_from_slice(&bias[v * LANES..][..LANES]),
                    From::Target => sum.copy_from_slice(
                        &out.data[(self.row + r) * out.stride + self.column + v * LANES..][..LANES],
                    ),
                }
            }
        }
        for (a, b) in a.as_chunks::<ROWS>().0.iter().zip(panel) {
            let b = b.0[self.part..][..LANES * VECTORS].as_chunks::<LANES>().0;
            for r in 0..ROWS {
                for v in 0..VECTORS {
                    let mut sum = [0.0; LANES];
                    for l in 0..LANES {
                        sum[l] = fma::<FUSED>(a[r], b[v][l], sums[r][v][l]);
                    }
                    sums[r][v] = sum;
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            for (v, sum) in sums.iter().enumerate() {
                out.data[(self.row + r) * out.stride + self.column + v * LANES..][..LANES]
                    .copy_from_slice(sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(count: usize, seed: u64) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2).wrapping_add(1);
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn a_product_is_the_sum_of_products(
            rows in 1_usize..20, depth in 1_usize..420, panels in 1_usize..4, seed: u64,
        ) {
            let columns = panels * PANEL;
            let a = numbers(rows * depth, seed);
            let matrix = numbers(columns * depth, seed ^ 1);
            let bias = numbers(columns, seed ^ 2);
            let weights = Weights::new(&matrix, bias.clone(), depth);
            for level in Level::all() {
                let (mut out, mut packed) = (vec![0.0; rows * columns], Vec::new());
                weights.apply(level, &a, &mut out, &mut packed);
                for (r, row) in a.chunks_exact(depth).enumerate() {
                    for (c, column) in matrix.chunks_exact(depth).enumerate() {
                        let sum: f64 = row.iter().zip(column)
                            .map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                        let want = sum + f64::from(bias[c]);
                        let got = f64::from(out[r * columns + c]);
                        prop_assert!((want - got).abs() < 1e-4, "{level:?}: {want} {got}");
                    }
                }
            }
        }

        #[test]
        fn a_row_is_the_same_in_any_company(
            rows in 1_usize..30, depth in 1_usize..400, pick: prop::sample::Index, seed: u64,
        ) {
            let a = numbers(rows * depth, seed);
            let weights = Weights::new(&numbers(PANEL * depth, seed ^ 1), vec![0.5; PANEL], depth);
            let row = pick.index(rows);
            for level in Level::all() {
                let (mut all, mut alone) = (vec![0.0; rows * PANEL], vec![0.0; PANEL]);
                let mut packed = Vec::new();
                weights.apply(level, &a, &mut all, &mut packed);
                weights.apply(level, &a[row * depth..][..depth], &mut alone, &mut packed);
                prop_assert_eq!(&all[row * PANEL..][..PANEL], &alone[..]);
            }
        }
    }
}
