//! Answers requests on the control socket: opens hosts, and looks up texts and wildcards.

pub mod server;

mod log_once;
pub(crate) mod open;
pub mod text;
mod wildcard;
