//! BERT: from word pieces to the mean of their last states.
//!
//! The rows of several texts lie one after the other, without padding. Products go over all rows
//! together; attention looks at each text alone.

use std::path::Path;

use serde::Deserialize;
use sifaka_core::Result;

use super::files::{json, unsupported};
use super::gemm::{Level, PANEL, Panels, Rows, Step, Target, Weights};
use super::safetensors::SafeTensors;

/// Rows that pass through the wide middle of a layer at a time, so that they stay in the cache.
const BLOCK: usize = 256;

/// `config.json`, as far as it matters.
#[derive(Deserialize)]
pub(super) struct Config {
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    max_position_embeddings: usize,
    type_vocab_size: usize,
    vocab_size: usize,
    layer_norm_eps: f32,
    hidden_act: String,
    #[serde(default)]
    position_embedding_type: Option<String>,
}

impl Config {
    fn open(path: &Path) -> Result<Self> {
        let config: Self = json(path)?;
        let whole = |n: usize| n > 0 && n.is_multiple_of(PANEL);
        let heads = config.num_attention_heads;
        let head = config.hidden_size.checked_div(heads).unwrap_or_default();
        if config.hidden_act != "gelu"
            || config.position_embedding_type.as_deref().is_some_and(|kind| kind != "absolute")
        {
            return Err(unsupported(path, "it is not a BERT with GELU and absolute positions"));
        }
        if !whole(config.hidden_size)
            || !whole(config.intermediate_size)
            || !whole(head)
            || head * heads != config.hidden_size
            || config.type_vocab_size == 0
            || config.layer_norm_eps.is_nan()
            || config.layer_norm_eps < 0.0
        {
            let message = format!("its sizes, and those of a head, must be multiples of {PANEL}");
            return Err(unsupported(path, message));
        }
        Ok(config)
    }
}

/// What a row is brought to mean and variance with.
struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
}

struct Layer {
    /// Queries, keys and values in one.
    attention: Weights,
    output: Weights,
    first_norm: Norm,
    widen: Weights,
    narrow: Weights,
    second_norm: Norm,
}

/// A loaded model.
pub(super) struct Bert {
    config: Config,
    level: Level,
    words: Vec<f32>,
    /// The position's part, with that of the first segment added.
    positions: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

/// Memory of a thread. It grows to what 256 rows need.
#[derive(Default)]
pub(super) struct Scratch {
    states: Vec<f32>,
    attention: Vec<f32>,
    context: Vec<f32>,
    more: Vec<f32>,
    wide: Vec<f32>,
    scores: Vec<f32>,
    keys: Vec<Step>,
    values: Vec<Step>,
    packed: Vec<f32>,
}

/// Reads the weights by the names of Hugging Face's BERT.
struct Reader<'a>(&'a mut SafeTensors);

impl Reader<'_> {
    fn norm(&mut self, name: &str, width: usize) -> Result<Norm> {
        let weight = self.0.floats(&format!("{name}.weight"), &[width])?;
        Ok(Norm { weight, bias: self.0.floats(&format!("{name}.bias"), &[width])? })
    }

    fn linear(&mut self, name: &str, to: usize, from: usize) -> Result<(Vec<f32>, Vec<f32>)> {
        let matrix = self.0.floats(&format!("{name}.weight"), &[to, from])?;
        Ok((matrix, self.0.floats(&format!("{name}.bias"), &[to])?))
    }

    fn weights(&mut self, name: &str, to: usize, from: usize) -> Result<Weights> {
        let (matrix, bias) = self.linear(name, to, from)?;
        Ok(Weights::new(&matrix, bias, from))
    }

    fn layer(&mut self, n: usize, config: &Config) -> Result<Layer> {
        let (hidden, wide) = (config.hidden_size, config.intermediate_size);
        let name = |part: &str| format!("encoder.layer.{n}.{part}");
        let (mut matrix, mut bias) = self.linear(&name("attention.self.query"), hidden, hidden)?;
        // Scores are divided by the root of a head's size; doing it here costs nothing later.
        let scale = 1.0 / ((hidden / config.num_attention_heads) as f32).sqrt();
        matrix.iter_mut().chain(&mut bias).for_each(|x| *x *= scale);
        for part in ["attention.self.key", "attention.self.value"] {
            let (mut more, mut more_bias) = self.linear(&name(part), hidden, hidden)?;
            matrix.append(&mut more);
            bias.append(&mut more_bias);
        }
        Ok(Layer {
            attention: Weights::new(&matrix, bias, hidden),
            output: self.weights(&name("attention.output.dense"), hidden, hidden)?,
            first_norm: self.norm(&name("attention.output.LayerNorm"), hidden)?,
            widen: self.weights(&name("intermediate.dense"), wide, hidden)?,
            narrow: self.weights(&name("output.dense"), hidden, wide)?,
            second_norm: self.norm(&name("output.LayerNorm"), hidden)?,
        })
    }
}

impl Bert {
    pub(super) fn open(config: &Path, tensors: &mut SafeTensors, level: Level) -> Result<Self> {
        let config = Config::open(config)?;
        let width = config.hidden_size;
        let mut reader = Reader(tensors);
        let mut table = |name: &str, count: usize| {
            reader.0.floats(&format!("embeddings.{name}_embeddings.weight"), &[count, width])
        };
        let words = table("word", config.vocab_size)?;
        let mut positions = table("position", config.max_position_embeddings)?;
        let segments = table("token_type", config.type_vocab_size)?;
        for row in positions.chunks_exact_mut(width) {
            row.iter_mut().zip(&segments).for_each(|(x, segment)| *x += segment);
        }
        let norm = reader.norm("embeddings.LayerNorm", width)?;
        let layers = (0..config.num_hidden_layers)
            .map(|n| reader.layer(n, &config))
            .collect::<Result<_>>()?;
        Ok(Self { config, level, words, positions, norm, layers })
    }

