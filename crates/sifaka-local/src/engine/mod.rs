//! One loaded model, worked by a thread of its own, shared by everyone who asks.
//!
//! Whoever writes is a task on that thread: a plain future that pushes tokens to a [`Sequence`] and
//! awaits the scores of what may come next. When every task waits, what they wait for is computed
//! together, in one pass over the weights; so sequences join and leave between tokens, and nobody
//! has to know of anybody else.

mod batch;
mod sequence;
mod worker;

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::Either;
use sifaka_core::{Error, ErrorKind, Result};
use tokio::sync::{Semaphore, oneshot};

pub use sequence::{Mark, Sequence};
pub(crate) use sequence::{log_probability, log_sum};
use worker::{Desk, Worker};

use crate::gguf::Gguf;
use crate::kernels::Isa;
use crate::llama::{Llama, Shape};
use crate::tokenizer::Tokenizer;

/// How a model is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Options {
    /// Threads; all processors if not given.
    pub threads: Option<usize>,
    /// How many tokens prompt and text may have together; what the model was trained for if not
    /// given, which is also the most.
    pub context: Option<usize>,
    /// How many tasks are worked on at once; more wait their turn.
    pub tasks: usize,
    /// How many bytes of keys and values are kept of what was read before, for prompts that begin
    /// the same.
    pub cache_bytes: usize,
    /// Which instructions to use; the best there are if not given.
    pub isa: Option<Isa>,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: None, context: None, tasks: 16, cache_bytes: 96 << 20, isa: None }
    }
}

impl Options {
    fn isa(&self) -> Result<Isa> {
        let available = Isa::available();
        match self.isa {
            Some(isa) if !available.contains(&isa) => {
                let known: Vec<&str> = available.iter().map(|isa| isa.name()).collect();
                Err(Error::configuration(
                    "local",
                    format!("this processor has no {} instructions", isa.name()),
                )
                .suggest(format!("it has: {}", known.join(", "))))
            }
            Some(isa) => Ok(isa),
            None => Ok(Isa::detect()),
        }
    }

    /// How many tokens there is room for, with a model that was trained for so many.
    pub(crate) fn context(&self, trained: usize) -> Result<usize> {
        match self.context {
            Some(context) if context > trained || context < 2 => Err(Error::configuration(
                "local",
                format!("a context of {context} tokens, where the model was trained for {trained}"),
            )
            .suggest(format!("give 2 to {trained}"))),
            context => Ok(context.unwrap_or(trained)),
        }
    }
}

/// A model that is loaded and waits for work. Cloning it shares it.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    desk: Arc<Desk>,
    tokenizer: Arc<Tokenizer>,
    context: usize,
    weights: usize,
    isa: Isa,
    places: Arc<Semaphore>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.desk.close();
    }
}

impl Engine {
    /// Loads a GGUF file. This reads the whole file and blocks while it does: call it off the async
    /// threads.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or holds a model that is not supported; the error
    /// says what is.
    pub fn load(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let gguf = Gguf::open(path)?;
        let tokenizer = Arc::new(Tokenizer::from_gguf(&gguf)?);
        Self::from_gguf(&gguf, tokenizer, options)
    }

    /// The same, from a file that is open and its tokenizer.
    pub(crate) fn from_gguf(
        gguf: &Gguf,
        tokenizer: Arc<Tokenizer>,
        options: Options,
    ) -> Result<Self> {
        let isa = options.isa()?;
        let threads = options.threads.unwrap_or_else(|| {
            std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
        });
        let model = Llama::read(gguf, isa, threads)?;
        if tokenizer.len() > model.shape.vocabulary {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "local",
                "load",
                format!(
                    "{} names {} tokens and has weights for {}",
                    gguf.path().display(),
                    tokenizer.len(),
                    model.shape.vocabulary
                ),
            )
            .suggest("take another file: this one does not fit together"));
        }
        let context = options.context(model.shape.context)?;
        let weights = model.bytes();
        let desk = Arc::new(Desk::new(context, page_limit(&model.shape, options.cache_bytes)));
        Worker::start(&desk, model, threads)?;
        let places = Arc::new(Semaphore::new(options.tasks.max(1)));
        Ok(Self { inner: Arc::new(Inner { desk, tokenizer, context, weights, isa, places }) })
    }

    /// The model's tokenizer.
    #[must_use]
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.inner.tokenizer
    }

    /// How many tokens a sequence may have.
    #[must_use]
    pub fn context(&self) -> usize {
        self.inner.context
    }

    /// Bytes of weights in memory.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        self.inner.weights
    }

    /// The instructions in use.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.inner.isa
    }

    /// What it has done so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.inner.desk.statistics()
    }

    /// Has `task` work with an empty sequence on the model's thread, and gives what it gives. The
    /// task must not block or compute for long: everyone else's tokens wait meanwhile. When the
    /// returned future is dropped, so is the task.
    ///
    /// # Errors
    /// The task's own, and [`ErrorKind::Internal`] if it panics.
    pub async fn run<T, F>(&self, task: impl FnOnce(Sequence) -> F + Send + 'static) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let gone = || Error::new(ErrorKind::Internal, "local", "run", "the model's thread is gone");
        let place = Arc::clone(&self.inner.places).acquire_owned().await.map_err(|_| gone())?;
        let sequence = Sequence::new(Arc::clone(&self.inner.desk));
        let (mut reply, answer) = oneshot::channel();
        self.inner.desk.begin(Box::pin(async move {
            let outcome = {
                let work = std::pin::pin!(task(sequence));
                let given_up = std::pin::pin!(reply.closed());
                match futures_util::future::select(work, given_up).await {
                    Either::Left((outcome, _)) => Some(outcome),
                    Either::Right(_) => None,
                }
            };
            drop(place);
            if let Some(outcome) = outcome {
                // Nobody waits for it any more; there is no one to tell.
                let _ = reply.send(outcome);
            }
        }));
        answer.await.map_err(|_| {
            Error::new(ErrorKind::Internal, "local", "run", "the task panicked")
                .suggest("this is a defect of the task, or of the model; see the log")
        })?
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("context", &self.inner.context)
            .field("weight_bytes", &self.inner.weights)
            .field("isa", &self.inner.isa)
            .finish_non_exhaustive()
    }
}

/// What an engine has done since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Passes over the weights.
    pub passes: u64,
    /// Tokens that were computed.
    pub tokens: u64,
    /// Tokens of prompts that were known from before.
    pub reused: u64,
    /// Pages of sixteen tokens that are kept for prompts to come.
    pub kept_pages: usize,
}

fn page_limit(shape: &Shape, bytes: usize) -> usize {
    bytes / (shape.bytes_per_position() * crate::kernels::TILE)
}
