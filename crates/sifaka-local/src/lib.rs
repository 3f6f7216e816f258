//! The embedded model and embedders: GGUF weights on kernels of our own, no server, no key.

pub mod embed;
pub mod engine;
pub mod gguf;
pub mod guide;
mod kernels;
mod llama;
mod matrix;
pub mod model;
mod names;
mod pages;
pub mod quant;
pub mod sampler;
mod team;
pub mod template;
pub mod tokenizer;
pub mod weights;

pub use engine::Engine;
pub use kernels::Isa;
pub use model::LocalModel;
pub use names::{embedder_needs, needs, register};
