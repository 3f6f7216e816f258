//! Reads the head of a file. Nothing in it is believed: every count is checked against the bytes
//! that are left, so that a damaged file costs neither memory nor a panic.

use std::io::Read;

use super::kind::TensorKind;
use super::value::{Array, Strings, Value};

const MAGIC: [u8; 4] = *b"GGUF";
/// Tensors of GGUF have at most this many dimensions.
const MAX_DIMS: u32 = 4;
/// Lists of lists are allowed, but nobody writes deep ones.
const MAX_DEPTH: usize = 4;
const MAX_KEY: u64 = 65_535;
const DEFAULT_ALIGNMENT: u64 = 32;
pub(super) const ALIGNMENT_KEY: &str = "general.alignment";

/// What the head of a file says.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) version: u32,
    pub(super) values: Vec<(String, Value)>,
    pub(super) tensors: Vec<RawTensor>,
    /// Where the tensors' data begin.
    pub(super) data: u64,
}

/// A tensor as the head describes it; its place is not checked yet.
#[derive(Debug)]
pub(super) struct RawTensor {
    pub(super) name: String,
    pub(super) dims: Vec<u64>,
    pub(super) kind: TensorKind,
    pub(super) offset: u64,
}

/// Why a head could not be read.
#[derive(Debug)]
pub(super) enum Wrong {
    /// The bytes are not what they should be.
    Damaged(String),
    /// The file is fine but of a sort that is not read here.
    Unsupported(String),
    Io(std::io::Error),
}

type Parsed<T> = Result<T, Wrong>;

fn damaged<T>(message: impl Into<String>) -> Parsed<T> {
    Err(Wrong::Damaged(message.into()))
}

pub(super) fn head(source: impl Read, len: u64) -> Parsed<Head> {
    let mut reader = Reader { source, len, at: 0 };
    if len < 4 || reader.bytes::<4>()? != MAGIC {
        return damaged("this is not a GGUF file: it does not begin with \"GGUF\"");
    }
    let version = reader.u32()?;
    match version {
        2 | 3 => {}
        _ if version.trailing_zeros() >= 16 && version != 0 => {
            return Err(Wrong::Unsupported("the file is big endian".to_owned()));
        }
        _ => {
            let message = format!("GGUF version {version}; versions 2 and 3 are read");
            return Err(Wrong::Unsupported(message));
        }
    }
    let tensor_count = reader.u64()?;
    let value_count = reader.u64()?;
    // A value takes 13 bytes at least, a tensor 24.
    reader.expect(value_count, 13, "metadata values")?;
    reader.expect(tensor_count, 24, "tensors")?;

    let mut values = Vec::new();
    for _ in 0..value_count {
        let key = reader.key()?;
        let kind = reader.u32()?;
        let value = reader.value(kind, &key)?;
        values.push((key, value));
    }
    let mut tensors = Vec::new();
    for _ in 0..tensor_count {
        tensors.push(reader.tensor()?);
    }
    let data = reader.at.next_multiple_of(alignment(&values)?);
    if data > len && !tensors.is_empty() {
        return damaged("the file is cut off before the tensors' data");
    }
    Ok(Head { version, values, tensors, data })
}

/// The alignment of the tensors' data, as these values have it.
pub(super) fn alignment(values: &[(String, Value)]) -> Parsed<u64> {
    let Some((_, value)) = values.iter().find(|(key, _)| key == ALIGNMENT_KEY) else {
        return Ok(DEFAULT_ALIGNMENT);
    };
    match value.as_u64() {
        Some(alignment) if alignment.is_power_of_two() && alignment <= 1 << 20 => Ok(alignment),
        _ => damaged(format!("{ALIGNMENT_KEY} is {value:?}, not a sensible power of two")),
    }
}

struct Reader<R> {
    source: R,
    len: u64,
    at: u64,
}

impl<R: Read> Reader<R> {
    fn take(&mut self, count: u64) -> Parsed<()> {
        if count > self.len - self.at {
            return damaged(format!(
                "the file is cut off: {count} bytes wanted at {}, it has {}",
                self.at, self.len
            ));
        }
        self.at += count;
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        self.take(N as u64)?;
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes).map_err(Wrong::Io)?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Parsed<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Parsed<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    /// Checks that `count` items of at least `least` bytes can still come.
    fn expect(&self, count: u64, least: u64, what: &str) -> Parsed<()> {
        if count.checked_mul(least).is_none_or(|bytes| bytes > self.len - self.at) {
            return damaged(format!("{count} {what} do not fit a file of {} bytes", self.len));
        }
        Ok(())
    }

