//! Models of the Llama family: their sizes, their weights, and the forward pass.

mod forward;
mod shape;
mod units;
mod weights;

use sifaka_core::Result;

pub(crate) use forward::{Entry, Scratch, Wanted};
pub(crate) use shape::Shape;
use weights::Weights;

use crate::gguf::Gguf;
use crate::kernels::Isa;

/// A loaded model. It is never changed; what a pass needs besides is in [`Scratch`].
#[derive(Debug)]
pub(crate) struct Llama {
    pub(crate) shape: Shape,
    weights: Weights,
    isa: Isa,
}

impl Llama {
    /// Reads a model from its file with so many threads.
    pub(crate) fn read(gguf: &Gguf, isa: Isa, threads: usize) -> Result<Self> {
        let shape = Shape::read(gguf)?;
        let weights = Weights::read(gguf, &shape, threads)?;
        Ok(Self { shape, weights, isa })
    }

    /// Bytes of weights in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.weights.bytes()
    }
}
