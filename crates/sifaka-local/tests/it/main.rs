//! Behaviour of the embedded model.

mod common;
mod constraints;
mod engine;
mod gguf;
mod kernels;
mod llama_cpp;
mod model;
mod names;
mod strings;
mod tokenizer;
mod weights;
