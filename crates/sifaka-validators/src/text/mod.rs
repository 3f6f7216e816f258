//! Counting and finding things in text. What a word or a sentence is, is said here once.

pub mod blocks;
pub mod characters;
mod fold;
mod places;
pub mod sentences;
pub mod words;

pub(crate) use fold::fold;
pub(crate) use places::{excerpt, place};
