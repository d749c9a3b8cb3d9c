//! What all parts use: time and random numbers, metrics, the operator's files, and failures of our
//! own.

pub mod clock;
pub mod fault;
pub mod input_file;
pub mod meters;
