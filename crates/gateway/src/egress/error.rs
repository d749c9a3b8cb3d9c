//! Errors of creating an egress.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why an egress could not be created: our own failure.
#[derive(Debug, Error)]
pub(crate) enum EgressError {
    /// A check with this id is open already.
    #[error("a check with this id is open")]
    Exists,
    /// The directory, a file in it or the socket could not be created.
    #[error("the egress directory could not be made")]
    Io(#[from] io::Error),
    /// The lab's additional root certificates could not be read.
    #[error("the further trust roots {path} can't be read")]
    ExtraCa {
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The order could not be serialised as JSON.
    #[error("the order could not be written")]
    Order(#[source] serde_json::Error),
}
