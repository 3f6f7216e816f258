//! stdout is data, stderr is talk.

mod bytes;
mod out;
mod progress;
mod style;
mod table;
mod talk;

pub(crate) use bytes::{Bytes, megabytes};
pub(crate) use out::Out;
pub(crate) use progress::Progress;
pub(crate) use style::clean;
pub(crate) use table::Table;
pub(crate) use talk::Talk;
