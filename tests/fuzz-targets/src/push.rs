//! What the push service reads: frames of clients, messages of applications, bodies of other nodes
//! and subscribers, and the published changes.

pub mod push_bodies;
pub mod push_client;
pub mod push_news;
pub mod push_sender;
