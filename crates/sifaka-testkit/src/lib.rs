//! Behaviour suites for every trait, a fault-injecting kit and generators of random Thoughts.
