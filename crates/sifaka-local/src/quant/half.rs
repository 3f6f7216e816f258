//! IEEE halves, by their bits.

/// The half with these bits, exactly.
#[must_use]
pub fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let exponent = u32::from(bits >> 10) & 0x1f;
    let fraction = u32::from(bits & 0x03ff);
    let magnitude = match (exponent, fraction) {
        (0, 0) => 0,
        // A subnormal half is a normal float: its leading one becomes the hidden bit.
        (0, _) => {
            let shift = fraction.leading_zeros() - 21;
            ((113 - shift) << 23) | ((fraction << (shift + 13)) & 0x007f_ffff)
        }
        (0x1f, _) => 0x7f80_0000 | (fraction << 13),
        _ => ((exponent + 112) << 23) | (fraction << 13),
    };
    f32::from_bits(sign | magnitude)
}

/// The bits of the half nearest to `value`, the even one of two equally near. What is too large
/// becomes infinite, and a NaN stays one.
#[must_use]
pub fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        // Quiet, with what fits of its payload.
        return sign | 0x7e00 | (magnitude >> 13) as u16 & 0x03ff;
    }
    // 65520, half way between the largest half and the next that there would be.
    if magnitude >= 0x477f_f000 {
        return sign | 0x7c00;
    }
    // The smallest normal half; a carry out of the fraction rightly goes into the exponent.
    if magnitude >= 0x3880_0000 {
        return sign | (round_shift(magnitude, 13) - (112 << 10)) as u16;
    }
    let exponent = magnitude >> 23;
    // Less than half of the smallest subnormal.
    if exponent < 102 {
        return sign;
    }
    let fraction = (magnitude & 0x007f_ffff) | 0x0080_0000;
    sign | round_shift(fraction, 126 - exponent) as u16
}

/// `bits >> shift`, rounded to nearest, to even when half way.
fn round_shift(bits: u32, shift: u32) -> u32 {
    let kept = bits >> shift;
    let rest = bits & ((1 << shift) - 1);
    let half = 1 << (shift - 1);
    kept + u32::from(rest > half || (rest == half && kept & 1 == 1))
}

/// The float whose upper half has these bits.
#[must_use]
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the bits mean, by the definition.
    fn meaning(bits: u16) -> f64 {
        let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
        let exponent = i32::from((bits >> 10) & 0x1f);
        let fraction = f64::from(bits & 0x3ff) / 1024.0;
        match exponent {
            0 => sign * fraction * 2f64.powi(-14),
            0x1f if bits & 0x3ff == 0 => sign * f64::INFINITY,
            0x1f => f64::NAN,
            _ => sign * (1.0 + fraction) * 2f64.powi(exponent - 15),
        }
    }

    #[test]
    fn every_half_is_read_exactly_and_written_back() {
        for bits in 0..=u16::MAX {
            let value = f16_to_f32(bits);
            let meaning = meaning(bits);
            if meaning.is_nan() {
                assert!(value.is_nan());
                // A signalling one is made quiet.
                assert_eq!(f32_to_f16(value), bits | 0x0200, "{bits:04x}");
            } else {
                assert_eq!(f64::from(value), meaning, "{bits:04x}");
                assert_eq!(value.is_sign_negative(), bits & 0x8000 != 0);
                assert_eq!(f32_to_f16(value), bits, "{bits:04x}");
            }
        }
    }

    #[test]
    fn between_two_halves_the_nearest_wins_and_the_even_one_of_a_tie() {
        for bits in 0..0x7c00u16 {
            let (low, high) = (meaning(bits), meaning(bits + 1));
            // After the largest half the next step would be 65536.
            let high = if high.is_infinite() { 65536.0 } else { high };
            let middle = (low + high) / 2.0;
            let middle = middle as f32;
            let even = bits + (bits & 1);
            for (value, wanted) in
                [(middle.next_down(), bits), (middle, even), (middle.next_up(), bits + 1)]
            {
                assert_eq!(f32_to_f16(value), wanted, "{bits:04x} {value}");
                assert_eq!(f32_to_f16(-value), wanted | 0x8000, "{bits:04x} -{value}");
            }
        }
    }

    #[test]
    fn extremes_are_kept() {
        assert_eq!(f32_to_f16(f32::MAX), 0x7c00);
        assert_eq!(f32_to_f16(f32::NEG_INFINITY), 0xfc00);
        assert_eq!(f32_to_f16(f32::MIN_POSITIVE), 0);
        assert_eq!(f32_to_f16(-0.0), 0x8000);
        assert_eq!(bf16_to_f32(0x3f80), 1.0);
    }
}
