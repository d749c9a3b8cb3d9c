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
    /// A setting can't be used.
    #[error("a setting can't be used")]
    Settings(#[from] SettingsError),
    /// There is no usable resolver.
    #[error("no names can be resolved")]
    Resolver(#[from] ResolverError),
    /// The egress root is missing, or belongs to another user.
    #[error(
        "the egress directory {path} can't be used: it must exist and belong to the gateway's user"
    )]
    EgressRoot {
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    #[error(transparent)]
    Listen(#[from] BindError),
}
