//! Any closure is a model.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Capabilities, Completion, Model, Request, Response, TokenCount};
use crate::usage::Usage;
use crate::{Context, Result};

/// A model made from a closure; see [`model_fn`].
pub struct FunctionModel<F> {
    name: Arc<str>,
    function: F,
}

/// Makes a model of an async closure that takes the request and gives text, or a whole
/// [`Response`], or a `Result` of either.
///
/// ```
/// use sifaka_core::{Context, model::{Model, Request, model_fn}};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let shout = model_fn("shout", |request: Request| async move {
///     request.last_text().to_uppercase()
/// });
/// let response = shout.generate(&Context::new(), &Request::text("hello")).await?;
/// assert_eq!(&*response.completions[0].text, "HELLO");
/// # Ok::<(), sifaka_core::Error>(()) }).unwrap();
/// ```
pub fn model_fn<F, R, T>(name: impl Into<Arc<str>>, function: F) -> FunctionModel<F>
where
    F: Fn(Request) -> R + Send + Sync,
    R: Future<Output = T> + Send,
    T: IntoCompletion,
{
    FunctionModel { name: name.into(), function }
}

/// What a closure that is a model may give.
pub trait IntoCompletion {
    /// As a response, with usage counted if it has none.
    fn into_response(self) -> Result<Response>;
}

impl IntoCompletion for Response {
    fn into_response(self) -> Result<Response> {
        Ok(self)
    }
}

impl IntoCompletion for String {
    fn into_response(self) -> Result<Response> {
        Ok(Response { completions: vec![Completion::new(self)], ..Response::default() })
    }
}

impl IntoCompletion for &str {
    fn into_response(self) -> Result<Response> {
        Ok(Response::text(self))
    }
}

impl<T: IntoCompletion> IntoCompletion for Result<T> {
    fn into_response(self) -> Result<Response> {
        self?.into_response()
    }
}

#[async_trait]
impl<F, R, T> Model for FunctionModel<F>
where
    F: Fn(Request) -> R + Send + Sync,
    R: Future<Output = T> + Send,
    T: IntoCompletion,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    async fn generate(&self, _ctx: &Context, request: &Request) -> Result<Response> {
        let asked = (self.function)(request.clone()).await;
        let mut response = asked.into_response()?;
        if response.usage.is_empty() {
            let count = |text: &str| TokenCount::estimate(text).tokens;
            let prompt: u64 = request.messages.iter().map(|m| count(&m.text())).sum();
            response.usage = Usage {
                calls: 1,
                input_tokens: prompt + request.system.as_deref().map_or(0, count),
                output_tokens: response.completions.iter().map(|c| count(&c.text)).sum(),
                estimated: true,
                ..Usage::default()
            };
        }
        Ok(response)
    }
}

impl<F> fmt::Debug for FunctionModel<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionModel").field("name", &self.name).finish_non_exhaustive()
    }
}
