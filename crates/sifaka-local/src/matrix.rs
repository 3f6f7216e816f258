//! Weights as the kernels want them, and activations as they are multiplied with them.

use crate::quant as half;

/// 64 bytes on a cache line of their own: four bytes of each of sixteen rows.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u8; 64]);

/// How many weights share a scale.
pub(crate) const BLOCK: usize = 32;
/// How many rows stand side by side.
pub(crate) const LANES: usize = 16;

/// How a matrix is kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Eight bits, stored 128 above their value.
    Q8,
    /// Four bits around 8.
    Q4,
    /// Four bits above a minimum.
    Q4Min,
    /// Half precision.
    Half,
    /// Single precision.
    Single,
}

impl Form {
    /// Whether activations are multiplied with it as they are, rather than in eight bits.
    pub(crate) const fn is_float(self) -> bool {
        matches!(self, Self::Half | Self::Single)
    }

    /// Lines a block of 32 columns takes for sixteen rows.
    const fn lines(self) -> usize {
        match self {
            Self::Q8 => 8,
            Self::Q4 | Self::Q4Min => 4,
            Self::Half | Self::Single => 0,
        }
    }
}

/// A matrix of weights in panels of sixteen rows.
#[derive(Debug)]
pub(crate) struct Matrix {
    form: Form,
    rows: usize,
    columns: usize,
    /// For each panel and block, its [`Form::lines`].
    lines: Vec<Line>,
    /// For each panel and block, a scale a row; of half-precision weights, the columns themselves.
    scales: Vec<[u16; LANES]>,
    /// For each panel and block, a minimum a row.
    minima: Vec<[u16; LANES]>,
    /// Of single-precision weights, for each panel, the columns.
    singles: Vec<[f32; LANES]>,
}

/// Some panels of a matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panels<'a> {
    pub(crate) form: Form,
    pub(crate) columns: usize,
    lines: &'a [Line],
    scales: &'a [[u16; LANES]],
    minima: &'a [[u16; LANES]],
    singles: &'a [[f32; LANES]],
}

/// One panel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel<'a> {
    pub(crate) lines: &'a [Line],
    pub(crate) scales: &'a [[u16; LANES]],
    pub(crate) minima: &'a [[u16; LANES]],
    pub(crate) singles: &'a [[f32; LANES]],
}

/// How much of everything a panel has.
#[derive(Clone, Copy)]
struct Size {
    lines: usize,
    scales: usize,
    minima: usize,
    singles: usize,
}

impl Size {
    const fn of(form: Form, columns: usize) -> Self {
        let blocks = columns / BLOCK;
        Self {
            lines: blocks * form.lines(),
            scales: match form {
                Form::Half => columns,
                Form::Single => 0,
                _ => blocks,
            },
            minima: if matches!(form, Form::Q4Min) { blocks } else { 0 },
            singles: if matches!(form, Form::Single) { columns } else { 0 },
        }
    }
}

impl<'a> Panels<'a> {
    /// One after the other.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Panel<'a>> + use<'a> {
        let size = Size::of(self.form, self.columns);
        let all = *self;
        let count = all.singles.len().max(all.scales.len()) / size.scales.max(size.singles).max(1);
        (0..count).map(move |p| Panel {
            lines: &all.lines[p * size.lines..(p + 1) * size.lines],
            scales: &all.scales[p * size.scales..(p + 1) * size.scales],
            minima: &all.minima[p * size.minima..(p + 1) * size.minima],
            singles: &all.singles[p * size.singles..(p + 1) * size.singles],
        })
    }
}

impl Matrix {
    /// An empty matrix that [`push_panel`](Self::push_panel) fills. `columns` is a multiple of 32.
    pub(crate) fn new(form: Form, rows: usize, columns: usize) -> Self {
        let (panels, size) = (rows.div_ceil(LANES), Size::of(form, columns));
        Self {
            form,
            rows,
            columns,
            lines: Vec::with_capacity(panels * size.lines),
            scales: Vec::with_capacity(panels * size.scales),
            minima: Vec::with_capacity(panels * size.minima),
            singles: Vec::with_capacity(panels * size.singles),
        }
    }

    pub(crate) const fn form(&self) -> Form {
        self.form
    }

