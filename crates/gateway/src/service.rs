//! The gateway's service: the sockets it listens on, and what is done for each request.

pub(crate) mod server;

pub(crate) mod state;

pub(crate) mod open;

pub(crate) mod text;

mod wildcard;

pub(crate) mod error;

mod log_once;
