//! Floats to blocks, as ggml's reference does it.

use super::f32_to_f16;

pub(super) fn f32(numbers: &[f32], out: &mut Vec<u8>) {
    numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
}

pub(super) fn f16(numbers: &[f32], out: &mut Vec<u8>) {
    numbers.iter().for_each(|number| half(*number, out));
}

fn half(number: f32, out: &mut Vec<u8>) {
    out.extend(f32_to_f16(number).to_le_bytes());
}

pub(super) fn q8_0(numbers: &[f32], out: &mut Vec<u8>) {
    for block in numbers.as_chunks::<32>().0 {
        let largest = block.iter().fold(0f32, |largest, number| largest.max(number.abs()));
        let scale = largest / 127.0;
        half(scale, out);
        let inverse = inverse(scale);
        // `as` saturates, so that an infinity or a NaN in the weights cannot wrap around.
        out.extend(block.iter().map(|number| ((number * inverse).round() as i8).cast_unsigned()));
    }
}

pub(super) fn q4_0(numbers: &[f32], out: &mut Vec<u8>) {
    for block in numbers.as_chunks::<32>().0 {
        // The number furthest from zero becomes -8, whatever its sign: that side has one more step.
        let furthest =
            block.iter().fold(
                0f32,
                |furthest, &number| {
                    if number.abs() > furthest.abs() { number } else { furthest }
                },
            );
        let scale = furthest / -8.0;
        half(scale, out);
        let inverse = inverse(scale);
        nibbles(block, out, |number| number * inverse + 8.5);
    }
}

pub(super) fn q4_1(numbers: &[f32], out: &mut Vec<u8>) {
    for block in numbers.as_chunks::<32>().0 {
        let least = block.iter().copied().fold(f32::MAX, f32::min);
        let most = block.iter().copied().fold(-f32::MAX, f32::max);
        let scale = (most - least) / 15.0;
        half(scale, out);
        half(least, out);
        let inverse = inverse(scale);
        nibbles(block, out, |number| (number - least) * inverse + 0.5);
    }
}

fn inverse(scale: f32) -> f32 {
    if scale == 0.0 { 0.0 } else { 1.0 / scale }
}

fn nibbles(block: &[f32; 32], out: &mut Vec<u8>, step: impl Fn(f32) -> f32) {
    let nibble = |number: f32| (step(number) as u8).min(15);
    let (first, second) = block.split_at(16);
    out.extend(first.iter().zip(second).map(|(&a, &b)| nibble(a) | nibble(b) << 4));
}
