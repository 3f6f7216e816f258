//! Vectors out of a table: one for each token, and their mean for a text.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use sifaka_core::{Context, Embedder, Error, Result};

use super::bpe::Bpe;
use super::files::{damaged, unsupported};
use super::math::unit;
use super::pool::{Compute, Piece, Pool};
use super::safetensors::SafeTensors;

const NAME: &str = "local:static";

/// The table inside the file.
const TABLE: &str = "embedding.weight";

/// Bytes of text that are done where the caller is: well below a millisecond.
const AT_ONCE: usize = 4 << 10;

/// Embeds by table: the mean of the vectors of a text's tokens, 256 numbers with wordllama's.
///
/// It takes microseconds for a short text and sees all of a long one. It does not see the order of
/// words, nor what they mean together.
///
/// A text without tokens, which only the empty one is, has no mean. Its vector is that of the token
/// that begins every text, so that an empty text in a batch is no error and all empty texts are
/// alike. The same goes for a text whose vectors cancel out.
pub struct StaticEmbedder {
    table: Arc<Table>,
    pool: Pool,
    space: String,
}

struct Table {
    vectors: Vec<f32>,
    width: usize,
    tokens: Bpe,
    empty: Vec<f32>,
}

impl StaticEmbedder {
    /// Loads `l2_supercat_256.safetensors` and `l2_supercat_tokenizer_config.json` of a folder.
    ///
    /// # Errors
    /// [`NotFound`](sifaka_core::ErrorKind::NotFound) without the files,
    /// [`Corrupt`](sifaka_core::ErrorKind::Corrupt) when they are damaged,
    /// [`Unsupported`](sifaka_core::ErrorKind::Unsupported) when they are of another kind.
    pub fn open(folder: &Path) -> Result<Self> {
        Self::load(folder).map_err(|error| error.in_component(NAME))
    }

    fn load(folder: &Path) -> Result<Self> {
        let path = folder.join("l2_supercat_256.safetensors");
        let mut tensors = SafeTensors::open(&path)?;
        let sizes: Vec<usize> = tensors
            .shape(TABLE)
            .unwrap_or_default()
            .iter()
            .filter_map(|n| usize::try_from(*n).ok())
            .collect();
        let [rows, width] = sizes[..] else {
            return Err(unsupported(&path, format!("there is no table {TABLE}")));
        };
        let vectors = tensors.floats(TABLE, &[rows, width])?;
        let tokens = Bpe::open(&folder.join("l2_supercat_tokenizer_config.json"))?;
        if tokens.last_id() as usize >= rows || width == 0 {
            return Err(damaged(&path, "it has fewer vectors than there are tokens"));
        }
        let begin = tokens.special("<s>").map(|id| id as usize * width);
        let empty = begin
            .and_then(|at| unit(vectors[at..at + width].to_vec()))
            .ok_or_else(|| damaged(&path, "there is no vector for the beginning of a text"))?;
        let table = Arc::new(Table { vectors, width, tokens, empty });
        let pool = Pool::start(NAME, None, Piece { least: AT_ONCE, most: 64 << 10 }, &table)?;
        let space = format!("wordllama-l2-supercat-{width}@{}", tensors.mark()?);
        Ok(Self { table, pool, space })
    }

    /// The tokens of a text.
    #[must_use]
    pub fn tokens(&self, text: &str) -> Vec<u32> {
        let mut tokens = Vec::new();
        self.table.tokens.tokens(text, |id| tokens.push(id));
        tokens
    }

    /// The vector of a text, at once.
    #[must_use]
    pub fn vector(&self, text: &str) -> Vec<f32> {
        self.table.vector(text)
    }
}

impl Table {
    fn vector(&self, text: &str) -> Vec<f32> {
        // Its length is made 1, so the sum does as well as the mean.
        let mut sum = vec![0.0; self.width];
        self.tokens.tokens(text, |id| {
            let row = &self.vectors[id as usize * self.width..][..self.width];
            sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        });
        unit(sum).unwrap_or_else(|| self.empty.clone())
    }
}

impl Compute for Table {
    type Scratch = ();

    fn vectors(&self, texts: &[String], (): &mut ()) -> Result<Vec<Vec<f32>>> {
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }
}

#[async_trait]
impl Embedder for StaticEmbedder {
    fn name(&self) -> &str {
        NAME
    }

    fn dimension(&self) -> usize {
        self.table.width
    }

    fn space(&self) -> &str {
        &self.space
    }

    async fn embed(&self, ctx: &Context, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        if texts.iter().map(|text| text.len() + 8).sum::<usize>() > AT_ONCE {
            return self.pool.run(ctx, texts).await;
        }
        ctx.check().map_err(|error: Error| error.in_component(NAME))?;
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }
}

impl fmt::Debug for StaticEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticEmbedder").field("space", &self.space).finish_non_exhaustive()
    }
}
