//! The only way out for a check (invariant I1): paces, resolves, filters, dials, and provides one
//! egress socket per check.
//!
//! It takes control requests over a Unix socket, DNS answers, and the ClientHello of each
//! connection that a checker opens, and relays bytes between one container and one host. It rejects
//! addresses that are not globally reachable, names other than the check's, and whatever is over
//! budget or before its turn. It has no secrets and parses no HTTP.
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

mod state;

pub mod net;

pub mod wire;

#[cfg(feature = "fuzzing")]
pub mod fuzzing;

pub use client::{ClientError, Egress, GatewayClient, Looked, Opened};
pub use net::{address, family, pace};
pub use service::error::GatewayError;
pub use service::server::{serve, serve_over};
pub use settings::{BudgetLimits, Paces, Settings, SettingsError};
pub use wire::control;
pub use wire::text_name::{TextName, TextNameError};
