//! Why the gateway can't start.

use std::io;
use std::path::PathBuf;

use local_socket::BindError;
use thiserror::Error;

use crate::net::resolve::ResolverError;
use crate::settings::SettingsError;

/// Why the gateway can't start or continue.
#[derive(Debug, Error)]
pub enum GatewayError {
    #[error("a setting can't be used")]
    Settings(#[from] SettingsError),
    #[error("no names can be resolved")]
    Resolver(#[from] ResolverError),
    #[error(
        "the egress directory {path} can't be used: it must exist and belong to the gateway's user"
    )]
    EgressRoot { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Listen(#[from] BindError),
}
