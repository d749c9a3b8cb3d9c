//! Rules of the repository, checked by reading its files: which crate may import which, how long a
//! file may be, what may appear where. Repeated statements must agree.
//!
//! A failed test names each file and rule. Needs neither engine nor network.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "all of it is test code: a panic is how it says what it found"
)]

mod clock;
mod cycles;
mod deployment;
mod documents;
mod folders;
mod images;
mod imports;
mod metrics;
mod sockets;
mod text;
mod tree;
