//! Tests of the models as users meet them.

mod by_name;
mod file;
mod replay;
mod scripted;
mod streaming;
