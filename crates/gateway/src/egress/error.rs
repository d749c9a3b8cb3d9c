//! Why an egress could not be made.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// The egress could not be made: our own failure.
#[derive(Debug, Error)]
pub(crate) enum EgressError {
    /// A check of this id is open already.
    #[error("a check with this id is open")]
    Exists,
    /// The directory, a file in it or the socket could not be made.
    #[error("the egress directory could not be made")]
    Io(#[from] io::Error),
    /// The lab's further trust roots could not be read.
    #[error("the further trust roots {path} can't be read")]
    ExtraCa {
        /// Where they should be.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The order could not be written as JSON.
    #[error("the order could not be written")]
    Order(#[source] serde_json::Error),
}
