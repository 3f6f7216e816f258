//! The journals and the store, from outside.

mod durability;
mod erasure;
mod files;
mod fixture;
mod leases;
mod load;
mod memory;
mod sqlite;
mod syncs;
mod tamper;
mod watch;
