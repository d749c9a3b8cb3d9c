//! The service at work: connections of clients, requests of applications and of other nodes.

mod census;
mod clients;
mod connection;
mod delivery;
mod listen;
mod meters;
mod nodes;
mod routes;
mod service;
mod storage_thread;
mod sweep;

pub use census::{BROADCAST, Census, LOOK_EVERY, tell};
pub use listen::{converse, listen};
#[cfg(feature = "fuzzing")]
pub use routes::fuzzing;
pub use routes::{internal, public};
pub use service::{Now, Service, Settings};
pub use sweep::sweep;
