//! Critics and their prompt templates.
