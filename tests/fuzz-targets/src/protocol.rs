//! What the orchestrator and a checker read from each other.

pub mod delivery;
pub mod event;
pub mod lines;
pub mod order;
