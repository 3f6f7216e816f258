//! What is kept for as long as the program runs.

mod journal;
mod record;
mod search;
mod shelf;
mod sort;
mod store;

pub use journal::MemoryJournal;
pub use store::{MemoryStore, StoreStatistics};
