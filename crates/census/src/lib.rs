//! The rules of the census, without I/O, clock or chance: what a verdict does to a host's record, and when the host is due again.
//!
//! In: a record, a verdict, the time, a random number. Out: a change. Refused: faults; they are
//! ours and never come here (invariant I5).
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
pub mod why;
