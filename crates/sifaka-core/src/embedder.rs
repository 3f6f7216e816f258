//! The contract of an embedder.

use std::fmt;

use async_trait::async_trait;

use crate::{Context, Result};

/// Something that turns texts into vectors.
///
/// **Contract.** Every vector has [`dimension`](Self::dimension) numbers and length 1; the same
/// text gives the same vector, whatever else is in the batch; there is one vector for each text,
/// in order. Vectors of two embedders are comparable only if their [`space`](Self::space) is the
/// same.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Its name in records.
    fn name(&self) -> &str;

    /// How many numbers a vector has.
    fn dimension(&self) -> usize;

    /// Names the space the vectors live in: the model and its version.
    fn space(&self) -> &str {
        self.name()
    }

    /// The vectors of these texts.
    async fn embed(&self, ctx: &Context, texts: &[&str]) -> Result<Vec<Vec<f32>>>;
}

impl fmt::Debug for dyn Embedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Embedder({}, {})", self.name(), self.dimension())
    }
}
