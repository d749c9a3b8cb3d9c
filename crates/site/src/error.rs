//! Errors of writing the pages.

use publish::TreeError;
use thiserror::Error;

/// Why there are no new pages.
#[derive(Debug, Error)]
pub enum SiteError {
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A name is not greater than the one before it: a bug of ours. Readers of the list rely on the
    /// order.
    #[error("the rows for the site came out of order at `{name}`; please report this")]
    OutOfOrder { name: String },
}
