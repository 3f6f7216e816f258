//! The "K" formats: blocks of 256 numbers, in groups whose scales are themselves small numbers
//! times the scale of the block.

use super::half_at;

/// 16 groups of 16: scale and minimum of a group in 4 bits each, then 2 bits a number.
pub(super) fn q2(block: &[u8; 84], out: &mut [f32; 256]) {
    let (groups, rest) = block.split_at(16);
    let (quants, scales) = rest.split_at(64);
    let (scale, least) = (half_at(scales, 0), half_at(scales, 2));
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let scale = scale * f32::from(groups[group] & 15);
        let least = least * f32::from(groups[group] >> 4);
        let (start, shift) = two_bits(group);
        for (out, byte) in out.iter_mut().zip(&quants[start..]) {
            *out = scale * f32::from(byte >> shift & 3) - least;
        }
    }
}

/// Where the 2-bit numbers of a group of 16 begin, and by how much their bytes are shifted: the
/// four numbers in a byte are 32 apart.
fn two_bits(group: usize) -> (usize, usize) {
    (group / 8 * 32 + group % 2 * 16, group % 8 / 2 * 2)
}

/// 16 groups of 16: a third bit for every number, 2 bits a number, 6-bit scales.
pub(super) fn q3(block: &[u8; 110], out: &mut [f32; 256]) {
    let (high, rest) = block.split_at(32);
    let (quants, rest) = rest.split_at(64);
    let scale = half_at(rest, 12);
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let low = if group < 8 { rest[group] & 15 } else { rest[group - 8] >> 4 };
        let top = rest[8 + group % 4] >> (group / 4 * 2) & 3;
        let scale = scale * (f32::from(low | top << 4) - 32.0);
        let (start, shift) = two_bits(group);
        for (i, out) in out.iter_mut().enumerate() {
            let third = high[group % 2 * 16 + i] >> (group / 2) & 1;
            let number = quants[start + i] >> shift & 3 | third << 2;
            *out = scale * (f32::from(number) - 4.0);
        }
    }
}

/// Scale and minimum of a group of 32, 6 bits each, out of the 12 bytes that hold eight pairs.
fn pair(bytes: &[u8], group: usize) -> (f32, f32) {
    let (scale, least) = if group < 4 {
        (bytes[group] & 63, bytes[group + 4] & 63)
    } else {
        (
            bytes[group + 4] & 15 | bytes[group - 4] >> 6 << 4,
            bytes[group + 4] >> 4 | bytes[group] >> 6 << 4,
        )
    };
    (f32::from(scale), f32::from(least))
}

/// 8 groups of 32 with a scale and a minimum each, 4 bits a number.
pub(super) fn q4(block: &[u8; 144], out: &mut [f32; 256]) {
    let (scale, least) = (half_at(block, 0), half_at(block, 2));
    let quants = &block[16..];
    for (group, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (group_scale, group_least) = pair(&block[4..16], group);
        let (scale, least) = (scale * group_scale, least * group_least);
        for (out, byte) in out.iter_mut().zip(&quants[group / 2 * 32..]) {
            *out = scale * f32::from(byte >> (group % 2 * 4) & 15) - least;
        }
    }
}

/// As [`q4`], with a fifth bit for every number.
pub(super) fn q5(block: &[u8; 176], out: &mut [f32; 256]) {
    let (scale, least) = (half_at(block, 0), half_at(block, 2));
    let (high, quants) = block[16..].split_at(32);
    for (group, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (group_scale, group_least) = pair(&block[4..16], group);
        let (scale, least) = (scale * group_scale, least * group_least);
        for (i, out) in out.iter_mut().enumerate() {
            let low = quants[group / 2 * 32 + i] >> (group % 2 * 4) & 15;
            *out = scale * f32::from(low | (high[i] >> group & 1) << 4) - least;
        }
    }
}

/// 16 groups of 16 with 8-bit scales, 6 bits a number: 4 low ones and 2 high ones.
pub(super) fn q6(block: &[u8; 210], out: &mut [f32; 256]) {
    let (low, rest) = block.split_at(128);
    let (high, rest) = rest.split_at(64);
    let scale = half_at(rest, 16);
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let scale = scale * f32::from(rest[group].cast_signed());
        let (half, quarter) = (group / 8, group % 8 / 2);
        let inner = group % 2 * 16;
        let low_start = half * 64 + quarter % 2 * 32 + inner;
        let high_start = half * 32 + inner;
        for (i, out) in out.iter_mut().enumerate() {
            let low = low[low_start + i] >> (quarter / 2 * 4) & 15;
            let high = high[high_start + i] >> (quarter * 2) & 3;
            *out = scale * (f32::from(low | high << 4) - 32.0);
        }
    }
}
