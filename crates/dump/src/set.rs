//! The published set: every file that is made of the rows, their compressed companions, and the index.

pub mod guard;
pub mod publication;
pub mod rows;

mod draft;
pub(crate) mod formats;
mod index;
mod packing;
mod schema;
mod software;

pub use guard::{Force, HeldBack, guard};
pub use index::SCHEMA_VERSION;
pub use publication::{
    CHANGES_FOLDER, DATA_FOLDER, Draft, INDEX_FILE, NODES_FILE, SCHEMA_FOLDER, Sealed, clear_stale,
    write,
};
pub use rows::{RowError, Rows, standing_rows, standing_rows_read};
pub use software::{SOFTWARE_MAX, SoftwareTotals, VERSIONS_MAX, standing_software};
