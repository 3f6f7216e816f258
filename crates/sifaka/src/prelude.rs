//! What most programs import: `use sifaka::prelude::*;`.

pub use crate::{
    Budget, Chain, Content, Context, Cost, Critic, CriticFeedback, CriticsWhen, Document, Draft,
    Error, ErrorKind, Event, EventKind, Journal, Length, MemoryJournal, Model, Outcome, Pattern,
    Result, Retriever, ScriptedModel, SqliteJournal, SqliteOptions, Stop, Thought,
    ValidationResult, Validator, ValidatorExt, Verdict, check, critic, critic_fn, model, model_fn,
    retriever, retriever_fn, validator,
};
