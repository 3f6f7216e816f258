use serde_json::Value;

use super::*;

/// What another implementation made; the file says which and how.
fn golden() -> Value {
    serde_json::from_str(include_str!("../../tests/fixtures/quant.json")).unwrap()
}

fn bytes(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().unwrap().as_bytes();
    let digit = |digit: u8| char::from(digit).to_digit(16).unwrap() as u8;
    hex.as_chunks::<2>().0.iter().map(|&[high, low]| digit(high) << 4 | digit(low)).collect()
}

fn floats(hex: &Value) -> Vec<f32> {
    bytes(hex).as_chunks::<4>().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect()
}

#[test]
fn blocks_are_read_as_the_reference_reads_them() {
    let golden = golden();
    for kind in TensorKind::READABLE.iter().filter(|kind| **kind != TensorKind::F32) {
        let case = &golden["decode"][kind.name()];
        let wanted = floats(&case["floats"]);
        let mut out = vec![f32::NAN; wanted.len()];
        dequantize(*kind, &bytes(&case["bytes"]), &mut out).unwrap();
        assert!(!wanted.is_empty());
        assert_eq!(out, wanted, "{kind}");
    }
}

#[test]
fn blocks_are_written_as_the_reference_writes_them() {
    let golden = &golden()["encode"];
    let numbers = floats(&golden["floats"]);
    assert_eq!(quantize(TensorKind::F32, &numbers).unwrap(), bytes(&golden["floats"]));
    for kind in ["F16", "Q8_0", "Q4_0", "Q4_1"] {
        let readable = TensorKind::READABLE.iter().find(|known| known.name() == kind).unwrap();
        assert_eq!(quantize(*readable, &numbers).unwrap(), bytes(&golden[kind]), "{kind}");
    }
}

#[test]
fn other_lengths_are_refused() {
    for kind in TensorKind::READABLE {
        let mut out = vec![0.0; kind.block_len()];
        assert!(dequantize(*kind, &vec![0; kind.block_bytes() + 1], &mut out).is_err());
        assert!(dequantize(*kind, &vec![0; kind.block_bytes() * 2], &mut out).is_err());
        assert!(dequantize(*kind, &[], &mut []).is_ok());
    }
    assert!(dequantize(TensorKind::Other(20), &[], &mut []).is_err());
    assert!(quantize(TensorKind::Q8_0, &[0.0; 31]).is_err());
    assert_eq!(quantize(TensorKind::Q2K, &[]).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn numbers_that_are_none_do_not_wrap_around() {
    let mut numbers = [1.0; 32];
    numbers[3] = f32::INFINITY;
    numbers[4] = f32::NAN;
    for kind in [TensorKind::Q8_0, TensorKind::Q4_0, TensorKind::Q4_1] {
        assert_eq!(quantize(kind, &numbers).unwrap().len(), kind.block_bytes());
    }
}
