//! Crowds of hosts in simulated time, with the product's scheduler and the gateway's paces: what
//! many colluding hosts can do to others, to an address, and to the census.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "all of it is test code: a panic is how it says what it found"
)]

mod controllers;
mod crowd;
mod league;
mod machine;
mod paces;
