//! Errors of creating an egress.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why an egress could not be created: our own failure.
#[derive(Debug, Error)]
pub(crate) enum EgressError {
    #[error("a check with this id is open")]
    Exists,
    /// The directory, a file in it or the socket could not be created.
    #[error("the egress directory could not be made")]
    Io(#[from] io::Error),
    #[error("the further trust roots {path} can't be read")]
    ExtraCa { path: PathBuf, source: io::Error },
    #[error("the order could not be written")]
    Order(#[source] serde_json::Error),
}
