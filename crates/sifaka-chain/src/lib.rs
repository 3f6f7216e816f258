//! The chain: a model writes, validators check, critics advise, and it goes round until the text
//! passes or a budget ends. The best draft is always what comes back.
//!
//! A [`Chain`] is a value: immutable, cheap to clone, and without a prompt. Build it once and run
//! it many times; the server, the batch runner and tests share it.
//!
//! ```
//! use sifaka_chain::Chain;
//! use sifaka_core::{check, model_fn};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let model = model_fn("polite", |request: sifaka_core::model::Request| async move {
//!     if request.last_text().contains("previous answer") { "Hello, Ada." } else { "Hello." }
//! });
//! let chain = Chain::builder(model)
//!     .validate(check("names-ada", |text| text.contains("Ada")))
//!     .max_iterations(2)
//!     .build()?;
//!
//! let outcome = chain.run("Greet Ada.").await?;
//! assert!(outcome.passed());
//! assert_eq!(outcome.text(), "Hello, Ada.");
//! assert_eq!(outcome.thought().iteration(), 1);
//! # Ok::<(), sifaka_core::Error>(()) }).unwrap();
//! ```

mod builder;
mod chain;
mod fingerprint;
mod options;
mod outcome;
mod plan;
mod redact;
mod run;
mod runner;
mod stream;

pub use builder::ChainBuilder;
pub use chain::Chain;
pub use options::{CriticsWhen, Guide, Stop};
pub use outcome::Outcome;
pub use plan::Plan;
pub use redact::{Redaction, redact_with};
pub use run::{ResumeFrom, Run};
pub use stream::RunStream;
