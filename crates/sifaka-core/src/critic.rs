//! The contract of a critic.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;

use crate::feedback::CriticFeedback;
use crate::model::Model;
use crate::prompt::Prompts;
use crate::retriever::Retriever;
use crate::tool::Tool;
use crate::validator::Validator;
use crate::{Context, Result, Thought};

/// What a critic has before it, and the chain's means it may use.
#[derive(Clone, Copy)]
pub struct Review<'a> {
    /// The task, the text, both contexts, what the validators said, and the history.
    pub thought: &'a Thought,
    /// The chain's model; call it through [`Context::generate`](crate::Context::generate), so
    /// that the call is limited, recorded and paid for once.
    pub model: &'a Arc<dyn Model>,
    /// The chain's retrievers for critics.
    pub retrievers: &'a [Arc<dyn Retriever>],
    /// The chain's validators.
    pub validators: &'a [Arc<dyn Validator>],
    /// The chain's tools.
    pub tools: &'a [Arc<dyn Tool>],
    /// The chain's prompt templates.
    pub prompts: &'a Prompts,
}

impl fmt::Debug for Review<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Review").field("thought", &self.thought).finish_non_exhaustive()
    }
}

/// Something that says how a text could be better.
///
/// **Contract.** A critic gives structured feedback and nothing else: it does not write the next
/// prompt, which is the chain's. When it cannot give any it gives an error, which is recorded as a
/// failure; it never invents feedback. A text of its own goes into `proposed_text` and is
/// validated like any other. Models are called through the context.
#[async_trait]
pub trait Critic: Send + Sync {
    /// Its name in feedback and records.
    fn name(&self) -> &str;

    /// Looks at a text.
    async fn critique(&self, ctx: &Context, review: &Review<'_>) -> Result<CriticFeedback>;
}

#[async_trait]
impl<C: Critic + ?Sized> Critic for Arc<C> {
    fn name(&self) -> &str {
        (**self).name()
    }
    async fn critique(&self, ctx: &Context, review: &Review<'_>) -> Result<CriticFeedback> {
        (**self).critique(ctx, review).await
    }
}

impl fmt::Debug for dyn Critic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Critic({})", self.name())
    }
}

/// A critic made from a closure; see [`critic_fn`].
pub struct FunctionCritic<F> {
    name: Arc<str>,
    function: F,
}

/// Makes a critic of an async closure over the Thought.
pub fn critic_fn<F, R>(name: impl Into<Arc<str>>, function: F) -> FunctionCritic<F>
where
    F: Fn(Thought) -> R + Send + Sync,
    R: Future<Output = Result<CriticFeedback>> + Send,
{
    FunctionCritic { name: name.into(), function }
}

#[async_trait]
impl<F, R> Critic for FunctionCritic<F>
where
    F: Fn(Thought) -> R + Send + Sync,
    R: Future<Output = Result<CriticFeedback>> + Send,
{
    fn name(&self) -> &str {
        &self.name
    }

    async fn critique(&self, _ctx: &Context, review: &Review<'_>) -> Result<CriticFeedback> {
        (self.function)(review.thought.clone()).await
    }
}

impl<F> fmt::Debug for FunctionCritic<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionCritic").field("name", &self.name).finish_non_exhaustive()
    }
}
