//! Input of the gateway: control requests, a connection's first bytes, the lab's names file.

pub mod client_hello;
pub mod gateway_control;
pub mod names_file;
