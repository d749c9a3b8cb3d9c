//! The moderators' console: pages behind a login, over HTTP on a socket that only the web server in
//! front shares.
//!
//! Requests become requests of the daemon's [`wire`], and its answers become pages. The console
//! keeps accounts and sessions in a file of its own, has no network and no access to the census's
//! database, and is off unless the operator sets it up. Without JavaScript.
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
pub use serve::{ConsoleError, serve};
pub use settings::{LogAddresses, Settings};
