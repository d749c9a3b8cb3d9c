//! Tests of the site from outside: Node runs its scripts.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests fail where they stand, and say what was skipped"
)]

mod known;
mod push;
mod scripts;
