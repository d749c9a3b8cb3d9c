//! The messages on a client's WebSocket: JSON objects in text frames.

pub mod client;
pub mod server;
