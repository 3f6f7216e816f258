//! Tests of the retrievers as users meet them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod by_name;
mod mock;

use sifaka_core::{Context, Document, Filter, Retriever};

/// What is found, as texts.
async fn find(retriever: &impl Retriever, query: &str, limit: usize) -> Vec<String> {
    let found = retriever.retrieve(&Context::new(), query, limit, &Filter::All).await.unwrap();
    found.iter().filter_map(Document::text).map(str::to_owned).collect()
}
