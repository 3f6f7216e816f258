//! GGUF files: what llama.cpp and its relatives keep a model in.
//!
//! A file has metadata (the shape of the model, its tokenizer, its chat template), a list of
//! tensors and their data. [`Gguf::open`] reads all but the data; those are read when asked for, a
//! tensor or some rows of it at a time, so that loading never holds a big tensor twice.
//!
//! A file is not trusted. Whatever it says about lengths and places is checked before it is used.

mod file;
mod kind;
mod parse;
mod value;
mod write;

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use sifaka_core::{Error, ErrorKind, Result};

use parse::Wrong;

pub use kind::TensorKind;
pub use value::{Array, Strings, Value};
pub use write::{Writer, requantize};

const COMPONENT: &str = "gguf";

/// An open file: its metadata and tensors. Reading tensors is safe from several threads.
#[derive(Debug)]
pub struct Gguf {
    path: PathBuf,
    file: File,
    version: u32,
    values: Vec<(String, Value)>,
    value_index: HashMap<String, usize>,
    tensors: Vec<TensorInfo>,
    tensor_index: HashMap<String, usize>,
}

/// A tensor of a file, without its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Its name, such as `blk.0.attn_q.weight`.
    pub name: String,
    /// Its dimensions in ggml's order: the first is the length of a row.
    pub dims: Vec<u64>,
    /// How its numbers are stored.
    pub kind: TensorKind,
    /// Where its data begin, from the start of the file.
    pub offset: u64,
}

impl TensorInfo {
    /// How many numbers a row has.
    #[must_use]
    pub fn row_len(&self) -> u64 {
        self.dims.first().copied().unwrap_or(1)
    }

    /// How many rows it has; a vector has one.
    #[must_use]
    pub fn rows(&self) -> u64 {
        product(self.dims.get(1..).unwrap_or_default()).unwrap_or(u64::MAX)
    }

    /// How many numbers it has.
    #[must_use]
    pub fn numbers(&self) -> u64 {
        product(&self.dims).unwrap_or(u64::MAX)
    }

    /// How many bytes its data take, unless its kind is one that is not read.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        self.kind.bytes_for(self.row_len())?.checked_mul(self.rows())
    }
}

impl Gguf {
    /// Opens a file and reads its head.
    ///
    /// # Errors
    /// The file is missing or cannot be read, is no GGUF file, is cut off or damaged, is of an
    /// unknown version or big endian.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| cannot_read(path, error))?;
        let meta = file.metadata().map_err(|error| cannot_read(path, error))?;
        if meta.is_dir() {
            return Err(damaged(path, "this is a folder, not a file"));
        }
        let head = parse::head(BufReader::with_capacity(1 << 18, &file), meta.len());
        let head = head.map_err(|wrong| match wrong {
            Wrong::Damaged(message) => damaged(path, message),
            Wrong::Unsupported(message) => unsupported(path, message),
            Wrong::Io(error) => cannot_read(path, error),
        })?;

        let mut value_index = HashMap::with_capacity(head.values.len());
        for (at, (key, _)) in head.values.iter().enumerate() {
            if value_index.insert(key.clone(), at).is_some() {
                return Err(damaged(path, format!("the key {key} is there twice")));
            }
        }
        let mut tensors = Vec::with_capacity(head.tensors.len());
        let mut tensor_index = HashMap::with_capacity(head.tensors.len());
        for raw in head.tensors {
            let info = placed(raw, head.data, meta.len()).map_err(|why| damaged(path, why))?;
            if tensor_index.insert(info.name.clone(), tensors.len()).is_some() {
                return Err(damaged(path, format!("the tensor {} is there twice", info.name)));
            }
            tensors.push(info);
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            version: head.version,
            values: head.values,
            value_index,
            tensors,
            tensor_index,
        })
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The version of the format.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// A value of the metadata.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.value_index.get(key).map(|&at| &self.values[at].1)
    }

    /// The metadata, in the file's order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The tensors, in the file's order.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = &TensorInfo> {
        self.tensors.iter()
    }

    /// A tensor by its name.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensor_index.get(name).map(|&at| &self.tensors[at])
    }

    /// The data of a tensor.
    ///
    /// # Errors
    /// Its kind is not read here, or the disk failed.
    pub fn read(&self, info: &TensorInfo) -> Result<Vec<u8>> {
        self.read_rows(info, 0, info.rows())
    }

    /// The data of some rows of a tensor.
    ///
    /// # Errors
    /// Its kind is not read here, it has no such rows, or the disk failed.
    pub fn read_rows(&self, info: &TensorInfo, first: u64, rows: u64) -> Result<Vec<u8>> {
        let Some(row_bytes) = info.kind.bytes_for(info.row_len()) else {
            let message = format!("the tensor {} is stored as {}", info.name, info.kind);
            return Err(unsupported(&self.path, message));
        };
        let end = first.checked_add(rows).filter(|&end| end <= info.rows());
        let place = end.and_then(|_| {
            let start = info.offset.checked_add(first.checked_mul(row_bytes)?)?;
            Some((start, usize::try_from(rows.checked_mul(row_bytes)?).ok()?))
        });
        // Somebody may ask with an info of another file: that must not take memory without bound.
        let place = place.filter(|_| self.tensor(&info.name) == Some(info));
        let Some((start, len)) = place else {
            return Err(Error::invalid_input(
                COMPONENT,
                format!("{} has no rows {first}..{first}+{rows}", info.name),
            ));
        };
        let mut bytes = vec![0; len];
        file::read_exact_at(&self.file, &mut bytes, start)
            .map_err(|error| cannot_read(&self.path, error))?;
        Ok(bytes)
    }
}

