//! What the command line may say.

mod chain;
mod given;
mod record;
mod weights;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use chain::{ChainArgs, ResumeArgs, RunArgs, Shape};
pub(crate) use given::{Given, quoted};
pub(crate) use record::{
    DiffArgs, EraseArgs, ExportArgs, Format, ImportArgs, ListArgs, PerfArgs, PruneArgs, ShowArgs,
    State, VerifyArgs,
};
pub(crate) use weights::WeightsCommand;

const AFTER: &str = "\
Exit codes:
    0  passed, or done          5  a key is missing or wrong
    1  error                    6  something is unavailable
    2  usage or configuration   7  somebody else holds it
    3  the text did not pass    8  the record, or a file, is damaged
    4  not found              130  cancelled

The text goes to stdout, everything else to stderr. Runs are recorded in a journal;
`list`, `show` and the like take ids of runs or Thoughts, or unique beginnings of them.";

/// A prompt becomes a Thought: a model writes, validators check, critics advise, and it goes round
/// until the text passes or a budget ends. Every step is on record.
#[derive(Debug, Parser)]
#[command(name = "sifaka", version, after_help = AFTER, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Global {
    /// Read this configuration instead of the nearest sifaka.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Keep the record in this file instead of where the configuration says
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) journal: Option<PathBuf>,
    /// When to use colour; NO_COLOR is respected
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
    /// Say nothing but errors and warnings
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say more
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    // Documentation on these would make the whole help long-winded.
    Auto,
    Always,
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a chain on a prompt
    Run(Box<RunArgs>),
    /// Go on with a run that was left; what is on record is not done or paid for again
    Resume(Box<ResumeArgs>),
    /// List runs, newest first
    List(ListArgs),
    /// Show a run: iterations, verdicts, feedback
    Show(ShowArgs),
    /// Show what changed between two iterations, or between two runs
    Diff(DiffArgs),
    /// Check that the record is intact
    Verify(VerifyArgs),
    /// Write Thoughts with their whole history as JSON
    Export(ExportArgs),
    /// Take Thoughts from JSON or JSONL into the record
    Import(ImportArgs),
    /// Show where the time went
    Perf(PerfArgs),
    /// Erase old runs; their hashes stay, so the record still verifies
    Prune(PruneArgs),
    /// Erase one run; its hashes stay, so the record still verifies
    Erase(EraseArgs),
    /// Write a commented sifaka.toml
    Init {
        /// Write over a file that is there
        #[arg(long)]
        force: bool,
    },
    /// Say what works here and what is missing
    Doctor {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// List the prompt templates, or print one
    Prompts {
        /// The template
        name: Option<String>,
        /// As this chain of the configuration has them
        #[arg(long, value_name = "NAME")]
        chain: Option<String>,
    },
    /// Fetch, list and remove the weights of models that run here
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Weights {
        #[command(subcommand)]
        command: WeightsCommand,
    },
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the JSON Schema of sifaka.toml
    Schema,
}

#[cfg(test)]
mod tests;
