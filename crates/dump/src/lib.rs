//! Writes rows as published files.
//!
//! Step 7 of 7. Takes the sorted listed hosts one at a time, and writes the set of files into a
//! [`publish::Tree`]. Rows out of order are an error. [`guard()`] runs between writing and
//! publishing, and holds back a set that shrank too much since the last one (invariant I11).
//!
//! The crate also writes the changes since the last dump ([`changes`], [`feed`]) and signatures
//! ([`sign`]).

pub mod changes;
mod compress;
pub mod error;
pub mod feed;
pub mod line;
mod paths;
pub mod row;
pub mod set;
pub mod sign;
pub mod slugs;
pub mod text;

pub use compress::Packing;
pub use error::DumpError;
pub use paths::{CHANGES_FOLDER, DATA_FOLDER, INDEX_FILE, NODES_FILE, SCHEMA_FOLDER, is_of_set};
pub use row::{ListedRow, ListedState, Moment};
pub use set::{
    CSV_MEDIA, Draft, Force, HeldBack, PublishedFile, PublishedSet, RowError, Rows, SCHEMA_VERSION,
    SOFTWARE_MAX, Sealed, SoftwareTotals, VERSIONS_MAX, guard, published_set, push_csv_line, rows,
    standing_rows, standing_rows_read, standing_software, write,
};
