//! The only way out for a check (design §1): paces, resolves, filters, dials, and hands out one egress socket a check.
//!
//! In: control requests over a Unix socket, DNS answers, and the ClientHello of each connection that a checker makes. Out: bytes between one
//! container and one host. Refused: addresses that are not globally reachable, names other than the check's, whatever is over budget or out of
//! turn. It knows no secret and parses no HTTP.
#![cfg_attr(
    not(test),
    warn(
        clippy::as_conversions,
        clippy::arithmetic_side_effects,
        clippy::wildcard_enum_match_arm
    )
)]

pub mod client;
pub mod control;
pub mod settings;

pub mod serve;

mod egress;
#[cfg(fuzzing)]
pub mod fuzzing;
mod lines;
mod open;
mod relay;
mod trouble;

pub mod address;
pub mod dial;
pub mod family;
pub mod hello;
pub mod names_file;
pub mod pace;
pub mod resolve;
pub mod text;
mod wildcard;

pub use client::{ClientError, Egress, GatewayClient, Looked, LookedBelow, Opened};
pub use lines::LineError;
pub use serve::{GatewayError, serve};
pub use settings::{BudgetLimits, Paces, Settings, SettingsError};
pub use text::{TextName, TextNameError};
