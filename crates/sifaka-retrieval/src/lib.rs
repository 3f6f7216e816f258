//! Retrievers.
