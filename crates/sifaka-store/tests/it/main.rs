//! The journals and the store, from outside.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod durability;
mod erasure;
mod files;
mod fixture;
mod hostile;
mod leases;
mod load;
mod memory;
mod sqlite;
mod syncs;
mod tamper;
mod watch;
