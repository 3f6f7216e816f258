//! Reads tensors out of a safetensors file: a length, a JSON table of contents, then the numbers.
//!
//! The file is not trusted. Its table is held against the file's real length before anything is
//! read or allocated, so a damaged file is an error and never more memory than its own size asks
//! for.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sifaka_core::{Error, ErrorKind, Result};

use super::files::{damaged, unreadable};

/// No table of contents is larger; a model of a thousand layers has one of 2 MB.
const LARGEST_HEADER: u64 = 16 << 20;

/// An open file of tensors.
pub(super) struct SafeTensors {
    file: File,
    path: PathBuf,
    start: u64,
    tensors: HashMap<String, Entry>,
}

/// Where a tensor lies, and how its numbers are written.
#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

impl SafeTensors {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let mut file = File::open(path).map_err(|error| unreadable(path, error))?;
        let length = file.metadata().map_err(|error| unreadable(path, error))?.len();
        let mut size = [0; 8];
        file.read_exact(&mut size).map_err(|error| unreadable(path, error))?;
        let size = u64::from_le_bytes(size);
        if size > LARGEST_HEADER || size > length.saturating_sub(8) {
            return Err(damaged(path, format!("a table of {size} bytes does not fit the file")));
        }
        // At most 16 MB, by the line above.
        let mut header = vec![0; usize::try_from(size).unwrap_or_default()];
        file.read_exact(&mut header).map_err(|error| unreadable(path, error))?;
        let entries: HashMap<String, serde_json::Value> =
            serde_json::from_slice(&header).map_err(|error| {
                damaged(path, "the table of tensors is not JSON").with_source(error)
            })?;
        let data = length - 8 - size;
        let mut tensors = HashMap::new();
        for (name, value) in entries.into_iter().filter(|(name, _)| name != "__metadata__") {
            let entry: Entry = serde_json::from_value(value)
                .map_err(|error| damaged(path, format!("tensor {name}")).with_source(error))?;
            let (begin, end) = entry.data_offsets;
            if begin > end || end > data {
                return Err(damaged(path, format!("tensor {name} lies outside of the file")));
            }
            tensors.insert(name, entry);
        }
        Ok(Self { file, path: path.to_owned(), start: 8 + size, tensors })
    }

    /// The shape of a tensor, if there is one of that name.
    pub(super) fn shape(&self, name: &str) -> Option<&[u64]> {
        self.tensors.get(name).map(|entry| entry.shape.as_slice())
    }

    /// The numbers of a tensor, which must have this shape.
    pub(super) fn floats(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let entry = self
            .tensors
            .get(name)
            .ok_or_else(|| damaged(&self.path, format!("there is no tensor {name}")))?;
        if !entry.shape.iter().eq(shape.iter().map(|n| *n as u64).collect::<Vec<_>>().iter()) {
            let message = format!("tensor {name} is {:?}, expected {shape:?}", entry.shape);
            return Err(damaged(&self.path, message));
        }
        let (width, number): (u64, fn(&[u8]) -> f32) = match entry.dtype.as_str() {
            "F32" => (4, |b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
            "F16" => (2, |b| crate::quant::f16_to_f32(u16::from_le_bytes([b[0], b[1]]))),
            "BF16" => (2, |b| f32::from_bits(u32::from(u16::from_le_bytes([b[0], b[1]])) << 16)),
            other => {
                let message = format!("tensor {name} is of type {other}");
                return Err(Error::new(ErrorKind::Unsupported, "safetensors", "read", message)
                    .suggest("use weights of type F32, F16 or BF16"));
            }
        };
        let (begin, end) = entry.data_offsets;
        let count = entry.shape.iter().try_fold(1_u64, |count, n| count.checked_mul(*n));
        if count.and_then(|count| count.checked_mul(width)) != Some(end - begin) {
            return Err(damaged(&self.path, format!("tensor {name} has another size than shape")));
        }
        let size = usize::try_from(end - begin)
            .map_err(|_| damaged(&self.path, format!("tensor {name} is too large here")))?;
        let mut bytes = vec![0; size];
        let at = self.start + begin;
        self.file
            .seek(SeekFrom::Start(at))
            .and_then(|_| self.file.read_exact(&mut bytes))
            .map_err(|error| unreadable(&self.path, error))?;
        let width = if width == 4 { 4 } else { 2 };
        let numbers: Vec<f32> = bytes.chunks_exact(width).map(number).collect();
        // One number that is none would spoil every vector without a word.
        if numbers.iter().any(|x| !x.is_finite()) {
            return Err(damaged(&self.path, format!("tensor {name} has numbers that are none")));
        }
        Ok(numbers)
    }

    /// A short mark of the whole file, to tell weights apart.
    pub(super) fn mark(&mut self) -> Result<String> {
        let mut hasher = blake3::Hasher::new();
        self.file
            .seek(SeekFrom::Start(0))
            .and_then(|_| hasher.update_reader(&self.file).map(|_| ()))
            .map_err(|error| unreadable(&self.path, error))?;
        Ok(hasher.finalize().to_hex().chars().take(12).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn open(bytes: &[u8]) -> Result<SafeTensors> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        std::fs::write(&path, bytes).unwrap();
        SafeTensors::open(&path)
    }

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(data);
        bytes
    }

    fn one(dtype: &str, shape: &str, end: usize, data: &[u8]) -> Vec<u8> {
        let header =
            format!(r#"{{"a":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,{end}]}}}}"#);
        file(&header, data)
    }

    #[test]
    fn all_three_types_are_read() {
        let numbers = [1.5_f32, -2.0];
        let wide: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        let mut tensors = open(&one("F32", "[2]", 8, &wide)).unwrap();
        assert_eq!(tensors.floats("a", &[2]).unwrap(), numbers);
        assert_eq!(tensors.shape("a"), Some(&[2][..]));
        let brain = [0xC0, 0x3F, 0x00, 0xC0];
        assert_eq!(
            open(&one("BF16", "[2]", 4, &brain)).unwrap().floats("a", &[2]).unwrap(),
            numbers
        );
        let halves = [0x00, 0x3E, 0x00, 0xC0];
        assert_eq!(
            open(&one("F16", "[1,2]", 4, &halves)).unwrap().floats("a", &[1, 2]).unwrap(),
            numbers
        );
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let cases: [(&[u8], &str); 4] = [
            (&u64::MAX.to_le_bytes(), "does not fit"),
            (&100_u64.to_le_bytes(), "does not fit"),
            (&file("{", &[]), "not JSON"),
            (&one("F32", "[2]", 8, &[0; 4]), "outside"),
        ];
        for (bytes, message) in cases {
            let error = open(bytes).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.message().contains(message), "{}", error.message());
        }
        let huge = format!("[{0},{0}]", u64::MAX);
        for (bytes, shape) in [
            (one("F32", "[2]", 4, &[0; 4]), vec![2]),
            (one("F32", &huge, 4, &[0; 4]), vec![usize::MAX, usize::MAX]),
            (one("F32", "[1]", 4, &f32::NAN.to_le_bytes()), vec![1]),
            (one("F32", "[2]", 8, &[0; 8]), vec![3]),
        ] {
            let error = open(&bytes).unwrap().floats("a", &shape).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        }
        let error = open(&one("I64", "[1]", 8, &[0; 8])).unwrap().floats("a", &[1]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), small: bool) {
            // A small length gets past the first check more often.
            if small && bytes.len() > 8 {
                bytes[1..8].fill(0);
            }
            if let Ok(mut tensors) = open(&bytes) {
                prop_assert!(tensors.floats("a", &[1]).is_err());
            }
        }

        #[test]
        fn no_change_of_a_good_file_makes_it_panic(at in 0_usize..80, to: u8) {
            let mut bytes = one("F32", "[2]", 8, &[0; 8]);
            let at = at % bytes.len();
            bytes[at] = to;
            if let Ok(mut tensors) = open(&bytes)
                && let Ok(numbers) = tensors.floats("a", &[2])
            {
                prop_assert_eq!(numbers.len(), 2);
            }
        }
    }
}
