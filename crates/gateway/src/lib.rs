//! The only way out for a check (design §1): paces, resolves, filters, dials, and hands out one egress socket a check.
#![warn(
    clippy::as_conversions,
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm
)]

pub mod control;
