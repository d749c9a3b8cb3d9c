//! The checker against a server of our own behind a Unix socket: what a host answers, and what is told of it.
//!
//! Nothing here leaves the machine: the server is a table of answers, its certificate comes from a CA made for the test.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking"
)]

mod binary;
mod deliveries;
mod findings;
mod hostile;
mod lists;
mod peers;
mod server;
mod walks;
