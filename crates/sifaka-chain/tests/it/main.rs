//! The chain, from outside: what a user sees of it.

mod budgets;
mod building;
mod critics;
mod faults;
mod flow;
mod kit;
mod lessons;
mod properties;
mod redaction;
mod resume;
mod retrieval;
mod streaming;
