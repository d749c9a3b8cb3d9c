//! The intake's settings.

use std::path::PathBuf;

use token::{LogKey, TestDomain};

/// All that can be set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where requests come in.
    pub socket: PathBuf,
    /// By what clients are told apart.
    pub client: ClientFrom,
    /// The gateway's socket for texts.
    pub text_socket: PathBuf,
    /// The daemon's socket for the intake.
    pub census_socket: PathBuf,
    /// `POST`s of one client in an hour, 1 to [`crate::clients::LIMIT_MAX`].
    pub posts_per_hour: usize,
    /// The key that Sigsum's tokens sign in a log's place; without one they are not taken.
    pub log_key: Option<LogKey>,
    /// Whether tokens of `test.sigsum.org`, whose secret key is public, are taken.
    pub test_domain: TestDomain,
}

/// By what clients are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientFrom {
    /// Nothing: the other end of each connection is the web server, so all are one client.
    Nothing,
    /// A header that the web server sets, replacing what the client sent. To be set only where nobody else reaches the intake.
    Header(axum::http::HeaderName),
}
