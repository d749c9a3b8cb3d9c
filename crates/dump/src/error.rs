//! What can go wrong while a dump is written.

use publish::TreeError;
use thiserror::Error;

/// Why there is no new dump.
#[derive(Debug, Error)]
pub enum DumpError {
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A name is not greater than the one before it. That is a bug, and consumers rely on the
    /// order.
    #[error("the names for the dump came out of order at `{name}`; please report this")]
    OutOfOrder { name: String },
    #[error("the dump was given up after an earlier error; please report this")]
    GivenUp,
}
