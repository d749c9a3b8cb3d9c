//! Walks through hosts' public conversations, for names that no peers list has.

pub mod replay;
