//! The embedded model and embedders: GGUF weights on kernels of our own, no server, no key.

pub mod gguf;
mod kernels;
mod llama;
mod matrix;
mod pages;
pub mod quant;
mod team;
/// x
pub mod tokenizer { 
/// x
pub type TokenId = u32; }
#[doc(hidden)]
pub mod trial;
