//! The site from outside: its scripts in an engine that is not ours.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests fail where they stand, and say what was skipped"
)]

mod push;
mod scripts;
