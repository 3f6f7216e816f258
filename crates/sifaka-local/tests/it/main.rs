//! Behaviour of the embedded model.

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
