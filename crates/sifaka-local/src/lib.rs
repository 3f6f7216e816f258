//! The embedded model and embedders: GGUF weights on kernels of our own, no server, no key.
//!
//! - [`LocalModel`], `local` by name, is a GGUF file of the Llama family as a model of core's.
//! - Below it, [`Engine`] loads the weights once for everyone and gives each task an
//!   [`engine::Sequence`]: push tokens, look at scores, go back, fork. What several tasks wait for is
//!   computed in one pass.
//! - A [`guide::Guide`] takes part in the choice of every token; JSON schemas, patterns and grammars
//!   are kept by one.
//! - [`embed`] has two embedders, [`weights`] fetches the files that all of these need.
//!
//! ```no_run
//! use sifaka_core::{Context, Model, model::Request};
//! use sifaka_local::{LocalModel, engine::Options, weights::{self, Folder}};
//!
//! # async fn example() -> sifaka_core::Result<()> {
//! let file = Folder::of_user()?.locate(weights::find(weights::DEFAULT)?)?;
//! let model = LocalModel::open(file, Options::default())?;
//! let answer = model.generate(&Context::new(), &Request::text("What is a lemur?")).await?;
//! println!("{}", answer.completions[0].text);
//! # Ok(()) }
//! ```

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
