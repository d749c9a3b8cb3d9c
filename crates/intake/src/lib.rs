//! Submissions and opt-outs over HTTP: the one door of the census at which strangers speak up by themselves.
//!
//! In: requests of anybody, as a web server in front passes them on. Out: what a host's own people want, proven, handed to the daemon over a wire
//! that can say nothing else ([`wire`]). Refused, in this order and before anything costs more than a look: too much from one client, what is no
//! request, a token that is not good for what is wanted; then what neither DNS nor the host's own file bears out. It holds no database and no key,
//! and needs no network: it asks the gateway for texts over one socket and the daemon over another. Who asked is neither logged nor kept (invariant
//! I10).
#![cfg_attr(
    not(test),
    warn(
        clippy::as_conversions,
        clippy::arithmetic_side_effects,
        clippy::wildcard_enum_match_arm
    )
)]

pub mod settings;

pub mod serve;

mod routes;

pub mod clients;
pub mod one_client;
mod token_header;

mod daemon;

pub mod proof;
pub mod texts;

pub mod problem;
pub mod wire;

pub use routes::Now;
pub use serve::{IntakeError, serve};
pub use settings::{ClientFrom, Settings};
