//! The published set: every file made of the rows, compressed companions, and the index.

pub mod guard;
pub mod rows;

mod by_software;
mod draft;
pub(crate) mod formats;
mod index;
mod packing;
mod schema;
mod software;

pub use draft::{Draft, Sealed, write};
pub use formats::csv::push_csv_line;
pub use guard::{Force, HeldBack, guard};
pub use index::SCHEMA_VERSION;
pub use index::media::CSV as CSV_MEDIA;
pub use rows::{
    PublishedFile, PublishedSet, RowError, Rows, published_set, standing_rows, standing_rows_read,
};
pub use software::{SOFTWARE_MAX, SoftwareTotals, VERSIONS_MAX, standing_software};
