//! Tests of the checks as users meet them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod by_name;
mod configured;
mod content;
mod length;
mod pattern;
mod properties;

use sifaka_core::{Context, Draft, Thought, ValidationResult, Validator};

/// What a check says of a text.
async fn say(check: &impl Validator, text: &str) -> ValidationResult {
    let ctx = Context::new();
    let thought = Thought::new(&ctx, "Write.");
    check.validate(&ctx, &Draft::new(text, &thought)).await.unwrap()
}

/// Whether a check, watching, stops a text that comes in these pieces.
fn stops(check: &impl Validator, pieces: &[&str]) -> Option<String> {
    let mut watch = check.watch()?;
    pieces.iter().find_map(|piece| watch.push(piece))
}
