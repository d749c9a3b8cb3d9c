//! What changed from one dump to the next, in a file a day, so that a mirror follows without fetching the whole list ([docs/changes.md] has the
//! format).
//!
//! In: the rows that were published last and the new ones, each sorted by name, and what became of
//! a host ([`Standing`]). Out: a section in `changes/YYYY-MM-DD.ndjson`, the feeds of the newest
//! sections, and the files of earlier days without the names of who has left since, each with its
//! compressed companions; staged beside the published ones until [`WrittenChanges::publish`].
//! Refused: a guess. A section starts from the last dump only if that dump's digest is the digest
//! of the former rows as they were read now: whatever crashed or flipped in between, a mirror sees
//! a gap or the truth.
//!
//! Changes rebuild a host's [`Row`]: name, software, version, state, when it was first seen and
//! whether its registrations are open. Not when it was last found alive: that is new for nearly
//! every host in every dump, and would make each section as long as the list. Counts and bounds are
//! of a day, so that a day's file stays small.
//!
//! Every publication of the set calls [`write_changes()`], that of a list that was held back and is
//! only rid of some names as well. [`is_current()`] finds out whether these files need that.
//!
//! [docs/changes.md]: https://github.com/fedicensus/fedicensus/blob/main/docs/changes.md

mod day_files;
mod diff;
mod is_current;
mod limits;
pub mod line;
pub mod mirror;
mod recent_names;
mod write;

pub use diff::Standing;
pub use is_current::is_current;
pub use limits::{CHANGES_A_DAY_MAX, DAYS_KEPT};
pub use line::{Change, Counts, Header, Row, RowDigests, Section, Sha256Hex};
pub use mirror::{Gap, Mirror};
pub use write::{ChangesFile, Outcome, WrittenChanges, write_changes};

/// The JSON Schema of a line, for whoever publishes it beside the files.
pub const CHANGE_SCHEMA: &str = include_str!("../schema/change.json");

#[cfg(test)]
mod tests;
