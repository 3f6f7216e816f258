//! Flags of the commands that read and tend the record.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::chain::tag;

/// `sifaka list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The most runs to list; 0 lists all
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20,
        value_parser = whole,
        allow_negative_numbers = true
    )]
    pub(crate) limit: usize,
    /// Only runs with this label
    #[arg(long, value_name = "KEY=VALUE", value_parser = tag)]
    pub(crate) tag: Option<(String, String)>,
    /// Only runs with this in the prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) contains: Option<String>,
    /// Only runs whose text passed
    #[arg(long, conflicts_with = "failed")]
    pub(crate) passed: bool,
    /// Only runs whose text did not pass
    #[arg(long)]
    pub(crate) failed: bool,
    /// Only runs in this state
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<State>,
    /// Only runs of this chain, by its name or its whole id
    #[arg(long, value_name = "NAME")]
    pub(crate) chain: Option<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    Open,
    Finished,
    Failed,
    Erased,
}

/// `sifaka show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The run, or one of its Thoughts
    pub(crate) id: String,
    /// With the exact prompts
    #[arg(long)]
    pub(crate) prompts: bool,
    /// With what changed from each iteration to the next, instead of the whole texts
    #[arg(long)]
    pub(crate) diff: bool,
    /// With where the time went
    #[arg(long)]
    pub(crate) timings: bool,
    /// The Thought with its whole history, as JSON
    #[arg(long, conflicts_with_all = ["events", "prompts", "diff", "timings"])]
    pub(crate) json: bool,
    /// Every event as a line of JSON
    #[arg(long, conflicts_with_all = ["prompts", "diff", "timings"])]
    pub(crate) events: bool,
}

/// `sifaka diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The run, or the older of two
    pub(crate) id: String,
    /// The newer run; each run's best text is compared
    #[arg(conflicts_with_all = ["from", "to"])]
    pub(crate) other: Option<String>,
    /// The older iteration [default: the one before the newer]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) from: Option<u32>,
    /// The newer iteration [default: the newest]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) to: Option<u32>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `sifaka verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Only this run
    pub(crate) id: Option<String>,
    /// A head that was printed earlier and must still be part of the record
    #[arg(long, value_name = "HASH")]
    pub(crate) head: Option<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `sifaka export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Runs or Thoughts
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub(crate) ids: Vec<String>,
    /// Every run there is
    #[arg(long)]
    pub(crate) all: bool,
    /// json is readable, several Thoughts are a list; jsonl has a Thought on each line
    /// [default: json for one, jsonl for several]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// How Thoughts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Json,
    Jsonl,
}

/// `sifaka import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Files of Thoughts, ours or the Python ancestor's; `-` is stdin
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `sifaka perf`.
#[derive(Debug, Args)]
pub(crate) struct PerfArgs {
    /// The run [default: the newest]
    #[arg(conflicts_with = "all")]
    pub(crate) id: Option<String>,
    /// All runs together
    #[arg(long)]
    pub(crate) all: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `sifaka prune`.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Erase runs that ended longer ago than this: 30d, 12h, 2w; with --keep, only those of them
    /// that are not among the newest
    #[arg(
        long,
        value_name = "AGE",
        value_parser = age,
        required_unless_present = "keep",
        allow_hyphen_values = true
    )]
    pub(crate) older_than: Option<Duration>,
    /// Erase all but so many of the newest
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    pub(crate) keep: Option<usize>,
    /// Only say which
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

/// `sifaka erase`.
#[derive(Debug, Args)]
pub(crate) struct EraseArgs {
    /// The run, or one of its Thoughts
    pub(crate) id: String,
    /// Why, for the tombstone
    #[arg(long, value_name = "TEXT", default_value = "erased on request")]
    pub(crate) reason: String,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

/// A whole number.
fn whole(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "a whole number is needed, such as 20".to_owned())
}

/// An age: a whole number and a unit.
fn age(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return Err("an age is a number and one of s, m, h, d and w, such as 30d".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| format!("{number:?} is not a number"))?;
    number
        .checked_mul(seconds)
        .map(Duration::from_secs)
        .ok_or_else(|| "that is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read() {
        assert_eq!(age("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(age("2w"), Ok(Duration::from_secs(14 * 86_400)));
        for bad in ["", "d", "30", "30 d", "1.5h", "-3d", "99999999999999999999d", "3x"] {
            assert!(age(bad).is_err(), "{bad:?}");
        }
    }
}
