//! Rows to published bytes, and files swapped at once (design §9).
//!
//! Step 7 of 7. In: the listed hosts, one at a time, sorted. Out: the set of files in the public folder, of which readers see each whole or not at all.
//! Refused: rows out of order, and a set that shrank too much since the last one (invariant I11), which [`guard()`] holds back between writing and
//! publishing.
//!
//! Beside it: what changed since the last dump ([`changes`], [`feed`]), and signatures ([`sign`]).

pub mod cancel;
pub mod changes;
mod compress;
pub mod error;
pub mod feed;
pub mod instance;
pub mod set;
pub mod sign;
mod swap;
pub mod text;

pub use cancel::Cancel;
pub use compress::Packing;
pub use error::DumpError;
pub use instance::{Instance, ListedState, Moment};
pub use set::{
    CHANGES_FOLDER, DATA_FOLDER, Draft, Force, HeldBack, INDEX_FILE, NODES_FILE, PublishedFile,
    PublishedSet, RowError, Rows, SCHEMA_FOLDER, SCHEMA_VERSION, SOFTWARE_MAX, Sealed,
    SoftwareTotals, VERSIONS_MAX, clear_stale, guard, published_set, rows, standing_rows,
    standing_rows_read, standing_software, write,
};
