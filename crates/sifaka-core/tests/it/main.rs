//! What must always hold of Thoughts and events, and what becomes of the ancestor's files.
#![expect(clippy::unwrap_used, reason = "a helper that panics fails its test")]

mod ancestor;
mod events;
mod folding;
mod hash_chain;
mod thoughts;
