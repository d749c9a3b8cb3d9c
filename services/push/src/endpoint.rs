//! The applications' side: endpoints, permission to send, bounds of messages, and answers.
//!
//! Takes bytes and headers, returns a message or a refusal, and does no I/O. The order of the
//! checks is that of autopush-rs, since applications react to the first refusal.

pub mod address;
pub mod fernet;
pub mod message;
pub mod refusal;
pub mod vapid;

mod pairs;

pub use address::{Address, MessageId, Version};
pub use refusal::Refusal;
