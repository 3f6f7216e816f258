//! How the numbers of a tensor are stored.

use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $id:literal, $name:literal, $len:literal, $bytes:literal;)*) => {
        /// How the numbers of a tensor are stored: plain, or in blocks that share a scale.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum TensorKind {
            $($(#[$doc])* $kind,)*
            /// One that is not read here, by its number in the file.
            Other(u32),
        }

        impl TensorKind {
            /// Every kind that can be read.
            pub const READABLE: &'static [Self] = &[$(Self::$kind,)*];

            /// The kind with this number in a file.
            #[must_use]
            pub const fn from_id(id: u32) -> Self {
                match id { $($id => Self::$kind,)* other => Self::Other(other) }
            }

            /// Its number in a file.
            #[must_use]
            pub const fn id(self) -> u32 {
                match self { $(Self::$kind => $id,)* Self::Other(id) => id }
            }

            /// Its name, as llama.cpp writes it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* Self::Other(id) => other_name(id) }
            }

            /// How many numbers a block holds; 0 for a kind that is not read.
            #[must_use]
            pub const fn block_len(self) -> usize {
                match self { $(Self::$kind => $len,)* Self::Other(_) => 0 }
            }

            /// How many bytes a block takes; 0 for a kind that is not read.
            #[must_use]
            pub const fn block_bytes(self) -> usize {
                match self { $(Self::$kind => $bytes,)* Self::Other(_) => 0 }
            }
        }
    };
}

kinds! {
    /// 32-bit floats.
    F32 = 0, "F32", 1, 4;
    /// IEEE halves.
    F16 = 1, "F16", 1, 2;
    /// The upper halves of 32-bit floats.
    BF16 = 30, "BF16", 1, 2;
    /// 32 numbers of 4 bits and a scale.
    Q4_0 = 2, "Q4_0", 32, 18;
    /// 32 numbers of 4 bits, a scale and a minimum.
    Q4_1 = 3, "Q4_1", 32, 20;
    /// 32 numbers of 5 bits and a scale.
    Q5_0 = 6, "Q5_0", 32, 22;
    /// 32 numbers of 5 bits, a scale and a minimum.
    Q5_1 = 7, "Q5_1", 32, 24;
    /// 32 numbers of 8 bits and a scale.
    Q8_0 = 8, "Q8_0", 32, 34;
    /// 256 numbers of 2 bits in 16 groups.
    Q2K = 10, "Q2_K", 256, 84;
    /// 256 numbers of 3 bits in 16 groups.
    Q3K = 11, "Q3_K", 256, 110;
    /// 256 numbers of 4 bits in 8 groups.
    Q4K = 12, "Q4_K", 256, 144;
    /// 256 numbers of 5 bits in 8 groups.
    Q5K = 13, "Q5_K", 256, 176;
    /// 256 numbers of 6 bits in 16 groups.
    Q6K = 14, "Q6_K", 256, 210;
}

/// Names of kinds that exist but are not read, so that an error can say which one it met.
const fn other_name(id: u32) -> &'static str {
    match id {
        9 => "Q8_1",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        20 => "IQ4_NL",
        21 => "IQ3_S",
        22 => "IQ2_S",
        23 => "IQ4_XS",
        24 => "I8",
        25 => "I16",
        26 => "I32",
        27 => "I64",
        28 => "F64",
        29 => "IQ1_M",
        34 => "TQ1_0",
        35 => "TQ2_0",
        39 => "MXFP4",
        _ => "unknown",
    }
}

impl TensorKind {
    /// How many bytes `numbers` of them take: `None` when they fill no whole number of blocks, do
    /// not fit a `u64` or are of a kind that is not read.
    #[must_use]
    pub fn bytes_for(self, numbers: u64) -> Option<u64> {
        let len = self.block_len() as u64;
        if len == 0 || !numbers.is_multiple_of(len) {
            return None;
        }
        (numbers / len).checked_mul(self.block_bytes() as u64)
    }
}

impl fmt::Display for TensorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(id) => write!(f, "{} ({id})", self.name()),
            _ => f.write_str(self.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_by_its_number() {
        for kind in TensorKind::READABLE {
            assert_eq!(TensorKind::from_id(kind.id()), *kind);
        }
        assert_eq!(TensorKind::from_id(20), TensorKind::Other(20));
        assert_eq!(TensorKind::Other(20).to_string(), "IQ4_NL (20)");
    }

    #[test]
    fn sizes_are_whole_blocks_or_nothing() {
        assert_eq!(TensorKind::Q4_1.bytes_for(64), Some(40));
        assert_eq!(TensorKind::Q4_1.bytes_for(65), None);
        assert_eq!(TensorKind::F32.bytes_for(u64::MAX), None);
        assert_eq!(TensorKind::Other(20).bytes_for(32), None);
    }
}
