//! The moderators' console: pages behind a login, over HTTP on a socket that only the web server in
//! front shares.
//!
//! It turns HTTP requests into requests on the daemon's [`wire`], and the answers into pages. It
//! keeps accounts and sessions in its own file, has no network and no access to the census's
//! database, and is off unless the operator sets it up. It uses no JavaScript.
#![warn(clippy::as_conversions, clippy::arithmetic_side_effects)]
#![cfg_attr(
    test,
    allow(
        clippy::as_conversions,
        clippy::arithmetic_side_effects,
        reason = "tests compute with numbers of their own"
    )
)]

pub mod settings;
pub mod wire;

mod cookies;
mod form;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod login;
mod pages;
mod reply;
mod routes;
mod serve;

pub use login::{Now, OpenError};
pub use pages::CONTENT_SECURITY_POLICY;
pub use serve::{CONNECTIONS_MAX, ConsoleError, serve};
pub use settings::{LogAddresses, Settings};
