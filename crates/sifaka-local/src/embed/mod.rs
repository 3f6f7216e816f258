//! Embedders that run here: no server, no key, and no library for tensors.
//!
//! [`MiniLm`] is a small transformer for where quality counts, [`StaticEmbedder`] a table of token
//! vectors for where microseconds count. Both read their weights from a folder and give vectors of
//! length 1 that do not depend on the batch.

mod added;
mod bert;
mod bpe;
mod files;
mod gemm;
mod math;
mod minilm;
mod pool;
mod safetensors;
mod table;
mod unicode;
mod wordpiece;

pub use minilm::MiniLm;
pub use table::StaticEmbedder;
