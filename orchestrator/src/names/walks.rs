//! Walks through hosts' public conversations, for names that no peers list has. Off unless the
//! operator wants them (setting `walks_per_hour`).

pub mod keep;
pub mod replay;
pub mod visit;
