//! Behaviour of the embedded model.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;
mod constraints;
mod embed;
mod engine;
mod gguf;
mod kernels;
mod llama_cpp;
mod model;
mod names;
mod strings;
mod tokenizer;
mod weights;
