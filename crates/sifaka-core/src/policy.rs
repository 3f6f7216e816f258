//! What to do after an iteration that could be better.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::usage::Usage;
use crate::validation::Score;
use crate::{Context, Result, Thought};

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decision {
    /// Show the model its text and what was wrong with it.
    Repair,
    /// Ask again from the beginning, so many times.
    Fresh {
        /// How many candidates.
        samples: u32,
    },
    /// Ask again with the checks guiding the decoding, so many times.
    Constrained {
        /// How many candidates.
        samples: u32,
    },
    /// Leave it at the best so far.
    Stop {
        /// Why.
        reason: Arc<str>,
    },
}

impl Decision {
    /// How many candidates it asks for.
    #[must_use]
    pub fn samples(&self) -> u32 {
        match self {
            Self::Repair => 1,
            Self::Fresh { samples } | Self::Constrained { samples } => (*samples).max(1),
            Self::Stop { .. } => 0,
        }
    }
}

/// One iteration as a policy sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// How its text came about.
    pub decision: Decision,
    /// How good its best text was.
    pub score: Score,
    /// What it consumed.
    pub usage: Usage,
}

/// What a policy decides on.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The newest iteration, with its history.
    pub thought: &'a Thought,
    /// Every iteration so far, oldest first.
    pub attempts: &'a [Attempt],
    /// How many more iterations are allowed.
    pub left: u32,
    /// Whether the chain's model can be driven token by token.
    pub guided: bool,
    /// How often each kind of decision led to a pass in earlier runs, when a journal knows.
    pub statistics: Option<&'a Statistics>,
}

/// How often decisions worked in earlier runs of the same chain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Of repairs: tried, passed.
    pub repair: (u64, u64),
    /// Of fresh samples: tried, passed.
    pub fresh: (u64, u64),
    /// Of constrained samples: tried, passed.
    pub constrained: (u64, u64),
}

/// Decides what comes after an iteration that did not pass, or is to be improved.
///
/// **Contract.** Pure: the same progress gives the same decision, so that a resumed run goes on as
/// it would have. Stop rules and budgets are the chain's and come first.
pub trait Policy: Send + Sync {
    /// Its name in records.
    fn name(&self) -> &str;

    /// What comes next.
    fn decide(&self, ctx: &Context, progress: &Progress<'_>) -> Result<Decision>;

    /// Whether it wants to know how decisions worked out in earlier runs.
    fn wants_statistics(&self) -> bool {
        false
    }
}

impl fmt::Debug for dyn Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Policy({})", self.name())
    }
}

/// Always repairs: the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repair;

impl Policy for Repair {
    fn name(&self) -> &'static str {
        "repair"
    }

    fn decide(&self, _: &Context, _: &Progress<'_>) -> Result<Decision> {
        Ok(Decision::Repair)
    }
}

/// Always asks afresh, for so many samples each time.
#[derive(Clone, Copy, Debug)]
pub struct Fresh(
    /// How many samples.
    pub u32,
);

impl Policy for Fresh {
    fn name(&self) -> &'static str {
        "fresh"
    }

    fn decide(&self, _: &Context, _: &Progress<'_>) -> Result<Decision> {
        Ok(Decision::Fresh { samples: self.0.max(1) })
    }
}
