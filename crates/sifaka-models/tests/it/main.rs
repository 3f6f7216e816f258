//! Tests of the models as users meet them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod by_name;
mod file;
mod replay;
mod scripted;
mod streaming;
