//! The weights of a model, read from its file into the kernels' form.

use sifaka_core::{Error, ErrorKind, Result};

use super::shape::Shape;
use crate::gguf::{Gguf, TensorInfo, TensorKind};
use crate::matrix::{Form, LANES, Matrix};
use crate::quant;

#[derive(Debug)]
pub(crate) struct Weights {
    pub(crate) embedding: Matrix,
    pub(crate) layers: Vec<Layer>,
    pub(crate) norm: Vec<[f32; 16]>,
    /// Absent where the embedding serves both ends.
    output: Option<Matrix>,
}

#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) attention_norm: Vec<[f32; 16]>,
    pub(crate) query: Matrix,
    pub(crate) key: Matrix,
    pub(crate) value: Matrix,
    pub(crate) attention_out: Matrix,
    pub(crate) norm: Vec<[f32; 16]>,
    pub(crate) gate: Matrix,
    pub(crate) up: Matrix,
    pub(crate) down: Matrix,
}

impl Weights {
    pub(crate) fn output(&self) -> &Matrix {
        self.output.as_ref().unwrap_or(&self.embedding)
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        let layers = self
            .layers
            .iter()
            .flat_map(|l| [&l.query, &l.key, &l.value, &l.attention_out, &l.gate, &l.up, &l.down]);
        let all = layers.chain([&self.embedding]).chain(&self.output);
        all.map(Matrix::bytes).sum()
    }

    /// Reads them, several tensors at a time.
    pub(crate) fn read(gguf: &Gguf, shape: &Shape, threads: usize) -> Result<Self> {
        let reader = Reader { gguf };
        let (hidden, wide) = (shape.hidden, shape.wide);
        let (all, few) = (shape.heads * shape.head, shape.kv_heads * shape.head);
        let layer = |n: usize| -> Result<Layer> {
            let matrix = |name: &str, rows, columns| {
                reader.matrix(&format!("blk.{n}.{name}.weight"), rows, columns)
            };
            for bias in ["attn_q", "attn_k", "attn_v", "attn_output"] {
                if gguf.tensor(&format!("blk.{n}.{bias}.bias")).is_some() {
                    return Err(
                        reader.wrong(format!("a bias in blk.{n}.{bias}, which is not supported"))
                    );
                }
            }
            Ok(Layer {
                attention_norm: reader.vector(&format!("blk.{n}.attn_norm.weight"), hidden)?,
                query: matrix("attn_q", all, hidden)?,
                key: matrix("attn_k", few, hidden)?,
                value: matrix("attn_v", few, hidden)?,
                attention_out: matrix("attn_output", hidden, all)?,
                norm: reader.vector(&format!("blk.{n}.ffn_norm.weight"), hidden)?,
                gate: matrix("ffn_gate", wide, hidden)?,
                up: matrix("ffn_up", wide, hidden)?,
                down: matrix("ffn_down", hidden, wide)?,
            })
        };
        let embedding = || reader.matrix("token_embd.weight", shape.vocabulary, hidden);
        let next = std::sync::atomic::AtomicUsize::new(0);
        // The largest tensor first, on a thread of its own where there are two.
        let (embedding, mut layers) = std::thread::scope(|scope| {
            let read = || {
                let mut own = Vec::new();
                loop {
                    let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if n >= shape.layers {
                        return own;
                    }
                    own.push((n, layer(n)));
                }
            };
            let helpers: Vec<_> = (1..threads.max(1)).map(|_| scope.spawn(read)).collect();
            let embedding = embedding();
            let mut layers = read();
            for helper in helpers {
                match helper.join() {
                    Ok(own) => layers.extend(own),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            (embedding, layers)
        });
        layers.sort_by_key(|(n, _)| *n);
        let output = match gguf.tensor("output.weight") {
            Some(_) => Some(reader.matrix("output.weight", shape.vocabulary, hidden)?),
            None => None,
        };
        Ok(Self {
            embedding: embedding?,
            layers: layers.into_iter().map(|(_, layer)| layer).collect::<Result<_>>()?,
            norm: reader.vector("output_norm.weight", hidden)?,
            output,
        })
    }
}

struct Reader<'a> {
    gguf: &'a Gguf,
}

impl Reader<'_> {
    fn wrong(&self, what: impl std::fmt::Display) -> Error {
        let message = format!("{} has {what}", self.gguf.path().display());
        Error::new(ErrorKind::Unsupported, "local", "load", message).suggest(
            "take a GGUF file of the architecture `llama` as llama.cpp's converter writes it",
        )
    }

    fn tensor(&self, name: &str, rows: usize, columns: usize) -> Result<&TensorInfo> {
        let tensor =
            self.gguf.tensor(name).ok_or_else(|| self.wrong(format_args!("no tensor {name}")))?;
        if tensor.rows() != rows as u64 || tensor.row_len() != columns as u64 {
            return Err(self.wrong(format_args!(
                "{name} of {} × {} where {rows} × {columns} belongs",
                tensor.rows(),
                tensor.row_len()
            )));
        }
        Ok(tensor)
    }

    fn vector(&self, name: &str, size: usize) -> Result<Vec<[f32; 16]>> {
        let tensor = self.tensor(name, 1, size)?;
        let mut out = vec![0.0; size];
        quant::dequantize(tensor.kind, &self.gguf.read(tensor)?, &mut out)?;
        Ok(out.as_chunks::<16>().0.to_vec())
    }

    /// Reads a matrix a few thousand rows at a time, so that no second copy of it is ever whole.
    fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Matrix> {
        let tensor = self.tensor(name, rows, columns)?;
        let form = match tensor.kind {
            TensorKind::Q4_0 => Form::Q4,
            TensorKind::Q4_1 => Form::Q4Min,
            TensorKind::F16 | TensorKind::BF16 => Form::Half,
            TensorKind::F32 => Form::Single,
            _ => Form::Q8,
        };
        let mut matrix = Matrix::new(form, rows, columns);
        let mut floats = vec![0.0; LANES * columns];
        let row_bytes = tensor
            .kind
            .bytes_for(columns as u64)
            .and_then(|bytes| usize::try_from(bytes).ok())
            .ok_or_else(|| {
                self.wrong(format_args!("{name} in {}, which is not supported", tensor.kind))
            })?;
        let at_once = (4_usize << 20).div_ceil(row_bytes).next_multiple_of(LANES);
        for first in (0..rows).step_by(at_once) {
            let count = at_once.min(rows - first);
            let bytes = self.gguf.read_rows(tensor, first as u64, count as u64)?;
            for panel in bytes.chunks(LANES * row_bytes) {
                match tensor.kind {
                    TensorKind::Q4_0 | TensorKind::Q4_1 | TensorKind::Q8_0 => {
                        matrix.push_panel(panel, row_bytes);
                    }
                    kind => {
                        let floats = &mut floats[..panel.len() / row_bytes * columns];
                        quant::dequantize(kind, panel, floats)?;
                        if form.is_float() {
                            matrix.push_float_panel(floats);
                        } else {
                            let blocks = quant::quantize(TensorKind::Q8_0, floats)?;
                            let rows = floats.len() / columns;
                            matrix.push_panel(&blocks, blocks.len() / rows);
                        }
                    }
                }
            }
        }
        Ok(matrix)
    }
}
