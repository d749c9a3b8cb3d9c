//! What the programs of the benchmarks share.

pub mod shared;
