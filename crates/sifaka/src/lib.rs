#![doc = include_str!("../../../README.md")]
//!
//! # This crate
//!
//! The facade: everything an application needs under one name. [`prelude`] has what most programs
//! import, [`config`] reads `sifaka.toml`, and [`registry()`], [`model()`], [`validator()`],
//! [`critic()`] and [`retriever()`] find components by name. The parts live in crates of their own,
//! which are re-exported here as modules.

pub mod config;
mod names;
pub mod prelude;

pub use names::{critic, model, register_journal, registry, retriever, validator};

pub use sifaka_chain::{
    Chain, ChainBuilder, CriticsWhen, Guide, Outcome, Plan, Redaction, ResumeFrom, Run, RunStream,
    Stop, redact_with,
};
pub use sifaka_core::{
    BlobRef, Blobs, Body, Budget, Caller, CancellationToken, Candidate, Clock, Constraint, Context,
    ContextBuilder, Cost, Critic, CriticFeedback, Document, Draft, Embedder, Error, ErrorKind,
    Event, EventKind, Failure, Filter, Hash, Id, Journal, Ledger, Model, Observer, OnUnknown,
    Origin, Policy, Position, Problem, Registry, Result, Retriever, Review, Score, Severity, Spec,
    Store, Thought, Tool, Usage, ValidationResult, Validator, Verdict, check, critic_fn, model_fn,
    retriever_fn, tool_fn,
};
// Modules beside the functions of the same names: the two live in different namespaces.
pub use sifaka_core::{
    body, budget, clock, constraint, critic, event, journal, model, names as near, policy, prompt,
    registry, retriever, spec, store as records, text, thought, tool, validator,
};
pub use sifaka_critics::ScriptedCritic;
pub use sifaka_models::{ReplayModel, ScriptedModel};
pub use sifaka_resilience::Resilience;
pub use sifaka_retrieval::MockRetriever;
pub use sifaka_store::{MemoryJournal, MemoryStore, SqliteJournal, SqliteOptions};
pub use sifaka_validators::{Content, Length, Pattern, ValidatorExt};

pub use sifaka_critics as critics;
#[cfg(feature = "local")]
pub use sifaka_local as local;
pub use sifaka_models as models;
pub use sifaka_resilience as resilience;
pub use sifaka_retrieval as retrieval;
pub use sifaka_store as store;
pub use sifaka_telemetry as telemetry;
pub use sifaka_validators as validators;