    fn blob(&mut self, count: u64) -> Parsed<Vec<u8>> {
        self.take(count)?;
        // No more than the file has, and on a smaller machine no more than it can address.
        let Ok(count) = usize::try_from(count) else { return damaged("a string is too long") };
        let mut bytes = vec![0; count];
        self.source.read_exact(&mut bytes).map_err(Wrong::Io)?;
        Ok(bytes)
    }

    fn string(&mut self, what: &str) -> Parsed<String> {
        let len = self.u64()?;
        match String::from_utf8(self.blob(len)?) {
            Ok(string) => Ok(string),
            Err(_) => damaged(format!("{what} is not UTF-8")),
        }
    }

    fn key(&mut self) -> Parsed<String> {
        let len = self.u64()?;
        if len == 0 || len > MAX_KEY {
            return damaged(format!("a key or name of {len} bytes"));
        }
        match String::from_utf8(self.blob(len)?) {
            Ok(key) => Ok(key),
            Err(_) => damaged("a key or name is not UTF-8"),
        }
    }

    fn value(&mut self, kind: u32, key: &str) -> Parsed<Value> {
        Ok(match kind {
            0 => Value::U8(self.bytes::<1>()?[0]),
            1 => Value::I8(i8::from_le_bytes(self.bytes()?)),
            2 => Value::U16(u16::from_le_bytes(self.bytes()?)),
            3 => Value::I16(i16::from_le_bytes(self.bytes()?)),
            4 => Value::U32(self.u32()?),
            5 => Value::I32(i32::from_le_bytes(self.bytes()?)),
            6 => Value::F32(f32::from_le_bytes(self.bytes()?)),
            7 => Value::Bool(self.bytes::<1>()?[0] != 0),
            8 => Value::String(self.string(key)?),
            9 => Value::Array(self.array(key, MAX_DEPTH)?),
            10 => Value::U64(self.u64()?),
            11 => Value::I64(i64::from_le_bytes(self.bytes()?)),
            12 => Value::F64(f64::from_le_bytes(self.bytes()?)),
            other => return damaged(format!("{key} has the unknown type {other}")),
        })
    }

    fn array(&mut self, key: &str, depth: usize) -> Parsed<Array> {
        let kind = self.u32()?;
        let count = self.u64()?;
        Ok(match kind {
            0 => Array::U8s(self.list(count, |[byte]| byte)?),
            1 => Array::I8s(self.list(count, i8::from_le_bytes)?),
            2 => Array::U16s(self.list(count, u16::from_le_bytes)?),
            3 => Array::I16s(self.list(count, i16::from_le_bytes)?),
            4 => Array::U32s(self.list(count, u32::from_le_bytes)?),
            5 => Array::I32s(self.list(count, i32::from_le_bytes)?),
            6 => Array::F32s(self.list(count, f32::from_le_bytes)?),
            7 => Array::Bools(self.list(count, |[byte]: [u8; 1]| byte != 0)?),
            8 => {
                self.expect(count, 8, "strings")?;
                let mut strings = Strings::new();
                for _ in 0..count {
                    let len = self.u64()?;
                    strings.push(&self.blob(len)?);
                }
                Array::Strings(strings)
            }
            9 if depth == 0 => return damaged(format!("{key} has lists in lists in lists")),
            9 => {
                self.expect(count, 12, "lists")?;
                let mut lists = Vec::new();
                for _ in 0..count {
                    lists.push(self.array(key, depth - 1)?);
                }
                Array::Arrays(lists)
            }
            10 => Array::U64s(self.list(count, u64::from_le_bytes)?),
            11 => Array::I64s(self.list(count, i64::from_le_bytes)?),
            12 => Array::F64s(self.list(count, f64::from_le_bytes)?),
            other => return damaged(format!("{key} is a list of the unknown type {other}")),
        })
    }

    fn list<T, const N: usize>(&mut self, count: u64, item: fn([u8; N]) -> T) -> Parsed<Vec<T>> {
        self.expect(count, N as u64, "list items")?;
        let bytes = self.blob(count * N as u64)?;
        Ok(bytes.as_chunks::<N>().0.iter().map(|chunk| item(*chunk)).collect())
    }

    fn tensor(&mut self) -> Parsed<RawTensor> {
        let name = self.key()?;
        let count = self.u32()?;
        if count > MAX_DIMS {
            return damaged(format!("the tensor {name} has {count} dimensions"));
        }
        let dims = (0..count).map(|_| self.u64()).collect::<Parsed<_>>()?;
        let kind = TensorKind::from_id(self.u32()?);
        let offset = self.u64()?;
        Ok(RawTensor { name, dims, kind, offset })
    }
}
