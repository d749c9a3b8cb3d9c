//! What the programs of the benchmarks share: a census made at once, and the file in which they leave the points of their plots.

pub mod data;
pub mod making;
