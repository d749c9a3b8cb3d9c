//! Rows to published bytes, and files swapped at once (design §9).
//!
//! Step 7 of 7. In: the listed hosts, one at a time, sorted. Out: the set of files in the public folder, of which readers see each whole or not at all.
//! Refused: rows out of order, and a set that shrank too much since the last one (invariant I11), which [`guard()`] holds back between writing and
//! publishing.
//!
//! Beside it: what changed since the last dump ([`changes`], [`feed`]), and signatures ([`sign`]).

pub mod changes;
mod compress;
mod csv;
mod disk;
mod draft;
pub mod error;
pub mod feed;
mod format;
pub mod guard;
mod index;
pub mod instance;
mod ndjson;
mod nodes;
mod packing;
pub mod publication;
pub mod rows;
mod schema;
pub mod sign;
mod software;
pub mod stop;
mod swap;
mod table;
pub mod text;

pub use compress::Packing;
pub use error::DumpError;
pub use guard::{Force, HeldBack, guard};
pub use index::SCHEMA_VERSION;
pub use instance::{Instance, ListedState, Moment};
pub use publication::{
    CHANGES_FOLDER, DATA_FOLDER, Draft, INDEX_FILE, NODES_FILE, SCHEMA_FOLDER, Sealed, clear_stale,
    write,
};
pub use rows::{RowError, Rows, standing_rows, standing_rows_read};
pub use software::{SOFTWARE_MAX, SoftwareTotals, VERSIONS_MAX, standing_software};
pub use stop::Stop;
