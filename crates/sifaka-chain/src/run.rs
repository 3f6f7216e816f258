//! One run of a chain: its options, and the ways to follow it.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};
use sifaka_core::{Budget, CancellationToken, Clock, Error, Id, Result, Thought};

use crate::chain::Chain;
use crate::outcome::Outcome;
use crate::runner;
use crate::stream::RunStream;

/// What a resumed run goes on from.
#[derive(Clone, Debug)]
pub enum ResumeFrom {
    /// A run's or Thought's id, or the unique beginning of one.
    Id(String),
    /// A Thought. Its run is taken up if the journal has it; otherwise the Thought is taken into
    /// the record as it is and improved from there.
    Thought(Box<Thought>),
}

impl From<&str> for ResumeFrom {
    fn from(id: &str) -> Self {
        Self::Id(id.to_owned())
    }
}

impl From<String> for ResumeFrom {
    fn from(id: String) -> Self {
        Self::Id(id)
    }
}

impl From<&Id> for ResumeFrom {
    fn from(id: &Id) -> Self {
        Self::Id(id.to_string())
    }
}

impl From<Thought> for ResumeFrom {
    fn from(thought: Thought) -> Self {
        Self::Thought(Box::new(thought))
    }
}

/// Where a run begins.
#[derive(Clone, Debug)]
pub(crate) enum Start {
    Prompt(Arc<str>),
    Resume(ResumeFrom),
}

/// A run that has not begun: set its options, then await it or stream it.
#[must_use = "a run does nothing until it is awaited or streamed"]
pub struct Run {
    pub(crate) chain: Chain,
    pub(crate) start: Start,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) metadata: Option<Map<String, Value>>,
    pub(crate) cancel: Option<CancellationToken>,
    pub(crate) budget: Option<Budget>,
    pub(crate) max_iterations: Option<u32>,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) entropy: Option<u64>,
}

impl Run {
    pub(crate) fn new(chain: Chain, prompt: Arc<str>) -> Self {
        Self::from_start(chain, Start::Prompt(prompt))
    }

    pub(crate) fn resume(chain: Chain, from: ResumeFrom) -> Self {
        Self::from_start(chain, Start::Resume(from))
    }

    fn from_start(chain: Chain, start: Start) -> Self {
        Self {
            chain,
            start,
            tags: BTreeMap::new(),
            metadata: None,
            cancel: None,
            budget: None,
            max_iterations: None,
            clock: None,
            entropy: None,
        }
    }

    /// Labels the run.
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.insert(key.into(), value.into());
        self
    }

    /// Keeps something with the run.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// Ends the run when `token` is cancelled, with the best text so far.
    pub fn cancel_on(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Spends at most this, instead of what the chain says.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Allows so many improvements, instead of what the chain says.
    pub fn max_iterations(mut self, iterations: u32) -> Self {
        self.max_iterations = Some(iterations);
        self
    }

    /// Takes time from this clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Fixes the run's own randomness: ids and jitter. The model's is the chain's `seed`.
    pub fn entropy(mut self, seed: u64) -> Self {
        self.entropy = Some(seed);
        self
    }

    /// Follows the run event by event. The run goes on while the stream is read and ends when it
    /// is dropped.
    #[must_use = "a stream does nothing until it is read"]
    pub fn stream(self) -> RunStream {
        RunStream::new(self)
    }

    /// Runs from code that is not async.
    ///
    /// # Errors
    /// As a run; and when called from async code, which would block.
    pub fn blocking(self) -> Result<Outcome> {
        if tokio::runtime::Handle::try_current().is_ok() {
            return Err(Error::invalid_input("chain", "run_blocking was called from async code")
                .suggest("use run(prompt).await there"));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| {
            Error::new(sifaka_core::ErrorKind::Internal, "chain", "run", error.to_string())
        })?;
        runtime.block_on(self.into_future())
    }
}

impl IntoFuture for Run {
    type Output = Result<Outcome>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(runner::execute(self, None))
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("chain", &self.chain)
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}
