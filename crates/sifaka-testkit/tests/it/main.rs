//! Integration tests of the kit, and of the workspace as a whole.
#![expect(clippy::unwrap_used, reason = "a helper that panics fails its test")]

mod arrows;
mod servers;
