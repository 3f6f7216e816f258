//! Flags that choose a chain and run it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sifaka::config::{ChainConfig, Component, CriticsWhenConfig};

/// Which chain, and what to change about it.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Chain")]
pub(crate) struct ChainArgs {
    /// The chain of the configuration to use
    #[arg(long, value_name = "NAME")]
    pub(crate) chain: Option<String>,
    /// The model that writes: mock, mock:script.toml, replay:ID
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Add a model that stands in when the ones before it fail
    #[arg(long, value_name = "MODEL")]
    pub(crate) fallback: Vec<String>,
    /// Standing instructions for the model
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Add a check the text must pass, such as length:words=50..200
    #[arg(long, value_name = "CHECK")]
    pub(crate) check: Vec<String>,
    /// Add a critic
    #[arg(long, value_name = "CRITIC")]
    pub(crate) critic: Vec<String>,
    /// Add a retriever
    #[arg(long, value_name = "RETRIEVER")]
    pub(crate) retriever: Vec<String>,
    /// How many improvements may follow the first text [default: 3]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) max_iterations: Option<u32>,
    /// How many candidates the first iteration has [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) samples: Option<u32>,
    /// When critics are asked
    #[arg(long, value_name = "WHEN")]
    pub(crate) critics_when: Option<When>,
    /// How freely the model chooses its words; 0 takes the likeliest
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) temperature: Option<f64>,
    /// The most tokens of an answer
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) max_tokens: Option<u64>,
    /// Fix the model's randomness, where it can be
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// The most calls to models
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) budget_calls: Option<u64>,
    /// The most tokens, in and out together
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) budget_tokens: Option<u64>,
    /// The most money, in US dollars
    #[arg(long, value_name = "DOLLARS", allow_negative_numbers = true)]
    pub(crate) budget_cost: Option<f64>,
    /// The longest the run may take, in seconds
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub(crate) budget_time: Option<f64>,
}

/// When critics are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum When {
    OnFailure,
    Always,
    Never,
}

impl ChainArgs {
    /// Changes a chain of the configuration as the flags say. Checks, critics and retrievers are
    /// added to those it has; everything else takes their place.
    pub(crate) fn apply(&self, chain: &mut ChainConfig) {
        fn set<T: Clone>(place: &mut Option<T>, flag: Option<&T>) {
            if let Some(value) = flag {
                *place = Some(value.clone());
            }
        }
        fn add(list: &mut Vec<Component>, flags: &[String]) {
            list.extend(flags.iter().cloned().map(Component::Text));
        }
        set(&mut chain.model, self.model.clone().map(Component::Text).as_ref());
        set(&mut chain.system, self.system.as_ref());
        add(&mut chain.fallbacks, &self.fallback);
        add(&mut chain.checks, &self.check);
        add(&mut chain.critics, &self.critic);
        add(&mut chain.retrievers, &self.retriever);
        set(&mut chain.max_iterations, self.max_iterations.as_ref());
        set(&mut chain.samples, self.samples.as_ref());
        let when = self.critics_when.map(|when| match when {
            When::OnFailure => CriticsWhenConfig::OnFailure,
            When::Always => CriticsWhenConfig::Always,
            When::Never => CriticsWhenConfig::Never,
        });
        set(&mut chain.critics_when, when.as_ref());
        set(&mut chain.sampling.temperature, self.temperature.as_ref());
        set(&mut chain.sampling.max_tokens, self.max_tokens.as_ref());
        set(&mut chain.seed, self.seed.as_ref());
        set(&mut chain.budget.calls, self.budget_calls.as_ref());
        set(&mut chain.budget.tokens, self.budget_tokens.as_ref());
        set(&mut chain.budget.cost, self.budget_cost.as_ref());
        set(&mut chain.budget.time, self.budget_time.as_ref());
    }
}

/// How a run is told of on stdout.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Shape {
    /// Print the whole outcome as JSON instead of the text
    #[arg(long, conflicts_with = "events")]
    pub(crate) json: bool,
    /// Print every event as a line of JSON, as it happens, instead of the text
    #[arg(long)]
    pub(crate) events: bool,
}

/// `sifaka run`.
#[derive(Debug, Default, Args)]
pub(crate) struct RunArgs {
    /// What to write; `-`, or nothing when stdin is not a terminal, reads it from there
    #[arg(conflicts_with = "file")]
    pub(crate) prompt: Option<String>,
    /// Read the prompt from this file
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Label the run; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = tag)]
    pub(crate) tag: Vec<(String, String)>,
    /// Keep no record
    #[arg(long)]
    pub(crate) no_journal: bool,
    /// Only say what would be done: the first prompt, the steps, and the cost where prices are known
    #[arg(long, conflicts_with = "events")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) shape: Shape,
    #[command(flatten)]
    pub(crate) chain: ChainArgs,
}

/// `sifaka resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The run, or one of its Thoughts
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) shape: Shape,
    #[command(flatten)]
    pub(crate) chain: ChainArgs,
}

pub(super) fn tag(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a label is written KEY=VALUE".to_owned()),
    }
}
