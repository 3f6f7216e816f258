//! A critic that says what its script says.

mod file;
mod options;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sifaka_core::{Context, Critic, CriticFeedback, Error, ErrorKind, Result, Review};
use sifaka_models::script::{Exhausted, Fault, Sequence};

pub(crate) use options::from_spec;

/// A critic that says what its script says: feedback in sequence, the last one again and again,
/// with delays and errors where the script asks for them.
///
/// A script in a file, here TOML; JSON and JSON lines have the same fields:
///
/// ```toml
/// [[feedback]]
/// issues = ["too curt"]
/// suggestions = ["greet the reader"]
/// confidence = 0.8
///
/// [[feedback]]
/// error = "timeout"
/// delay = 0.5
/// times = 2
///
/// [[feedback]]
/// feedback = "Better."
/// proposed_text = "Hello, reader!"
/// ```
#[derive(Debug)]
pub struct ScriptedCritic {
    name: Arc<str>,
    script: Sequence<Advice>,
    delay: Duration,
    count: AtomicU64,
}

/// One thing a scripted critic says: feedback, or an error.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advice {
    feedback: CriticFeedback,
    fault: Option<Fault>,
    delay: Option<Duration>,
    times: Option<u64>,
}

impl Advice {
    /// Fails.
    pub fn error(fault: impl Into<Fault>) -> Self {
        Self { fault: Some(fault.into()), ..Self::default() }
    }

    /// Comes after a while, in place of the critic's own delay.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// Is said so many times before the next one's turn; 1 if not set.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }
}

impl From<CriticFeedback> for Advice {
    fn from(feedback: CriticFeedback) -> Self {
        Self { feedback, ..Self::default() }
    }
}

impl From<Fault> for Advice {
    fn from(fault: Fault) -> Self {
        Self::error(fault)
    }
}

impl From<ErrorKind> for Advice {
    fn from(kind: ErrorKind) -> Self {
        Self::error(kind)
    }
}

impl ScriptedCritic {
    /// Says these one after the other, and the last one again and again. Feedback goes out under
    /// the critic's own name.
    pub fn new<A: Into<Advice>>(script: impl IntoIterator<Item = A>) -> Self {
        let script = script.into_iter().map(|advice| {
            let advice: Advice = advice.into();
            let times = advice.times.unwrap_or(1);
            (advice, times)
        });
        Self {
            name: Arc::from("scripted"),
            script: Sequence::new(script),
            delay: Duration::ZERO,
            count: AtomicU64::new(0),
        }
    }

    /// Always finds this wrong.
    pub fn issue(issue: impl Into<String>) -> Self {
        Self::new([CriticFeedback::default().with_issue(issue)])
    }

    /// Says what the script in a `.toml`, `.json` or `.jsonl` file says.
    ///
    /// Blocks; meant for building a chain.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] with the place of everything that is wrong.
    pub fn from_file(path: &Path) -> Result<Self> {
        file::read(path)
    }

    /// Sets its name; `scripted` if not set.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Waits this long before everything that has no delay of its own.
    #[must_use]
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets what happens at the script's end; the last one is repeated if not set.
    #[must_use]
    pub fn when_exhausted(mut self, exhausted: Exhausted) -> Self {
        self.script.when_exhausted(exhausted);
        self
    }

    /// How often it was asked.
    #[must_use]
    pub fn call_count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Critic for ScriptedCritic {
    fn name(&self) -> &str {
        &self.name
    }

    async fn critique(&self, ctx: &Context, _review: &Review<'_>) -> Result<CriticFeedback> {
        ctx.check()?;
        let call = self.count.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let Some(advice) = self.script.take() else {
            let message = format!("the script has nothing to say to call {call}");
            return Err(Error::new(ErrorKind::NotFound, &*self.name, "critique", message)
                .suggest("add feedback to the script, or let the last one be repeated"));
        };
        let delay = advice.delay.unwrap_or(self.delay);
        if !delay.is_zero() {
            ctx.sleep(delay).await?;
        }
        match &advice.fault {
            Some(fault) => Err(fault.error(&self.name, "critique")),
            None => Ok(CriticFeedback {
                critic_name: Arc::clone(&self.name),
                ..advice.feedback.clone()
            }),
        }
    }
}
