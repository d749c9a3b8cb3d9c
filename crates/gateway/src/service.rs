//! The gateway's service: its sockets, and the handling of each request.

pub(crate) mod server;

pub(crate) mod open;

pub(crate) mod text;

pub(crate) mod error;

pub(crate) mod log_once;
