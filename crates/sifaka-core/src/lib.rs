//! Thoughts, events, and the contracts that every part of Sifaka keeps.
//!
//! This crate does nothing by itself: no network, no disk but [`Thought::save`] and
//! [`Thought::load`], no runtime. It says what the parts are and how they fit:
//!
//! - a [`Thought`] is a prompt, the text that answers it and how that came about;
//! - an [`Event`] is something that happened in a run, and a [`Fold`](event::Fold) makes Thoughts
//!   of events, live, from a journal and on resume alike;
//! - [`Model`], [`Validator`], [`Critic`], [`Retriever`], [`Embedder`], [`Store`],
//!   [`Journal`], [`Policy`] and [`Tool`] are the traits, each with its contract;
//! - a [`Context`] goes with every call: cancellation, deadline, budget, clock and randomness;
//! - [`prompt`] is the one place where prompts are put together;
//! - a [`Registry`] finds components by name.
//!
//! Applications use the `sifaka` crate, which re-exports all of this.

pub mod body;
pub mod budget;
mod candidate;
pub mod clock;
pub mod constraint;
mod context;
pub mod critic;
mod document;
mod embedder;
mod error;
pub mod event;
mod extra;
mod failure;
mod feedback;
mod filter;
pub mod folders;
mod id;
pub mod journal;
pub mod model;
pub mod names;
pub mod policy;
pub mod prompt;
pub mod registry;
pub mod retriever;
pub mod spec;
pub mod store;
pub mod text;
pub mod thought;
pub mod tool;
mod usage;
mod validation;
pub mod validator;

pub use body::{BlobRef, Blobs, Body, Hash};
pub use budget::{Budget, Ledger};
pub use candidate::{Candidate, Origin};
pub use clock::Clock;
pub use constraint::Constraint;
pub use context::{Caller, CancellationToken, Context, ContextBuilder, Observer};
pub use critic::{Critic, Review, critic_fn};
pub use document::{Document, Position};
pub use embedder::Embedder;
pub use error::{Error, ErrorKind, Problem, Result};
pub use event::{Event, EventKind};
pub use extra::Extra;
pub use failure::Failure;
pub use feedback::CriticFeedback;
pub use filter::Filter;
pub use id::{Id, MAX_ID_BYTES};
pub use journal::Journal;
pub use model::{Model, model_fn};
pub use policy::Policy;
pub use registry::Registry;
pub use retriever::{Retriever, retriever_fn};
pub use spec::Spec;
pub use store::Store;
pub use thought::Thought;
pub use tool::{Tool, tool_fn};
pub use usage::{Cost, Usage};
pub use validation::{OnUnknown, Score, Severity, ValidationResult, Verdict};
pub use validator::{Draft, Validator, check};
