//! Models: scripted and replayed.
