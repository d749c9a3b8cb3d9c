//! The tree's own rules, read off the tree: who may import whom, how long a file may be, what may stand where, and that what is said twice is
//! said the same; and that the scripts find whichever engine and compose tool there is.
//!
//! In: the repository's files as they are. Out: a failed test that names each file and rule. Needs neither engine nor network.

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
mod scripts;
mod text;
mod tree;
