//! Runs the checker against our own server behind a Unix socket, and checks what it prints for a
//! host's answers.
//!
//! Nothing leaves the machine: the server is a table of answers, and its certificate comes from a
//! CA made for the test.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking"
)]

mod binary;
mod cases;
mod deliveries;
mod findings;
mod hostile;
mod lists;
mod peers;
mod server;
mod walks;