    /// How many numbers a state has.
    pub(super) fn width(&self) -> usize {
        self.config.hidden_size
    }

    /// How many pieces there are to know.
    pub(super) fn vocabulary(&self) -> usize {
        self.config.vocab_size
    }

    /// How long a text may be.
    pub(super) fn longest(&self) -> usize {
        self.config.max_position_embeddings
    }

    /// The mean state of each text. A text has at least one piece and no more than
    /// [`longest`](Self::longest), and no piece beyond the vocabulary.
    pub(super) fn means(&self, texts: &[Vec<u32>], scratch: &mut Scratch) -> Vec<Vec<f32>> {
        let width = self.width();
        self.begin(texts, scratch);
        for layer in &self.layers {
            self.attend(layer, texts, scratch);
            self.transform(layer, scratch);
        }
        let mut rest = scratch.states.as_slice();
        let mut means = Vec::with_capacity(texts.len());
        for text in texts {
            let (rows, after) = rest.split_at(text.len() * width);
            let mut mean = vec![0.0; width];
            for row in rows.chunks_exact(width) {
                mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
            mean.iter_mut().for_each(|sum| *sum /= text.len() as f32);
            means.push(mean);
            rest = after;
        }
        means
    }

    /// The states before the first layer.
    fn begin(&self, texts: &[Vec<u32>], scratch: &mut Scratch) {
        let width = self.width();
        scratch.states.clear();
        scratch.more.clear();
        for text in texts {
            for (piece, position) in text.iter().zip(self.positions.chunks_exact(width)) {
                let word = *piece as usize * width;
                scratch.states.extend_from_slice(&self.words[word..word + width]);
                scratch.more.extend_from_slice(position);
            }
        }
        self.normalise(&self.norm, scratch);
    }

    fn normalise(&self, norm: &Norm, scratch: &mut Scratch) {
        let epsilon = self.config.layer_norm_eps;
        let Scratch { states, more, .. } = scratch;
        self.level.layer_norm(states, more, &norm.weight, &norm.bias, epsilon);
    }

    /// The first half of a layer: each piece looks at all pieces of its text.
    fn attend(&self, layer: &Layer, texts: &[Vec<u32>], scratch: &mut Scratch) {
        let (level, width) = (self.level, self.width());
        let rows = scratch.states.len() / width;
        scratch.attention.resize(rows * 3 * width, 0.0);
        scratch.context.resize(rows * width, 0.0);
        let Scratch { states, attention, packed, .. } = scratch;
        layer.attention.apply(level, states, attention, packed);
        let mut start = 0;
        for text in texts {
            for head in 0..self.config.num_attention_heads {
                self.head(start, text.len(), head, scratch);
            }
            start += text.len();
        }
        scratch.more.resize(rows * width, 0.0);
        let Scratch { context, more, packed, .. } = scratch;
        layer.output.apply(level, context, more, packed);
        self.normalise(&layer.first_norm, scratch);
    }

    /// One head of one text of `count` pieces.
    fn head(&self, start: usize, count: usize, head: usize, scratch: &mut Scratch) {
        let Scratch { attention, context, scores, keys, values, packed, .. } = scratch;
        let width = self.width();
        let size = width / self.config.num_attention_heads;
        let own = &attention[start * 3 * width..][..count * 3 * width];
        let row =
            |n: usize, part: usize| &own[n * 3 * width + part * width + head * size..][..size];
        // Keys become the columns of a matrix, a few of them empty.
        let padded = count.next_multiple_of(PANEL);
        keys.clear();
        keys.resize(padded / PANEL * size, Step::ZERO);
        for (p, panel) in keys.chunks_exact_mut(size).enumerate() {
            for column in 0..PANEL.min(count - p * PANEL) {
                for (step, x) in panel.iter_mut().zip(row(p * PANEL + column, 1)) {
                    step.0[column] = *x;
                }
            }
        }
        scores.resize(count * padded, 0.0);
        let stride = 3 * width;
        let queries = Rows { data: &own[head * size..], count, width: size, stride };
        let out = Target { data: scores, stride: padded };
        self.level.multiply(queries, Panels { data: keys, depth: size }, None, out, packed);
        for row in scores.chunks_exact_mut(padded) {
            self.level.softmax(&mut row[..count]);
        }
        values.clear();
        for part in (0..size).step_by(PANEL) {
            values.extend((0..count).map(|n| {
                let mut step = Step::ZERO;
                step.0.copy_from_slice(&row(n, 2)[part..part + PANEL]);
                step
            }));
        }
        let shares = Rows { data: scores, count, width: count, stride: padded };
        let out = Target { data: &mut context[start * width + head * size..], stride: width };
        self.level.multiply(shares, Panels { data: values, depth: count }, None, out, packed);
    }

    /// The second half of a layer: each piece by itself.
    fn transform(&self, layer: &Layer, scratch: &mut Scratch) {
        let (level, width) = (self.level, self.width());
        let Scratch { states, more, wide, packed, .. } = scratch;
        more.resize(states.len(), 0.0);
        for (states, more) in states.chunks(BLOCK * width).zip(more.chunks_mut(BLOCK * width)) {
            wide.resize(states.len() / width * self.config.intermediate_size, 0.0);
            layer.widen.apply(level, states, wide, packed);
            level.gelu(wide);
            layer.narrow.apply(level, wide, more, packed);
        }
        self.normalise(&layer.second_norm, scratch);
    }
}