/// Typed metadata. A value that is there but of another type is an error, whether it is needed
/// or not.
impl Gguf {
    /// A whole number that must be there.
    ///
    /// # Errors
    /// It is missing, negative or not a whole number.
    pub fn u64(&self, key: &str) -> Result<u64> {
        self.needed(key, self.u64_opt(key)?)
    }

    /// A whole number that may be missing.
    ///
    /// # Errors
    /// It is negative or not a whole number.
    pub fn u64_opt(&self, key: &str) -> Result<Option<u64>> {
        self.typed(key, "a whole number", Value::as_u64)
    }

    /// A float that must be there.
    ///
    /// # Errors
    /// It is missing or not a float.
    pub fn f32(&self, key: &str) -> Result<f32> {
        self.needed(key, self.f32_opt(key)?)
    }

    /// A float that may be missing.
    ///
    /// # Errors
    /// It is not a float.
    pub fn f32_opt(&self, key: &str) -> Result<Option<f32>> {
        self.typed(key, "a float", Value::as_f32)
    }

    /// A truth value that may be missing.
    ///
    /// # Errors
    /// It is something else.
    pub fn bool_opt(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "a truth value", Value::as_bool)
    }

    /// A string that must be there.
    ///
    /// # Errors
    /// It is missing or not a string.
    pub fn str(&self, key: &str) -> Result<&str> {
        self.needed(key, self.str_opt(key)?)
    }

    /// A string that may be missing.
    ///
    /// # Errors
    /// It is not a string.
    pub fn str_opt(&self, key: &str) -> Result<Option<&str>> {
        self.typed(key, "a string", Value::as_str)
    }

    /// A list that must be there.
    ///
    /// # Errors
    /// It is missing or not a list.
    pub fn array(&self, key: &str) -> Result<&Array> {
        self.needed(key, self.array_opt(key)?)
    }

    /// A list that may be missing.
    ///
    /// # Errors
    /// It is not a list.
    pub fn array_opt(&self, key: &str) -> Result<Option<&Array>> {
        self.typed(key, "a list", Value::as_array)
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        wanted: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| {
            let message = format!("{key} is {}, where {wanted} is expected", value.type_name());
            damaged(&self.path, message)
        })
    }

    fn needed<T>(&self, key: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| damaged(&self.path, format!("the metadata have no {key}")))
    }
}

/// The product, unless it is too large. Neither may it be without the empty dimensions, as rows are
/// counted without the first.
fn product(dims: &[u64]) -> Option<u64> {
    let size = dims.iter().try_fold(1u64, |all, &dim| all.checked_mul(dim.max(1)))?;
    Some(if dims.contains(&0) { 0 } else { size })
}

/// Checks that a tensor's data are where the head says.
fn placed(raw: parse::RawTensor, data: u64, len: u64) -> Result<TensorInfo, String> {
    let parse::RawTensor { name, dims, kind, offset } = raw;
    if product(&dims).is_none() {
        return Err(format!("the tensor {name} is too large: {dims:?}"));
    }
    let Some(offset) = data.checked_add(offset).filter(|&offset| offset <= len) else {
        return Err(format!("the file is cut off: the tensor {name} begins after its end"));
    };
    let info = TensorInfo { name, dims, kind, offset };
    if matches!(kind, TensorKind::Other(_)) {
        return Ok(info);
    }
    let Some(bytes) = info.bytes() else {
        return Err(format!(
            "the rows of {} ({:?}) are no whole {kind} blocks",
            info.name, info.dims
        ));
    };
    if bytes > len - offset {
        return Err(format!("the file is cut off within the tensor {}", info.name));
    }
    Ok(info)
}

fn damaged(path: &Path, message: impl Into<String>) -> Error {
    let message = format!("{}: {}", path.display(), message.into());
    Error::new(ErrorKind::InvalidInput, COMPONENT, "open", message)
        .suggest("fetch the file again, or give the path of another GGUF file")
}

pub(crate) fn unsupported(path: &Path, message: impl Into<String>) -> Error {
    let message = format!("{}: {}", path.display(), message.into());
    let kinds: Vec<_> = TensorKind::READABLE.iter().map(|kind| kind.name()).collect();
    Error::new(ErrorKind::Unsupported, COMPONENT, "open", message).suggest(format!(
        "use a little-endian GGUF file of version 2 or 3 with tensors of these kinds: {}",
        kinds.join(", ")
    ))
}

fn cannot_read(path: &Path, error: std::io::Error) -> Error {
    let (kind, hint) = match error.kind() {
        std::io::ErrorKind::NotFound => (ErrorKind::NotFound, "check the path"),
        std::io::ErrorKind::UnexpectedEof => {
            (ErrorKind::InvalidInput, "the file changed while it was read: fetch it again")
        }
        _ => (ErrorKind::Storage, "check the disk and the rights on the file"),
    };
    Error::new(kind, COMPONENT, "read", format!("{}: {error}", path.display()))
        .suggest(hint)
        .with_source(error)
}

#[cfg(test)]
mod tests;
