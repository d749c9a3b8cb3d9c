//! Alone holds the engine's socket (design §1, §4): runs each check in a container of its own and passes its bytes on.
#![warn(
    clippy::as_conversions,
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm
)]

pub mod wire;
