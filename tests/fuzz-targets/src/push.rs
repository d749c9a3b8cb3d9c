//! Input of the push service: clients' frames, applications' messages, bodies from other nodes and
//! subscribers, and the published changes.

pub mod push_bodies;
pub mod push_client;
pub mod push_news;
pub mod push_sender;
