//! Writes files, and turns the weights of one into another kind.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sifaka_core::{Error, ErrorKind, Result};

use super::parse::{Wrong, alignment};
use super::{Array, COMPONENT, Gguf, TensorInfo, TensorKind, Value, product};
use crate::quant;

/// A file in the making: metadata and tensors, without the tensors' numbers.
///
/// The numbers are asked for while the file is written, so that they need not be in memory at once.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    values: Vec<(String, Value)>,
    tensors: Vec<(String, Vec<u64>, TensorKind)>,
}

impl Writer {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a value of the metadata, in place of one with the same key.
    pub fn value(&mut self, key: impl Into<String>, value: Value) -> &mut Self {
        let key = key.into();
        match self.values.iter_mut().find(|(known, _)| *known == key) {
            Some((_, old)) => *old = value,
            None => self.values.push((key, value)),
        }
        self
    }

    /// Adds a tensor. The first dimension is the length of a row.
    pub fn tensor(&mut self, name: impl Into<String>, dims: &[u64], kind: TensorKind) -> &mut Self {
        self.tensors.push((name.into(), dims.to_vec(), kind));
        self
    }

    /// Writes the file. `data` is called once for every tensor, in the order they were added, and
    /// writes that tensor's bytes.
    ///
    /// It is written beside its place and moved there when it is whole, so that nobody ever finds
    /// half a file.
    ///
    /// # Errors
    /// A tensor's rows are no whole blocks, `data` fails or gives another number of bytes, or the
    /// disk fails.
    pub fn write(
        &self,
        to: &Path,
        data: impl FnMut(&TensorInfo, &mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let (file, temporary) = temporary(to)?;
        let written = self
            .write_to(file, to, data)
            .and_then(|()| fs::rename(&temporary, to).map_err(|error| cannot_write(to, error)));
        if let Err(error) = written {
            // The first error is the one to tell; that a leftover stays is not worth hiding it.
            return Err(match fs::remove_file(&temporary) {
                Ok(()) => error,
                Err(_) => error.suggest(format!("remove {}", temporary.display())),
            });
        }
        Ok(())
    }

    fn write_to(
        &self,
        file: File,
        to: &Path,
        mut data: impl FnMut(&TensorInfo, &mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let io = |error| cannot_write(to, error);
        let alignment = alignment(&self.values).map_err(|wrong| match wrong {
            Wrong::Damaged(message) | Wrong::Unsupported(message) => wrong_call(message),
            Wrong::Io(error) => io(error),
        })?;
        let infos = self.place(alignment)?;
        let mut out = Counted { out: BufWriter::with_capacity(1 << 18, file), at: 0 };
        self.head(&infos, &mut out).map_err(io)?;
        out.pad(alignment).map_err(io)?;
        let start = out.at;
        for info in &infos {
            let wanted = start + info.offset + info.bytes().unwrap_or(0);
            data(info, &mut out)?;
            if out.at != wanted {
                return Err(wrong_call(format!("{} has another size than its data", info.name)));
            }
            out.pad(alignment).map_err(io)?;
        }
        let file = out.out.into_inner().map_err(|error| cannot_write(to, error.into_error()))?;
        file.sync_all().map_err(io)
    }

    /// The tensors with their places, counted from where the data begin.
    fn place(&self, alignment: u64) -> Result<Vec<TensorInfo>> {
        let mut offset = 0u64;
        let place = |(name, dims, kind): &(String, Vec<u64>, TensorKind)| {
            let info = TensorInfo { name: name.clone(), dims: dims.clone(), kind: *kind, offset };
            let end = product(dims).and_then(|_| offset.checked_add(info.bytes()?));
            let next = end.and_then(|end| end.checked_next_multiple_of(alignment));
            offset = next.ok_or_else(|| {
                wrong_call(format!("the tensor {name} ({dims:?}) cannot be stored as {kind}"))
            })?;
            Ok(info)
        };
        self.tensors.iter().map(place).collect()
    }

    fn head(&self, infos: &[TensorInfo], out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"GGUF")?;
        out.write_all(&3u32.to_le_bytes())?;
        out.write_all(&(infos.len() as u64).to_le_bytes())?;
        out.write_all(&(self.values.len() as u64).to_le_bytes())?;
        for (key, value) in &self.values {
            string(key.as_bytes(), out)?;
            out.write_all(&value_id(value).to_le_bytes())?;
            write_value(value, out)?;
        }
        for info in infos {
            string(info.name.as_bytes(), out)?;
            out.write_all(&(info.dims.len() as u32).to_le_bytes())?;
            for dim in &info.dims {
                out.write_all(&dim.to_le_bytes())?;
            }
            out.write_all(&info.kind.id().to_le_bytes())?;
            out.write_all(&info.offset.to_le_bytes())?;
        }
        Ok(())
    }
}

/// Writes a copy of `from` whose weights are of `kind`.
///
/// Matrices whose rows fill whole blocks of `kind` are converted; vectors (norms and biases) become
/// F32, and what fits neither stays as it is. Converting to a coarser kind loses exactness, to a
/// finer one it wins none back.
///
/// # Errors
/// `kind` is not one that [`quant::quantize`] writes, a tensor is of a kind that is not read, or
/// the disk fails.
pub fn requantize(from: &Gguf, kind: TensorKind, to: &Path) -> Result<()> {
    quant::quantize(kind, &vec![0.0; kind.block_len()])?;
    let mut writer = Writer::new();
    for (key, value) in from.values() {
        writer.value(key, value.clone());
    }
    if let Some(file_type) = file_type(kind) {
        writer.value("general.file_type", Value::U32(file_type));
    }
    for info in from.tensors() {
        writer.tensor(&info.name, &info.dims, target(info, kind));
    }
    let io = |error| cannot_write(to, error);
    writer.write(to, |new, out| {
        let Some(old) = from.tensor(&new.name) else { return Ok(()) };
        // Some megabytes at a time: a table of embeddings can be larger than all the rest.
        let step = ((4 << 20) / old.row_len().max(1)).max(1);
        let mut first = 0;
        while first < old.rows() {
            let rows = step.min(old.rows() - first);
            let bytes = from.read_rows(old, first, rows)?;
            first += rows;
            if old.kind == new.kind {
                out.write_all(&bytes).map_err(io)?;
                continue;
            }
            let mut numbers =
                vec![0.0; bytes.len() / old.kind.block_bytes() * old.kind.block_len()];
            quant::dequantize(old.kind, &bytes, &mut numbers)?;
            out.write_all(&quant::quantize(new.kind, &numbers)?).map_err(io)?;
        }
        Ok(())
    })
}

fn target(info: &TensorInfo, kind: TensorKind) -> TensorKind {
    if info.dims.len() < 2 {
        TensorKind::F32
    } else if info.row_len().is_multiple_of(kind.block_len() as u64) {
        kind
    } else {
        info.kind
    }
}

/// llama.cpp's number for "mostly this kind".
fn file_type(kind: TensorKind) -> Option<u32> {
    match kind {
        TensorKind::F32 => Some(0),
        TensorKind::F16 => Some(1),
        TensorKind::Q4_0 => Some(2),
        TensorKind::Q4_1 => Some(3),
        TensorKind::Q8_0 => Some(7),
        _ => None,
    }
}

fn value_id(value: &Value) -> u32 {
    match value {
        Value::U8(_) => 0,
        Value::I8(_) => 1,
        Value::U16(_) => 2,
        Value::I16(_) => 3,
        Value::U32(_) => 4,
        Value::I32(_) => 5,
        Value::F32(_) => 6,
        Value::Bool(_) => 7,
        Value::String(_) => 8,
        Value::Array(_) => 9,
        Value::U64(_) => 10,
        Value::I64(_) => 11,
        Value::F64(_) => 12,
    }
}

fn write_value(value: &Value, out: &mut impl Write) -> io::Result<()> {
    match value {
        Value::U8(value) => out.write_all(&value.to_le_bytes()),
        Value::I8(value) => out.write_all(&value.to_le_bytes()),
        Value::U16(value) => out.write_all(&value.to_le_bytes()),
        Value::I16(value) => out.write_all(&value.to_le_bytes()),
        Value::U32(value) => out.write_all(&value.to_le_bytes()),
        Value::I32(value) => out.write_all(&value.to_le_bytes()),
        Value::F32(value) => out.write_all(&value.to_le_bytes()),
        Value::Bool(value) => out.write_all(&[u8::from(*value)]),
        Value::String(value) => string(value.as_bytes(), out),
        Value::Array(value) => write_array(value, out),
        Value::U64(value) => out.write_all(&value.to_le_bytes()),
        Value::I64(value) => out.write_all(&value.to_le_bytes()),
        Value::F64(value) => out.write_all(&value.to_le_bytes()),
    }
}

fn write_array(array: &Array, out: &mut impl Write) -> io::Result<()> {
    macro_rules! numbers {
        ($id:literal, $items:ident) => {{
            begin($id, $items.len(), out)?;
            $items.iter().try_for_each(|item| out.write_all(&item.to_le_bytes()))
        }};
    }
    match array {
        Array::U8s(items) => numbers!(0, items),
        Array::I8s(items) => numbers!(1, items),
        Array::U16s(items) => numbers!(2, items),
        Array::I16s(items) => numbers!(3, items),
        Array::U32s(items) => numbers!(4, items),
        Array::I32s(items) => numbers!(5, items),
        Array::F32s(items) => numbers!(6, items),
        Array::U64s(items) => numbers!(10, items),
        Array::I64s(items) => numbers!(11, items),
        Array::F64s(items) => numbers!(12, items),
        Array::Bools(items) => {
            begin(7, items.len(), out)?;
            items.iter().try_for_each(|item| out.write_all(&[u8::from(*item)]))
        }
        Array::Strings(items) => {
            begin(8, items.len(), out)?;
            items.iter().try_for_each(|item| string(item, out))
        }
        Array::Arrays(items) => {
            begin(9, items.len(), out)?;
            items.iter().try_for_each(|item| write_array(item, out))
        }
    }
}

fn begin(id: u32, len: usize, out: &mut impl Write) -> io::Result<()> {
    out.write_all(&id.to_le_bytes())?;
    out.write_all(&(len as u64).to_le_bytes())
}

fn string(bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    out.write_all(&(bytes.len() as u64).to_le_bytes())?;
    out.write_all(bytes)
}

/// Knows how far it has come.
struct Counted<W> {
    out: W,
    at: u64,
}

impl<W: Write> Counted<W> {
    fn pad(&mut self, alignment: u64) -> io::Result<()> {
        let zeros = self.at.next_multiple_of(alignment) - self.at;
        self.write_all(&vec![0; zeros as usize])
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.at += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A new file in the folder of `to`, so that it can be moved there in one step.
fn temporary(to: &Path) -> Result<(File, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let Some(name) = to.file_name() else {
        return Err(wrong_call(format!("{} is not the path of a file", to.display())));
    };
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    temporary.push(format!(".{}-{number}.tmp", std::process::id()));
    let path = to.with_file_name(temporary);
    let file = OpenOptions::new().write(true).create_new(true).open(&path);
    Ok((file.map_err(|error| cannot_write(to, error))?, path))
}

fn wrong_call(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidInput, COMPONENT, "write", message)
}

fn cannot_write(path: &Path, error: io::Error) -> Error {
    Error::new(ErrorKind::Storage, COMPONENT, "write", format!("{}: {error}", path.display()))
        .suggest("check that the folder is there, may be written to and has room")
        .with_source(error)
}
