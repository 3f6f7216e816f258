//! Behaviour suites for every trait, a fault-injecting kit and generators of random Thoughts.

pub mod clock;
pub mod journal;
pub mod kill;
pub mod kinds;
pub mod runs;
pub mod servers;
pub mod store;
pub mod thoughts;
pub mod values;
