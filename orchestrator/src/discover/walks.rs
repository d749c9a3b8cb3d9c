//! Walks through hosts' public conversations, which name hosts that no peers list has. Off unless
//! the operator enables it (setting `walks_per_hour`).

pub mod keep;
pub mod replay;
pub mod visit;
