//! all-MiniLM-L6-v2 on the processor.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use sifaka_core::{Context, Embedder, Error, ErrorKind, Result};

use super::bert::{Bert, Scratch};
use super::files::damaged;
use super::gemm::Level;
use super::math::unit;
use super::pool::{Compute, Piece, Pool};
use super::safetensors::SafeTensors;
use super::wordpiece::WordPiece;

const NAME: &str = "local:minilm";

/// What the model was tuned for, with the marks of start and end.
const LONGEST: usize = 256;

/// Rows that are computed together, unless one text alone has more.
const ROWS: usize = 256;

/// Embeds with all-MiniLM-L6-v2: 384 numbers, trained to put what means the same close together.
///
/// It looks at the first 254 word pieces of a text, some 180 English words. That is what the model
/// was made for, and the rest of a longer text is not seen; [`count_pieces`](Self::count_pieces)
/// tells how many a text has, so that it can be split before. An empty text has a vector as well.
///
/// The same text gives the same bits, alone or in any batch. On another kind of processor the last
/// bits may differ.
pub struct MiniLm {
    model: Arc<Model>,
    pool: Pool,
    space: String,
}

struct Model {
    bert: Bert,
    pieces: WordPiece,
    longest: usize,
}

impl MiniLm {
    /// Loads `model.safetensors`, `config.json` and `tokenizer.json` (or `vocab.txt`) of a folder.
    /// Computes with as many threads as there are cores.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) without the files, [`Corrupt`](ErrorKind::Corrupt) when
    /// they are damaged, [`Unsupported`](ErrorKind::Unsupported) when they are of another model.
    pub fn open(folder: &Path) -> Result<Self> {
        Self::load(folder, None, Level::best())
    }

    /// The same with so many threads.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with_threads(folder: &Path, threads: NonZeroUsize) -> Result<Self> {
        Self::load(folder, Some(threads), Level::best())
    }

    fn load(folder: &Path, threads: Option<NonZeroUsize>, level: Level) -> Result<Self> {
        let load = || {
            let path = folder.join("model.safetensors");
            let mut tensors = SafeTensors::open(&path)?;
            let bert = Bert::open(&folder.join("config.json"), &mut tensors, level)?;
            let pieces = WordPiece::open(folder)?;
            if pieces.last_id() as usize >= bert.vocabulary() || bert.longest() < 2 {
                return Err(damaged(&path, "it knows fewer word pieces than the tokenizer"));
            }
            let longest = LONGEST.min(bert.longest());
            let model = Arc::new(Model { bert, pieces, longest });
            // About as many bytes of English as fill the rows.
            let piece = Piece { least: 256, most: 4 * ROWS };
            let pool = Pool::start(NAME, threads, piece, &model)?;
            let space = format!("all-MiniLM-L6-v2@{}", tensors.mark()?);
            Ok(Self { model, pool, space })
        };
        load().map_err(|error: Error| error.in_component(NAME))
    }

    /// The word pieces of a text as the model sees them: cut off, and with marks at start and end.
    #[must_use]
    pub fn pieces(&self, text: &str) -> Vec<u32> {
        self.model.pieces.encode(text, self.model.longest)
    }

    /// How many word pieces a text has. Only the first [`max_pieces`](Self::max_pieces) count.
    #[must_use]
    pub fn count_pieces(&self, text: &str) -> usize {
        self.model.pieces.count(text)
    }

    /// How many word pieces of a text are looked at.
    #[must_use]
    pub fn max_pieces(&self) -> usize {
        self.model.longest - 2
    }
}

impl Compute for Model {
    type Scratch = Scratch;

    fn vectors(&self, texts: &[String], scratch: &mut Scratch) -> Result<Vec<Vec<f32>>> {
        let texts: Vec<Vec<u32>> =
            texts.iter().map(|text| self.pieces.encode(text, self.longest)).collect();
        let mut vectors = Vec::with_capacity(texts.len());
        let mut rest = texts.as_slice();
        while !rest.is_empty() {
            let mut rows = 0;
            let fits = rest.iter().take_while(|text| {
                rows += text.len();
                rows <= ROWS
            });
            let (texts, after) = rest.split_at(fits.count().max(1));
            rest = after;
            for mean in self.bert.means(texts, scratch) {
                let vector = unit(mean).ok_or_else(|| {
                    let message = "the weights led to a vector without direction";
                    Error::new(ErrorKind::Corrupt, NAME, "embed", message)
                        .suggest("fetch the weights again")
                })?;
                vectors.push(vector);
            }
        }
        Ok(vectors)
    }
}

#[async_trait]
impl Embedder for MiniLm {
    fn name(&self) -> &str {
        NAME
    }

    fn dimension(&self) -> usize {
        self.model.bert.width()
    }

    fn space(&self) -> &str {
        &self.space
    }

    async fn embed(&self, ctx: &Context, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        self.pool.run(ctx, texts).await
    }
}

impl fmt::Debug for MiniLm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MiniLm").field("space", &self.space).finish_non_exhaustive()
    }
}
