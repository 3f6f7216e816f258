//! What benchmarks share: the loop they measure, and the machine's own speeds beside it.

mod machine;
mod workload;

pub use machine::Machine;
pub use workload::{Looping, TEXTS, looping_chain, sample_thought};
