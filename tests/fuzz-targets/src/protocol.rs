//! The protocol between the orchestrator and a checker.

pub mod delivery;
pub mod event;
pub mod lines;
pub mod order;
