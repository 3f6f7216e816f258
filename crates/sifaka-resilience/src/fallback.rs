//! Asking one component after the other.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};
use sifaka_core::event::Transition;
use sifaka_core::model::{Capabilities, Delta, DeltaStream, Price, Request, Response, TokenCount};
use sifaka_core::{Context, Cost, Error, ErrorKind, EventKind, Failure, Model, Result};

use crate::model::first_delta;

/// Whether an error of this kind is one that another component might not have.
///
/// Everything but these: bad input stays bad, a wrong configuration is to be put right and not to
/// be hidden, and a call that was cancelled, is out of time or out of budget is over for all. A
/// prompt that is too long falls back, since the next model may have a larger window.
#[must_use]
pub const fn falls_back(kind: ErrorKind) -> bool {
    !matches!(
        kind,
        ErrorKind::InvalidInput
            | ErrorKind::Configuration
            | ErrorKind::Cancelled
            | ErrorKind::DeadlineExceeded
            | ErrorKind::BudgetExhausted
    )
}

/// Asks each of `choices`, a name and something `f` can ask, until one answers.
///
/// ```
/// use sifaka_core::{Context, Error, ErrorKind};
/// use sifaka_resilience::fall_back;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let ctx = Context::new();
/// let mirrors = [("near", None), ("far", Some(7))];
/// let answer = fall_back(&ctx, mirrors, |held: Option<u32>| async move {
///     held.ok_or_else(|| Error::new(ErrorKind::Unavailable, "near", "ask", "it is down"))
/// });
/// assert_eq!(answer.await?, 7);
/// # Ok::<(), Error>(()) }).unwrap();
/// ```
///
/// # Errors
/// One that [does not fall back](falls_back), as it is. When all failed, one of the last error's
/// kind that tells of the others, too.
pub async fn fall_back<N, C, T, F, Fut>(
    ctx: &Context,
    choices: impl IntoIterator<Item = (N, C)>,
    mut f: F,
) -> Result<T>
where
    N: AsRef<str>,
    F: FnMut(C) -> Fut,
    Fut: Future<Output = Result<T>>,
{
    let mut choices = choices.into_iter();
    let Some((mut name, mut choice)) = choices.next() else {
        return Err(Error::configuration("fallback", "there is nothing to ask")
            .suggest("name at least one component"));
    };
    let mut before: Vec<Error> = Vec::new();
    loop {
        let error = match f(choice).await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let next = if falls_back(error.kind()) { choices.next() } else { None };
        let Some((next_name, next_choice)) = next else { return Err(all_failed(error, &before)) };
        if ctx.is_observed() {
            ctx.observe(EventKind::Resilience {
                component: Arc::from(name.as_ref()),
                transition: Transition::FellBack {
                    to: Arc::from(next_name.as_ref()),
                    failure: Failure::from(&error),
                },
            });
        }
        before.push(error);
        (name, choice) = (next_name, next_choice);
    }
}

/// The last error, with what the ones before it said.
fn all_failed(last: Error, before: &[Error]) -> Error {
    if before.is_empty() || !falls_back(last.kind()) {
        return last;
    }
    let others: Vec<String> = before.iter().map(ToString::to_string).collect();
    let message = format!("{} (before that, {})", last.message(), others.join("; "));
    let mut error = Error::new(last.kind(), last.component(), "call", message);
    let mut advice: Vec<&String> = Vec::new();
    for suggestion in before.iter().chain([&last]).flat_map(Error::suggestions) {
        if !advice.contains(&suggestion) {
            advice.push(suggestion);
        }
    }
    for suggestion in advice {
        error = error.suggest(suggestion.clone());
    }
    if let Some(wait) = last.retry_after() {
        error = error.with_retry_after(wait);
    }
    error.with_source(last)
}

/// Models in the order they are asked: the next one answers when the one before it cannot.
///
/// It can do what all of them can, costs and counts as much as the dearest of them, and says in
/// the response's `provider.model` which one answered. A stream falls back until its first delta,
/// and not after it.
pub struct FallbackModel {
    name: String,
    models: Vec<Arc<dyn Model>>,
}

