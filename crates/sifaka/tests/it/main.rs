//! The facade as an application sees it.
#![expect(clippy::unwrap_used, reason = "a helper that panics fails its test")]

mod effects;
mod names;
