//! A retriever behind a guard.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use sifaka_core::retriever::Stage;
use sifaka_core::{Context, Document, Filter, Result, Retriever, Thought};

use crate::guard::Guard;
use crate::options::Resilience;

/// A retriever whose searches go through a [`Guard`].
#[derive(Clone)]
pub struct GuardedRetriever {
    retriever: Arc<dyn Retriever>,
    guard: Guard,
}

impl GuardedRetriever {
    /// Protects `retriever` under its own name.
    #[must_use]
    pub fn new(retriever: Arc<dyn Retriever>, options: &Resilience) -> Self {
        let guard = Guard::new(retriever.name(), options);
        Self::with_guard(retriever, guard)
    }

    /// Protects `retriever` with a guard it may share with others.
    #[must_use]
    pub fn with_guard(retriever: Arc<dyn Retriever>, guard: Guard) -> Self {
        Self { retriever, guard }
    }

    /// The guard.
    #[must_use]
    pub fn guard(&self) -> &Guard {
        &self.guard
    }
}

#[async_trait]
impl Retriever for GuardedRetriever {
    fn name(&self) -> &str {
        self.retriever.name()
    }

    async fn retrieve(
        &self,
        ctx: &Context,
        query: &str,
        limit: usize,
        filter: &Filter,
    ) -> Result<Vec<Document>> {
        self.guard.call(ctx, |ctx| self.retriever.retrieve(ctx, query, limit, filter)).await
    }

    fn query_for(&self, thought: &Thought, stage: Stage) -> String {
        self.retriever.query_for(thought, stage)
    }

    async fn retrieve_for_thought(
        &self,
        ctx: &Context,
        thought: &Thought,
        stage: Stage,
        limit: usize,
    ) -> Result<Vec<Document>> {
        let ask = |ctx| self.retriever.retrieve_for_thought(ctx, thought, stage, limit);
        self.guard.call(ctx, ask).await
    }
}

impl fmt::Debug for GuardedRetriever {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedRetriever")
            .field("retriever", &self.retriever)
            .field("guard", &self.guard)
            .finish()
    }
}
