//! The rules of the census as pure functions: how a verdict changes a host's record, and when the
//! host is due again.
//!
//! The caller passes the record, the verdict, the time and random numbers. Faults are on our side
//! and never reach this crate (invariant I5).
#![warn(
    clippy::as_conversions,
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm
)]
#![cfg_attr(
    test,
    allow(
        clippy::arithmetic_side_effects,
        reason = "tests reckon with numbers of their own"
    )
)]

pub mod backoff;
pub mod class;
pub mod group;
pub mod listing;
pub mod schedule;
pub mod source;
pub mod state;
pub mod time;
pub mod transition;
pub mod version;
pub mod why;
