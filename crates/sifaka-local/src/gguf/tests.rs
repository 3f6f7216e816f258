use std::io::Write;
use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

fn numbers() -> Vec<f32> {
    (0..96).map(|i| (i as f32 - 40.0) / 7.0).collect()
}

/// A small file with a value of every type, a matrix and a vector.
fn sample() -> Writer {
    let mut writer = Writer::new();
    let strings: Strings = ["a", "", "ü", "\u{0}"].into_iter().collect();
    writer
        .value("general.architecture", Value::String("llama".to_owned()))
        .value("u8", Value::U8(1))
        .value("i8", Value::I8(-1))
        .value("u16", Value::U16(2))
        .value("i16", Value::I16(-2))
        .value("u32", Value::U32(3))
        .value("i32", Value::I32(-3))
        .value("u64", Value::U64(4))
        .value("i64", Value::I64(-4))
        .value("f32", Value::F32(0.5))
        .value("f64", Value::F64(0.25))
        .value("bool", Value::Bool(true))
        .value("strings", Value::Array(Array::Strings(strings)))
        .value("floats", Value::Array(Array::F32s(vec![1.0, -1.0])))
        .value("bools", Value::Array(Array::Bools(vec![true, false])))
        .value(
            "lists",
            Value::Array(Array::Arrays(vec![Array::U16s(vec![7]), Array::I64s(vec![])])),
        )
        .tensor("matrix", &[32, 3], TensorKind::F32)
        .tensor("vector", &[5], TensorKind::F16);
    writer
}

fn write(writer: &Writer, to: &Path) {
    let data = |info: &TensorInfo, out: &mut dyn Write| {
        let numbers = &numbers()[..info.numbers() as usize];
        out.write_all(&crate::quant::quantize(info.kind, numbers).unwrap()).unwrap();
        Ok(())
    };
    writer.write(to, data).unwrap();
}

fn sample_bytes() -> Vec<u8> {
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sample.gguf");
        write(&sample(), &path);
        std::fs::read(path).unwrap()
    });
    BYTES.clone()
}

fn open_bytes(bytes: &[u8]) -> Result<Gguf> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    Gguf::open(file.path())
}

fn wrong(bytes: &[u8]) -> Error {
    open_bytes(bytes).unwrap_err()
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sample.gguf");
    write(&sample(), &path);
    let gguf = Gguf::open(&path).unwrap();
    assert_eq!((gguf.version(), gguf.path()), (3, path.as_path()));
    assert_eq!(gguf.values().len(), 16);
    assert_eq!(gguf.str("general.architecture").unwrap(), "llama");
    for (key, value) in [("u8", 1), ("u16", 2), ("u32", 3), ("u64", 4)] {
        assert_eq!(gguf.u64(key).unwrap(), value);
    }
    assert_eq!(gguf.get("i64"), Some(&Value::I64(-4)));
    assert_eq!(gguf.f32("f32").unwrap(), 0.5);
    assert_eq!(gguf.f32("f64").unwrap(), 0.25);
    assert_eq!(gguf.bool_opt("bool").unwrap(), Some(true));
    let Array::Strings(strings) = gguf.array("strings").unwrap() else { panic!("not strings") };
    assert_eq!(strings.iter().collect::<Vec<_>>(), ["a", "", "ü", "\u{0}"].map(str::as_bytes));
    assert!(matches!(gguf.array("lists").unwrap(), Array::Arrays(lists) if lists.len() == 2));

    let matrix = gguf.tensor("matrix").unwrap();
    assert_eq!((matrix.row_len(), matrix.rows(), matrix.bytes()), (32, 3, Some(384)));
    let whole = gguf.read(matrix).unwrap();
    assert_eq!(whole[..4], numbers()[0].to_le_bytes());
    assert_eq!(gguf.read_rows(matrix, 1, 2).unwrap(), whole[128..]);
    assert!(gguf.read_rows(matrix, 3, 0).unwrap().is_empty());
    assert_eq!(gguf.read(gguf.tensor("vector").unwrap()).unwrap().len(), 10);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no leftovers");
}

#[test]
fn several_threads_read_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sample.gguf");
    write(&sample(), &path);
    let gguf = Gguf::open(&path).unwrap();
    let matrix = gguf.tensor("matrix").unwrap();
    let whole = gguf.read(matrix).unwrap();
    std::thread::scope(|scope| {
        for row in 0..3 {
            let (gguf, whole) = (&gguf, &whole);
            scope.spawn(move || {
                for _ in 0..200 {
                    let bytes = gguf.read_rows(matrix, row, 1).unwrap();
                    assert_eq!(bytes, whole[row as usize * 128..][..128]);
                }
            });
        }
    });
}

#[test]
fn a_value_of_another_type_is_named() {
    let gguf = open_bytes(&sample_bytes()).unwrap();
    assert_eq!(gguf.u64_opt("absent").unwrap(), None);
    for (error, needle) in [
        (gguf.u64("absent").unwrap_err(), "no absent"),
        (gguf.u64("i8").unwrap_err(), "i8 is a whole number, where a whole number"),
        (gguf.str("f32").unwrap_err(), "f32 is a float, where a string is expected"),
        (gguf.array("bool").unwrap_err(), "bool is a truth value, where a list"),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.message().contains(needle), "{error}");
    }
}

