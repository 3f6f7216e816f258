//! Things a model, critic or agent can do.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Context, Result};

/// How a tool is described to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name it is called by.
    pub name: Arc<str>,
    /// What it does and when to use it.
    pub description: Arc<str>,
    /// JSON schema of its arguments.
    pub parameters: Value,
}

/// Something that can be called with JSON and answers with JSON.
///
/// **Contract.** Whoever calls checks the arguments against the schema first. A tool that fails
/// gives an error and changes nothing it can help; it stops when the context is cancelled.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Its name, purpose and arguments.
    fn spec(&self) -> &ToolSpec;

    /// Does it.
    async fn call(&self, ctx: &Context, arguments: Value) -> Result<Value>;
}

impl fmt::Debug for dyn Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tool({})", self.spec().name)
    }
}

/// A tool made from a closure; see [`tool_fn`].
pub struct FunctionTool<F> {
    spec: ToolSpec,
    function: F,
}

/// Makes a tool of an async closure.
pub fn tool_fn<F, R>(spec: ToolSpec, function: F) -> FunctionTool<F>
where
    F: Fn(Value) -> R + Send + Sync,
    R: Future<Output = Result<Value>> + Send,
{
    FunctionTool { spec, function }
}

#[async_trait]
impl<F, R> Tool for FunctionTool<F>
where
    F: Fn(Value) -> R + Send + Sync,
    R: Future<Output = Result<Value>> + Send,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, ctx: &Context, arguments: Value) -> Result<Value> {
        ctx.run((self.function)(arguments)).await
    }
}

impl<F> fmt::Debug for FunctionTool<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionTool").field("spec", &self.spec).finish_non_exhaustive()
    }
}
