//! The layers at work, on a paused clock.
#![expect(clippy::unwrap_used, reason = "a helper that panics fails its test")]

mod breaker;
mod fallback;
mod layers;
mod models;
mod options;
mod property;
mod retry;
mod support;