    pub(crate) const fn columns(&self) -> usize {
        self.columns
    }

    /// How many panels it has.
    pub(crate) const fn panels(&self) -> usize {
        self.rows.div_ceil(LANES)
    }

    /// Bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let halves = self.scales.len() + self.minima.len();
        self.lines.len() * 64 + (halves + 2 * self.singles.len()) * 2 * LANES
    }

    /// Some of its panels.
    pub(crate) fn slice(&self, panels: std::ops::Range<usize>) -> Panels<'_> {
        let size = Size::of(self.form, self.columns);
        let part = |each: usize| panels.start * each..panels.end * each;
        Panels {
            form: self.form,
            columns: self.columns,
            lines: &self.lines[part(size.lines)],
            scales: &self.scales[part(size.scales)],
            minima: &self.minima[part(size.minima)],
            singles: &self.singles[part(size.singles)],
        }
    }

    /// Adds the next sixteen rows, each as blocks of the file's own layout: a scale, a minimum
    /// where the form has one, then the weights. Rows that are not there are zeros.
    pub(crate) fn push_panel(&mut self, rows: &[u8], row_bytes: usize) {
        let blocks = self.columns / BLOCK;
        let header = if self.form == Form::Q4Min { 4 } else { 2 };
        let stride = row_bytes / blocks.max(1);
        let row = |r: usize| rows.get(r * row_bytes..(r + 1) * row_bytes);
        for b in 0..blocks {
            let mut scales = [0; LANES];
            let mut minima = [0; LANES];
            let first = self.lines.len();
            let empty = match self.form {
                Form::Q8 => 128,
                Form::Q4 => 0x88,
                Form::Q4Min | Form::Half | Form::Single => 0,
            };
            self.lines.resize(first + self.form.lines(), Line([empty; 64]));
            let lines = &mut self.lines[first..];
            for r in 0..LANES {
                let Some(row) = row(r) else { break };
                let block = &row[b * stride..(b + 1) * stride];
                scales[r] = u16::from_le_bytes([block[0], block[1]]);
                if self.form == Form::Q4Min {
                    minima[r] = u16::from_le_bytes([block[2], block[3]]);
                }
                let bias = if self.form == Form::Q8 { 128 } else { 0 };
                for (line, four) in lines.iter_mut().zip(block[header..].chunks_exact(4)) {
                    for (to, from) in line.0[4 * r..4 * r + 4].iter_mut().zip(four) {
                        *to = from ^ bias;
                    }
                }
            }
            self.scales.push(scales);
            if self.form == Form::Q4Min {
                self.minima.push(minima);
            }
        }
    }

    /// Adds the next sixteen rows of weights that are kept as floats.
    pub(crate) fn push_float_panel(&mut self, rows: &[f32]) {
        for k in 0..self.columns {
            let column: [f32; LANES] = std::array::from_fn(|r| {
                rows.get(r * self.columns + k).copied().unwrap_or_default()
            });
            match self.form {
                Form::Single => self.singles.push(column),
                _ => self.scales.push(column.map(half::f32_to_f16)),
            }
        }
    }

    /// One row as numbers.
    pub(crate) fn row(&self, row: usize, out: &mut [f32]) {
        let (panel, lane) = (row / LANES, row % LANES);
        let panels = self.slice(panel..panel + 1);
        if self.form == Form::Single {
            for (out, column) in out.iter_mut().zip(panels.singles) {
                *out = column[lane];
            }
            return;
        }
        if self.form == Form::Half {
            for (out, column) in out.iter_mut().zip(panels.scales) {
                *out = half::f16_to_f32(column[lane]);
            }
            return;
        }
        let per_block = self.form.lines();
        for (b, out) in out.chunks_exact_mut(BLOCK).enumerate() {
            let scale = half::f16_to_f32(panels.scales[b][lane]);
            let minimum = panels.minima.get(b).map_or(0.0, |m| half::f16_to_f32(m[lane]));
            for (j, line) in panels.lines[b * per_block..(b + 1) * per_block].iter().enumerate() {
                for (i, &byte) in line.0[4 * lane..4 * lane + 4].iter().enumerate() {
                    let (low, high) = (f32::from(byte & 15), f32::from(byte >> 4));
                    match self.form {
                        Form::Q8 => out[4 * j + i] = (f32::from(byte) - 128.0) * scale,
                        Form::Q4 => {
                            out[4 * j + i] = (low - 8.0) * scale;
                            out[4 * j + i + 16] = (high - 8.0) * scale;
                        }
                        Form::Q4Min => {
                            out[4 * j + i] = low * scale + minimum;
                            out[4 * j + i + 16] = high * scale + minimum;
                        }
                        Form::Half | Form::Single => {}
                    }
                }
            }
        }
    }
}

