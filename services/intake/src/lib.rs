//! Submissions and opt-outs over HTTP: the only part of the census that accepts requests from
//! strangers.
//!
//! It accepts HTTP requests that a web server in front passes on. It hands an owner's proved wish
//! to the daemon over a wire that can express nothing else ([`wire`]). It rejects, in this order
//! and before any costly step: too many requests from one client, malformed requests, tokens that
//! are not valid for the purpose; then wishes that neither DNS nor the host's own file confirms. It
//! has no database and no key, and needs no network: it gets texts from the gateway over one socket
//! and reaches the daemon over another. Clients are neither logged nor stored (invariant I10).
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
pub mod secret;
pub mod texts;

pub mod problem;
pub mod wire;

pub use routes::Now;
pub use serve::serve;
pub use settings::Settings;
