//! Shared by several benchmarks: measurements, a stage with the lab and the roles, and a census
//! created at once.

pub mod cost;
pub mod measure;
pub mod median;
pub mod memory;
pub mod processes;

pub mod direct;
pub mod lab;
pub mod role;
pub mod stage;

pub mod making;
