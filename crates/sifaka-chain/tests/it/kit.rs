//! Parts that do what a test says and count how often they were asked.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a part of a test")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sifaka_chain::{Chain, ChainBuilder};
use sifaka_core::model::{Capabilities, Completion, Model, Request, Response};
use sifaka_core::{
    Context, Critic, CriticFeedback, Draft, Error, ErrorKind, Result, Review, Usage,
    ValidationResult, Validator, check,
};
use sifaka_resilience::Resilience;

/// What a scripted part does next.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Say(&'static str),
    Fail(ErrorKind),
    Panic,
    Wait(Duration, &'static str),
}

/// A model that follows a script; its last act repeats.
#[derive(Clone)]
pub(crate) struct Script {
    acts: Arc<Vec<Act>>,
    asked: Arc<Mutex<Vec<Request>>>,
    calls: Arc<AtomicUsize>,
    max_candidates: u32,
    name: &'static str,
    pub(crate) window: Option<u64>,
}

impl Script {
    pub(crate) fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        Self {
            acts: Arc::new(acts.into_iter().collect()),
            asked: Arc::default(),
            calls: Arc::default(),
            max_candidates: 4,
            name: "script",
            window: None,
        }
    }

    pub(crate) fn says(texts: impl IntoIterator<Item = &'static str>) -> Self {
        Self::new(texts.into_iter().map(Act::Say))
    }

    pub(crate) fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn prompts(&self) -> Vec<String> {
        self.requests().iter().map(|r| r.last_text().into_owned()).collect()
    }

    /// A script that goes on where a run was left: the first `skip` acts are done.
    pub(crate) fn skip(&self, skip: usize) -> Self {
        let last = self.acts.len().saturating_sub(1);
        Self::new(self.acts[skip.min(last)..].iter().cloned())
    }
}

#[async_trait]
impl Model for Script {
    fn name(&self) -> &str {
        self.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_candidates: self.max_candidates,
            context_window: self.window,
            ..Capabilities::default()
        }
    }

    async fn generate(&self, ctx: &Context, request: &Request) -> Result<Response> {
        self.asked.lock().unwrap().push(request.clone());
        let mut completions = Vec::new();
        for _ in 0..request.candidates {
            let n = self.calls.fetch_add(1, Ordering::SeqCst);
            let act = self.acts[n.min(self.acts.len() - 1)].clone();
            completions.push(Completion::new(match act {
                Act::Say(text) => text,
                Act::Fail(kind) => {
                    return Err(Error::new(kind, "script", "generate", "as scripted"));
                }
                Act::Panic => panic!("as scripted"),
                Act::Wait(time, text) => {
                    ctx.sleep(time).await?;
                    text
                }
            }));
        }
        let usage = Usage { calls: 1, input_tokens: 10, output_tokens: 5, ..Usage::default() };
        Ok(Response { completions, usage, ..Response::default() })
    }
}

/// A critic that always finds the same thing wrong, and counts.
#[derive(Clone)]
pub(crate) struct Finds {
    pub(crate) name: &'static str,
    pub(crate) issue: &'static str,
    calls: Arc<AtomicUsize>,
}

impl Finds {
    pub(crate) fn new(name: &'static str, issue: &'static str) -> Self {
        Self { name, issue, calls: Arc::default() }
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Critic for Finds {
    fn name(&self) -> &str {
        self.name
    }

    async fn critique(&self, _: &Context, review: &Review<'_>) -> Result<CriticFeedback> {
        let n = self.calls.fetch_add(1, Ordering::SeqCst);
        let seen = review.thought.text().unwrap_or_default();
        Ok(CriticFeedback::new(self.name).with_issue(format!("{} #{n} in {seen:?}", self.issue)))
    }
}

/// A critic that asks the chain's model for its advice.
#[derive(Clone)]
pub(crate) struct Asks;

#[async_trait]
impl Critic for Asks {
    fn name(&self) -> &'static str {
        "asks"
    }

    async fn critique(&self, ctx: &Context, review: &Review<'_>) -> Result<CriticFeedback> {
        let mut feedback = CriticFeedback::new("asks");
        for question in ["one", "two"] {
            let text = review.thought.text().unwrap_or_default();
            let request = Request::text(format!("{question}: what is wrong with {text:?}?"));
            let response = ctx.generate(&**review.model, &request).await?;
            feedback.issues.push(response.completions[0].text.to_string());
        }
        Ok(feedback)
    }
}

/// A validator that breaks.
pub(crate) struct Breaks;

#[async_trait]
impl Validator for Breaks {
    fn name(&self) -> &'static str {
        "breaks"
    }

    async fn validate(&self, _: &Context, _: &Draft<'_>) -> Result<ValidationResult> {
        Err(Error::new(ErrorKind::Unavailable, "breaks", "validate", "no connection"))
    }
}

/// A chain whose text must contain "good"; nothing is retried, so that calls can be counted.
pub(crate) fn wants_good(model: Script) -> ChainBuilder {
    Chain::builder(model)
        .validate(check("good", |text| text.contains("good")))
        .resilience(Resilience::none())
}
