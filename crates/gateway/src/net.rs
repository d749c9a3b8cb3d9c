//! The network functions of an egress: addresses, routes, pacing, DNS, dialling, and the first
//! bytes of TLS.

pub mod address;
pub mod client_hello;
pub mod dial;
pub mod family;
pub mod ledger;
pub mod names_file;
pub mod pace;
pub mod resolve;
