//! Events become timings, bottlenecks and exports.
