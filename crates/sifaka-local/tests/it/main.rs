//! Behaviour of the embedded model.
