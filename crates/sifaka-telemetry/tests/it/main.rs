//! Timings folded from events.

mod bounded;
mod fold;
mod merge;
mod support;
