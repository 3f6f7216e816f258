//! Behaviour of the embedded model.

mod weights;
