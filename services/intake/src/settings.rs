//! The intake's settings.

use std::path::PathBuf;

use token::{LogKey, TestDomain};

#[derive(Debug, Clone)]
pub struct Settings {
    pub socket: PathBuf,
    pub text_socket: PathBuf,
    pub census_socket: PathBuf,
    /// `POST`s of one client in an hour, 1 to [`crate::clients::LIMIT_MAX`].
    pub posts_per_hour: usize,
    /// The key that Sigsum's tokens sign in place of a log's. `None` rejects such tokens.
    pub log_key: Option<LogKey>,
    /// Whether tokens of `test.sigsum.org`, whose secret key is public, are accepted.
    pub test_domain: TestDomain,
}
