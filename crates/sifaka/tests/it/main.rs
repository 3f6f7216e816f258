//! The facade as an application sees it.

mod effects;
mod names;