impl FallbackModel {
    /// Asks `models` in this order. Its name is theirs, joined with `|`.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when there are none.
    pub fn new(models: Vec<Arc<dyn Model>>) -> Result<Self> {
        if models.is_empty() {
            return Err(Error::configuration("fallback", "there is no model to ask")
                .suggest("name at least one model"));
        }
        let names: Vec<&str> = models.iter().map(Model::name).collect();
        Ok(Self { name: names.join("|"), models })
    }

    fn choices(&self) -> impl Iterator<Item = (&str, &Arc<dyn Model>)> {
        self.models.iter().map(|model| (model.name(), model))
    }
}

fn signed(mut response: Response, model: &dyn Model) -> Response {
    response.provider.model.get_or_insert_with(|| model.name().to_owned());
    response
}

#[async_trait]
impl Model for FallbackModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        let all = self.models.iter().map(Model::capabilities);
        all.reduce(common).unwrap_or_default()
    }

    async fn generate(&self, ctx: &Context, request: &Request) -> Result<Response> {
        fall_back(ctx, self.choices(), |model| async move {
            Ok(signed(model.generate(ctx, request).await?, model))
        })
        .await
    }

    fn stream<'a>(&'a self, ctx: &'a Context, request: &'a Request) -> DeltaStream<'a> {
        let begun = async move {
            let (first, rest, model) = fall_back(ctx, self.choices(), |model| async move {
                let (first, rest) = first_delta(model.name(), model.stream(ctx, request)).await?;
                Ok((first, rest, model))
            })
            .await?;
            let signed = move |delta| match delta {
                Delta::Done(response) => Delta::Done(Box::new(signed(*response, model))),
                other => other,
            };
            Ok::<_, Error>(stream::iter([Ok(first)]).chain(rest).map_ok(signed))
        };
        Box::pin(stream::once(begun).try_flatten())
    }

    fn count_tokens(&self, text: &str) -> TokenCount {
        let counts = self.models.iter().map(|model| model.count_tokens(text));
        let most = counts.reduce(|a, b| TokenCount {
            tokens: a.tokens.max(b.tokens),
            exact: a.exact && b.exact && a.tokens == b.tokens,
        });
        most.unwrap_or_else(|| TokenCount::estimate(text))
    }

    fn price(&self) -> Option<Price> {
        // One unknown price makes the whole unknown: a budget must not be passed by falling back.
        let prices: Option<Vec<Price>> = self.models.iter().map(Model::price).collect();
        prices?.into_iter().reduce(|a, b| {
            let cached =
                |price: &Price| price.cached_per_million.unwrap_or(price.input_per_million);
            let dearer = |x: Cost, y: Cost| x.max(y);
            Price {
                input_per_million: dearer(a.input_per_million, b.input_per_million),
                output_per_million: dearer(a.output_per_million, b.output_per_million),
                cached_per_million: Some(dearer(cached(&a), cached(&b))),
            }
        })
    }
}

/// What both can do.
fn common(a: Capabilities, b: Capabilities) -> Capabilities {
    let least = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    Capabilities {
        streaming: a.streaming && b.streaming,
        tools: a.tools && b.tools,
        system_prompt: a.system_prompt && b.system_prompt,
        json_schema: a.json_schema && b.json_schema,
        regex: a.regex && b.regex,
        grammar: a.grammar && b.grammar,
        guided: a.guided && b.guided,
        logprobs: a.logprobs && b.logprobs,
        seed: a.seed && b.seed,
        images: a.images && b.images,
        max_candidates: a.max_candidates.min(b.max_candidates),
        context_window: least(a.context_window, b.context_window),
        max_output_tokens: least(a.max_output_tokens, b.max_output_tokens),
    }
}

impl fmt::Debug for FallbackModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FallbackModel").field("models", &self.models).finish()
    }
}