#[test]
fn rows_outside_the_tensor_are_refused() {
    let gguf = open_bytes(&sample_bytes()).unwrap();
    let matrix = gguf.tensor("matrix").unwrap();
    let foreign = TensorInfo { dims: vec![1 << 40, 1 << 20], ..matrix.clone() };
    for error in [
        gguf.read_rows(matrix, 2, 2).unwrap_err(),
        gguf.read_rows(matrix, u64::MAX, 1).unwrap_err(),
        gguf.read(&foreign).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}

#[test]
fn what_is_no_such_file_is_told_apart() {
    let missing = Gguf::open("/nowhere/at/all.gguf").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(wrong(b"").message().contains("not a GGUF"));
    assert!(wrong(b"PK\x03\x04 and so on").message().contains("not a GGUF"));
    let mut old = sample_bytes();
    old[4] = 1;
    assert_eq!(wrong(&old).kind(), ErrorKind::Unsupported);
    assert!(wrong(&old).message().contains("version 1"));
    let mut big = sample_bytes();
    big[4..8].copy_from_slice(&3u32.to_be_bytes());
    assert_eq!(wrong(&big).kind(), ErrorKind::Unsupported);
    assert!(wrong(&big).message().contains("big endian"));
    let folder = tempfile::tempdir().unwrap();
    assert!(Gguf::open(folder.path()).is_err());
}

#[test]
fn every_cut_is_noticed() {
    let bytes = sample_bytes();
    // The last tensor ends before the padding does.
    let end = bytes.len() - 22;
    for len in (0..end).step_by(3).chain([end - 1]) {
        let error = wrong(&bytes[..len]);
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "cut at {len}");
    }
    assert!(open_bytes(&bytes[..end]).is_ok());
}

#[test]
fn absurd_counts_take_no_memory() {
    for at in [8, 16, 24] {
        for value in [u64::MAX, 1 << 40, 1 << 62] {
            let mut bytes = sample_bytes();
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            assert_eq!(wrong(&bytes).kind(), ErrorKind::InvalidInput);
        }
    }
}

#[test]
fn dimensions_that_multiply_to_too_much_are_refused() {
    for dims in [[1 << 40, 1 << 40, 1], [0, 1 << 63, 4]] {
        assert_eq!(product(&dims), None);
        let mut writer = Writer::new();
        writer.tensor("t", &dims, TensorKind::F32);
        let folder = tempfile::tempdir().unwrap();
        assert!(writer.write(&folder.path().join("t.gguf"), |_, _| Ok(())).is_err());
    }
    assert_eq!(product(&[]), Some(1));
    assert_eq!(product(&[3, 0]), Some(0));
}

#[test]
fn twice_the_same_name_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("twice.gguf");
    let mut writer = Writer::new();
    writer.tensor("t", &[2], TensorKind::F32).tensor("t", &[2], TensorKind::F32);
    write(&writer, &path);
    assert!(Gguf::open(&path).unwrap_err().message().contains("twice"));
}

#[test]
fn a_kind_that_is_not_read_can_be_listed_but_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.gguf");
    let mut writer = Writer::new();
    writer.tensor("odd", &[32], TensorKind::F32);
    write(&writer, &path);
    let mut bytes = std::fs::read(&path).unwrap();
    // Head, name, number of dimensions and one dimension come before the kind.
    let at = 24 + 8 + 3 + 4 + 8;
    bytes[at..at + 4].copy_from_slice(&20u32.to_le_bytes());
    let gguf = open_bytes(&bytes).unwrap();
    let odd = gguf.tensor("odd").unwrap();
    assert_eq!(odd.kind, TensorKind::Other(20));
    let error = gguf.read(odd).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("IQ4_NL"));
}

#[test]
fn a_copy_in_another_kind_keeps_metadata_and_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from.gguf");
    let to = folder.path().join("to.gguf");
    write(&sample(), &from);
    let from = Gguf::open(&from).unwrap();
    requantize(&from, TensorKind::Q8_0, &to).unwrap();
    let to = Gguf::open(&to).unwrap();
    assert_eq!(to.u64("general.file_type").unwrap(), 7);
    for (key, value) in from.values() {
        assert_eq!(to.get(key), Some(value));
    }
    let matrix = to.tensor("matrix").unwrap();
    assert_eq!((matrix.kind, &matrix.dims[..]), (TensorKind::Q8_0, &[32, 3][..]));
    assert_eq!(to.tensor("vector").unwrap().kind, TensorKind::F32);
    let mut back = vec![0.0; 96];
    crate::quant::dequantize(TensorKind::Q8_0, &to.read(matrix).unwrap(), &mut back).unwrap();
    assert!(back.iter().zip(numbers()).all(|(a, b)| (a - b).abs() < 0.05));
}

#[test]
fn a_failed_write_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("never.gguf");
    let short = sample().write(&to, |_, _| Ok(())).unwrap_err();
    assert!(short.message().contains("another size"));
    let gguf = open_bytes(&sample_bytes()).unwrap();
    let unknown = requantize(&gguf, TensorKind::Q6K, &to).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Unsupported);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever is changed in a file, reading it ends, and every tensor it still has can be asked
    /// for.
    #[test]
    fn a_damaged_file_never_panics(
        changes in prop::collection::vec((0usize..900, any::<u8>()), 1..12),
    ) {
        let mut bytes = sample_bytes();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        if let Ok(gguf) = open_bytes(&bytes) {
            for info in gguf.tensors() {
                let read = gguf.read(info);
                prop_assert!(read.is_ok() || matches!(info.kind, TensorKind::Other(_)));
            }
        }
    }
}
