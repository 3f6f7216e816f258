//! The real program: exit code, stdout and stderr, as a user sees them.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a helper that panics fails its test")]

mod errors;
mod files;
mod flags;
mod harness;
mod kill;
mod newcomer;
mod record;
mod rough;
mod setup;
mod signals;
mod tend;
mod weights;
