//! The contract of a retriever.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::document::Document;
use crate::filter::Filter;
use crate::{Context, Result, Thought};

/// When in an iteration retrieval happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Before the model writes.
    PreGeneration,
    /// After it has written.
    PostGeneration,
}

/// Something that finds documents.
///
/// **Contract.** The best fit comes first and has the highest score; no more than `limit`
/// documents come; a limit of 0 or an empty query gives none. Nothing found is an empty list; an
/// error means that the search could not be made. Safe to call concurrently.
#[async_trait]
pub trait Retriever: Send + Sync {
    /// Its name in records.
    fn name(&self) -> &str;

    /// Finds at most `limit` documents for `query` among those the filter lets through.
    async fn retrieve(
        &self,
        ctx: &Context,
        query: &str,
        limit: usize,
        filter: &Filter,
    ) -> Result<Vec<Document>>;

    /// The query this retriever makes of a Thought.
    fn query_for(&self, thought: &Thought, stage: Stage) -> String {
        match (stage, thought.text()) {
            (Stage::PostGeneration, Some(text)) => format!("{}\n\n{text}", thought.prompt()),
            (Stage::PreGeneration, _) | (_, None) => {
                let mut query = thought.prompt().to_owned();
                // After the first round what was wrong is part of what is looked for.
                if let Some(parent) = thought.parent() {
                    let said = parent.critic_feedback().iter().flat_map(|f| &f.issues);
                    let found = parent.all_validation_issues();
                    for issue in said.map(String::as_str).chain(found) {
                        query.push('\n');
                        query.push_str(issue);
                    }
                }
                query
            }
        }
    }

    /// Finds documents for a Thought: before writing with its prompt, afterwards with prompt and
    /// text.
    async fn retrieve_for_thought(
        &self,
        ctx: &Context,
        thought: &Thought,
        stage: Stage,
        limit: usize,
    ) -> Result<Vec<Document>> {
        self.retrieve(ctx, &self.query_for(thought, stage), limit, &Filter::All).await
    }
}

#[async_trait]
impl<R: Retriever + ?Sized> Retriever for Arc<R> {
    fn name(&self) -> &str {
        (**self).name()
    }
    async fn retrieve(
        &self,
        ctx: &Context,
        query: &str,
        limit: usize,
        filter: &Filter,
    ) -> Result<Vec<Document>> {
        (**self).retrieve(ctx, query, limit, filter).await
    }
    fn query_for(&self, thought: &Thought, stage: Stage) -> String {
        (**self).query_for(thought, stage)
    }
    async fn retrieve_for_thought(
        &self,
        ctx: &Context,
        thought: &Thought,
        stage: Stage,
        limit: usize,
    ) -> Result<Vec<Document>> {
        (**self).retrieve_for_thought(ctx, thought, stage, limit).await
    }
}

impl fmt::Debug for dyn Retriever {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Retriever({})", self.name())
    }
}

/// A retriever made from a closure; see [`retriever_fn`].
pub struct FunctionRetriever<F> {
    name: Arc<str>,
    function: F,
}

/// Makes a retriever of an async closure over the query; limit and filter are applied to what it
/// gives.
pub fn retriever_fn<F, R>(name: impl Into<Arc<str>>, function: F) -> FunctionRetriever<F>
where
    F: Fn(String) -> R + Send + Sync,
    R: Future<Output = Result<Vec<Document>>> + Send,
{
    FunctionRetriever { name: name.into(), function }
}

#[async_trait]
impl<F, R> Retriever for FunctionRetriever<F>
where
    F: Fn(String) -> R + Send + Sync,
    R: Future<Output = Result<Vec<Document>>> + Send,
{
    fn name(&self) -> &str {
        &self.name
    }

    async fn retrieve(
        &self,
        _ctx: &Context,
        query: &str,
        limit: usize,
        filter: &Filter,
    ) -> Result<Vec<Document>> {
        if limit == 0 || query.is_empty() {
            return Ok(Vec::new());
        }
        let mut documents = (self.function)(query.to_owned()).await?;
        documents.retain(|document| filter.matches(document.metadata.as_ref()));
        documents.truncate(limit);
        Ok(documents)
    }
}

impl<F> fmt::Debug for FunctionRetriever<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionRetriever").field("name", &self.name).finish_non_exhaustive()
    }
}
