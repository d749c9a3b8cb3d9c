//! The side of applications: endpoints, who may send there, what a message may say, and what is
//! answered.
//!
//! Pure: bytes and headers in, a message or a refusal out. The order of the checks is that of
//! autopush-rs, since applications go by the first refusal that they get.

pub mod address;
pub mod fernet;
pub mod message;
pub mod refusal;
pub mod vapid;

mod pairs;

pub use address::{Address, MessageId, Version};
pub use refusal::Refusal;
