//! Retrievers.
//!
//! - [`MockRetriever`], `mock` by name, finds among documents it was given those that share words
//!   with the query. Tests and demonstrations use it.
//!
//! ```
//! use sifaka_core::{Context, Filter, Registry, Retriever, Spec};
//! use sifaka_retrieval::MockRetriever;
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let ctx = Context::new();
//! let docs = MockRetriever::texts(["Lemurs live on Madagascar.", "Bread needs flour."]);
//! let found = docs.retrieve(&ctx, "where do lemurs live?", 3, &Filter::All).await?;
//! assert_eq!(found.len(), 1);
//! assert_eq!(found[0].text(), Some("Lemurs live on Madagascar."));
//!
//! // The same by name, as configuration files and the command line do it.
//! let registry = Registry::new();
//! sifaka_retrieval::register(&registry);
//! let docs = registry.retriever(&Spec::parse("mock:text=Lemurs live on Madagascar.")?)?;
//! assert_eq!(docs.retrieve(&ctx, "lemurs", 3, &Filter::All).await?.len(), 1);
//! # Ok::<(), sifaka_core::Error>(()) }).unwrap();
//! ```

pub mod mock;

use std::sync::Arc;

use sifaka_core::Registry;
use sifaka_core::registry::About;

pub use mock::MockRetriever;

/// Makes `mock` known.
///
/// Options: a file's path after the colon or as `path`; `text`, or a list of them as `texts`;
/// `all`; `error` with `retry_after` and `times`; `delay` in seconds; `name`.
pub fn register(registry: &Registry) {
    let about = About::new(
        "mock",
        "Finds given documents by the words they share with the query; no index",
        "mock:docs.jsonl",
    );
    registry.retrievers.register(about, |spec, _| Ok(Arc::new(mock::from_spec(spec)?)));
}
