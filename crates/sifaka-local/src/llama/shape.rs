//! How large a model is, and the numbers its file gives with it.

use sifaka_core::{Error, ErrorKind, Result};

use crate::gguf::{Gguf, TensorInfo, TensorKind};
use crate::matrix::BLOCK;

/// The sizes of a model of the Llama family.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) layers: usize,
    pub(crate) hidden: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    /// Dimensions of a head.
    pub(crate) head: usize,
    /// Width of the feed-forward part.
    pub(crate) wide: usize,
    pub(crate) vocabulary: usize,
    /// How many positions it was trained for.
    pub(crate) context: usize,
    pub(crate) epsilon: f32,
    /// The angle each pair of dimensions turns by from one position to the next.
    pub(crate) angles: Vec<f64>,
}

/// What a file says that we cannot do, and what we can.
fn unsupported(gguf: &Gguf, what: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "local",
        "load",
        format!("{} has {what}", gguf.path().display()),
    )
    .suggest(
        "supported are GGUF files of the architecture `llama` (Llama, SmolLM, TinyLlama, Mistral) \
         without experts, with weights in F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1 or Q2_K to \
         Q6_K",
    )
}

impl Shape {
    /// Reads it from a file's metadata, and refuses what the forward pass cannot do.
    pub(crate) fn read(gguf: &Gguf) -> Result<Self> {
        let architecture = gguf.str("general.architecture")?;
        if architecture != "llama" {
            return Err(unsupported(gguf, format_args!("the architecture {architecture:?}")));
        }
        if gguf.u64_opt("llama.expert_count")?.unwrap_or(0) > 0 {
            return Err(unsupported(gguf, "a mixture of experts"));
        }
        let size = |key: &str| {
            let value = gguf.u64(key)?;
            usize::try_from(value)
                .ok()
                .filter(|n| (1..=1 << 24).contains(n))
                .ok_or_else(|| unsupported(gguf, format_args!("{key} = {value}")))
        };
        let hidden = size("llama.embedding_length")?;
        let heads = size("llama.attention.head_count")?;
        let kv_heads = match gguf.u64_opt("llama.attention.head_count_kv")? {
            Some(_) => size("llama.attention.head_count_kv")?,
            None => heads,
        };
        let head = match gguf.u64_opt("llama.attention.key_length")? {
            Some(_) => size("llama.attention.key_length")?,
            None => hidden / heads,
        };
        let turned = match gguf.u64_opt("llama.rope.dimension_count")? {
            Some(_) => size("llama.rope.dimension_count")?,
            None => head,
        };
        let vocabulary = gguf
            .tensor("token_embd.weight")
            .map(TensorInfo::rows)
            .and_then(|rows| usize::try_from(rows).ok())
            .ok_or_else(|| unsupported(gguf, "no tensor token_embd.weight"))?;
        let shape = Self {
            layers: size("llama.block_count")?,
            hidden,
            heads,
            kv_heads,
            head,
            wide: size("llama.feed_forward_length")?,
            vocabulary,
            context: size("llama.context_length")?,
            epsilon: gguf.f32("llama.attention.layer_norm_rms_epsilon")?,
            angles: angles(gguf, head)?,
        };
        if [hidden, shape.wide, heads * head].iter().any(|size| !size.is_multiple_of(BLOCK)) {
            return Err(unsupported(gguf, format_args!("rows that are no multiple of {BLOCK}")));
        }
        if head % 16 != 0 || turned != head || heads % kv_heads != 0 {
            let what = format!(
                "heads of {head} dimensions, {turned} of them turned, {heads} over {kv_heads}"
            );
            return Err(unsupported(gguf, what));
        }
        Ok(shape)
    }

    /// Query heads that share a key-value head.
    pub(crate) const fn group(&self) -> usize {
        self.heads / self.kv_heads
    }

    /// Bytes of keys and values a position takes.
    pub(crate) const fn bytes_per_position(&self) -> usize {
        self.layers * self.kv_heads * self.head * 2 * 2
    }
}

/// The angles of the rotary position embedding.
fn angles(gguf: &Gguf, head: usize) -> Result<Vec<f64>> {
    let base = f64::from(gguf.f32_opt("llama.rope.freq_base")?.unwrap_or(10_000.0));
    let factor = match gguf.str_opt("llama.rope.scaling.type")? {
        None | Some("none") => 1.0,
        Some("linear") => gguf.f32_opt("llama.rope.scaling.factor")?.unwrap_or(1.0),
        Some(other) => return Err(unsupported(gguf, format_args!("rope scaling {other:?}"))),
    };
    let mut angles: Vec<f64> = (0..head / 2)
        .map(|pair| base.powf(-2.0 * pair as f64 / head as f64) / f64::from(factor))
        .collect();
    // Llama 3 stretches the slow ones.
    if let Some(tensor) = gguf.tensor("rope_freqs.weight") {
        if tensor.kind != TensorKind::F32 || tensor.numbers() != angles.len() as u64 {
            return Err(unsupported(gguf, "a rope_freqs.weight of another size"));
        }
        for (angle, bytes) in angles.iter_mut().zip(gguf.read(tensor)?.as_chunks::<4>().0) {
            *angle /= f64::from(f32::from_le_bytes(*bytes));
        }
    }
    Ok(angles)
}