/// Activations in eight bits, a scale for each 32, token by token.
#[derive(Debug, Default)]
pub(crate) struct Quantized {
    pub(crate) columns: usize,
    /// Four values in each.
    pub(crate) words: Vec<i32>,
    pub(crate) scales: Vec<f32>,
    /// The sum of each block.
    pub(crate) sums: Vec<i32>,
    /// The sum of each block, times its scale.
    pub(crate) weighed: Vec<f32>,
}

/// The activations of one token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuantizedRow<'a> {
    pub(crate) words: &'a [i32],
    pub(crate) scales: &'a [f32],
    pub(crate) sums: &'a [i32],
    pub(crate) weighed: &'a [f32],
}

/// The same, to be written.
#[derive(Debug)]
pub(crate) struct QuantizedPart<'a> {
    pub(crate) words: &'a mut [i32],
    pub(crate) scales: &'a mut [f32],
    pub(crate) sums: &'a mut [i32],
    pub(crate) weighed: &'a mut [f32],
}

impl Quantized {
    /// Makes room for so many tokens of so many values.
    pub(crate) fn reset(&mut self, tokens: usize, columns: usize) {
        self.columns = columns;
        self.words.resize(tokens * columns / 4, 0);
        self.scales.resize(tokens * columns / BLOCK, 0.0);
        self.sums.resize(tokens * columns / BLOCK, 0);
        self.weighed.resize(tokens * columns / BLOCK, 0.0);
    }

    /// How many tokens there are.
    pub(crate) fn tokens(&self) -> usize {
        self.words.len() * 4 / self.columns.max(1)
    }

    /// One token's.
    pub(crate) fn row(&self, token: usize) -> QuantizedRow<'_> {
        let (words, blocks) = (self.columns / 4, self.columns / BLOCK);
        QuantizedRow {
            words: &self.words[token * words..(token + 1) * words],
            scales: &self.scales[token * blocks..(token + 1) * blocks],
            sums: &self.sums[token * blocks..(token + 1) * blocks],
            weighed: &self.weighed[token * blocks..(token + 1) * blocks],
        }
    }

    /// Splits it into parts of so many tokens each, to be written side by side.
    pub(crate) fn parts<'a>(&'a mut self, sizes: &[usize]) -> Vec<QuantizedPart<'a>> {
        let (words, blocks) = (self.columns / 4, self.columns / BLOCK);
        let mut rest = (
            self.words.as_mut_slice(),
            self.scales.as_mut_slice(),
            self.sums.as_mut_slice(),
            self.weighed.as_mut_slice(),
        );
        let take = |size: &usize| {
            let (w, rest_w) = std::mem::take(&mut rest.0).split_at_mut(size * words);
            let (s, rest_s) = std::mem::take(&mut rest.1).split_at_mut(size * blocks);
            let (t, rest_t) = std::mem::take(&mut rest.2).split_at_mut(size * blocks);
            let (d, rest_d) = std::mem::take(&mut rest.3).split_at_mut(size * blocks);
            rest = (rest_w, rest_s, rest_t, rest_d);
            QuantizedPart { words: w, scales: s, sums: t, weighed: d }
        };
        sizes.iter().map(take).collect()
    }
}

impl QuantizedPart<'_> {
    /// One token's, for `columns` values a token.
    pub(crate) fn row(&mut self, token: usize, columns: usize) -> QuantizedPart<'_> {
        let (words, blocks) = (columns / 4, columns / BLOCK);
        QuantizedPart {
            words: &mut self.words[token * words..(token + 1) * words],
            scales: &mut self.scales[token * blocks..(token + 1) * blocks],
            sums: &mut self.sums[token * blocks..(token + 1) * blocks],
            weighed: &mut self.weighed[token * blocks..(token + 1) * blocks],
        }
    }
}
