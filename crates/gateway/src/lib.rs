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
pub mod settings;

mod service;

mod egress;

pub mod net;

pub mod wire;

#[cfg(feature = "fuzzing")]
pub mod fuzzing;

pub use client::{ClientError, Egress, GatewayClient, Looked, LookedBelow, Opened};
pub use net::{address, family, pace};
pub use service::error::GatewayError;
pub use service::server::{serve, serve_over};
pub use settings::{BudgetLimits, Paces, Settings, SettingsError};
pub use wire::control;
pub use wire::lines::LineError;
pub use wire::text_name::{TextName, TextNameError};
