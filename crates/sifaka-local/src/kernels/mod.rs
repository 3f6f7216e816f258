//! The arithmetic of the forward pass, for the processor at hand.
//!
//! Every kernel is written once over [`lanes::Lanes`] and compiled for each instruction set we
//! know; which one runs is asked of the processor. **Contract.** All give the same bits, and what a
//! kernel gives for one token does not depend on what else is in the batch.

mod attention;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod lanes;
mod matmul;
mod vector;

pub(crate) use attention::{Keys, TILE, attend};
pub(crate) use matmul::{multiply_floats, multiply_quantized};
pub(crate) use vector::{
    add, exponentials, halves, largest, normalize, quantize, rotate, silu_times,
};

/// Which instructions the kernels use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// Plain Rust.
    Portable,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 (F, BW, VNNI).
    Avx512,
}

impl Isa {
    /// The best this processor has.
    #[must_use]
    pub fn detect() -> Self {
        Self::available().last().copied().unwrap_or(Self::Portable)
    }

    /// All that this processor has, the slowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut, reason = "x86 adds to it"))]
        let mut all = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c")
            {
                all.push(Self::Avx2);
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vnni")
                {
                    all.push(Self::Avx512);
                }
            }
        }
        all
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

/// Compiles a kernel for every instruction set and gives the function that picks one.
///
/// The kernel is an `unsafe fn` generic over [`lanes::Lanes`], always inlined, so that it is
/// compiled with the instructions of the function it is inlined into.
macro_rules! for_every_isa {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $out:ty)? = $kernel:ident;) => {
        $(#[$doc])*
        $vis fn $name(isa: $crate::kernels::Isa, $($arg: $type),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
            unsafe fn avx512($($arg: $type),*) $(-> $out)? {
                unsafe { $kernel::<$crate::kernels::avx512::Avx512>($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c")]
            unsafe fn avx2($($arg: $type),*) $(-> $out)? {
                unsafe { $kernel::<$crate::kernels::avx2::Avx2>($($arg),*) }
            }
            match isa {
                // SAFETY: `Isa::detect` and `Isa::available` give only what the processor has, and
                // nothing else makes one outside of them but naming it, which `Engine` checks.
                #[cfg(target_arch = "x86_64")]
                $crate::kernels::Isa::Avx512 => unsafe { avx512($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                $crate::kernels::Isa::Avx2 => unsafe { avx2($($arg),*) },
                // SAFETY: plain Rust runs everywhere.
                _ => unsafe { $kernel::<$crate::kernels::lanes::Portable>($($arg),*) },
            }
        }
    };
}
use for_every_isa;
