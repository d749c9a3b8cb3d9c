//! What the programs of the benchmarks share: the file in which they leave the points of their plots.

pub mod data;
