//! The real file.

use sifaka_local::gguf::{Gguf, TensorKind, requantize};
use sifaka_local::quant;

use sifaka_testkit::servers;

#[test]
fn the_small_model_opens_and_every_tensor_is_read() {
    let Some(path) = servers::gguf() else { return };
    let gguf = Gguf::open(&path).unwrap();
    assert_eq!(gguf.str("general.architecture").unwrap(), "llama");
    assert_eq!(gguf.u64("llama.block_count").unwrap(), 30);
    assert_eq!(gguf.u64("llama.context_length").unwrap(), 8192);
    let mut numbers = 0;
    for info in gguf.tensors() {
        let bytes = gguf.read(info).unwrap();
        assert_eq!(bytes.len() as u64, info.bytes().unwrap(), "{}", info.name);
        let mut out = vec![0.0; info.numbers() as usize];
        quant::dequantize(info.kind, &bytes, &mut out).unwrap();
        assert!(out.iter().all(|number| number.is_finite()), "{}", info.name);
        numbers += info.numbers();
    }
    assert_eq!(numbers, 134_515_008, "as many parameters as the model's card says");
}

#[test]
fn the_small_model_is_copied_to_another_kind() {
    let Some(path) = servers::gguf() else { return };
    let from = Gguf::open(&path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("q8_0.gguf");
    requantize(&from, TensorKind::Q8_0, &to).unwrap();
    let to = Gguf::open(&to).unwrap();
    assert_eq!(to.tensors().len(), from.tensors().len());
    let name = "blk.7.ffn_down.weight";
    let read = |gguf: &Gguf| {
        let info = gguf.tensor(name).unwrap();
        let mut out = vec![0.0; info.numbers() as usize];
        quant::dequantize(info.kind, &gguf.read(info).unwrap(), &mut out).unwrap();
        (info.kind, out)
    };
    let (old_kind, old) = read(&from);
    let (new_kind, new) = read(&to);
    assert_eq!((old_kind, new_kind), (TensorKind::Q4_1, TensorKind::Q8_0));
    // Half a step of the coarsest block, and what the scale loses as a half.
    let largest = old.iter().fold(0f32, |largest, number| largest.max(number.abs()));
    let apart = old.iter().zip(&new).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
    assert!(apart <= largest / 127.0, "{apart} of {largest}");
}
