//! Rows to published bytes, and files swapped at once (design §9).
//!
//! Step 7 of 7. In: the listed names, one at a time, sorted. Out: `nodes.json` and `nodes.json.gz` in the public folder, which readers see
//! whole or not at all. Refused: names out of order, and a list that shrank too much since the last one (invariant I11), which [`guard()`] holds
//! back between writing and publishing.

mod disk;
pub mod error;
pub mod guard;
pub mod nodes;
mod swap;

pub use error::DumpError;
pub use guard::{Force, HeldBack, guard};
pub use nodes::{NODES_FILE, Staged, clear_stale, write_nodes};
