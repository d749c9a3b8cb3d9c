//! The changes from one dump to the next, in one file per day, so that a mirror can follow without
//! fetching the whole list ([docs/changes.md] has the format).
//!
//! Compares the published rows with the new ones, both sorted by name, and asks what happened to
//! each missing host ([`Standing`]). Writes a section in `changes/YYYY-MM-DD.ndjson`, feeds of the
//! newest sections and weeks, and earlier days' files without the names of hosts that have left
//! since, all with compressed companions.
//!
//! A section starts from the last dump only if that dump's digest matches the former rows as they
//! are read now. After a crash or disk error, a mirror sees a gap or correct data, never a guess.
//!
//! Changes rebuild a host's [`Row`]: name, software, version, state, time of first sight and
//! whether registrations are open. The time when it was last found alive is left out: it changes
//! for nearly every host in every dump, and would make each section as long as the list. Counts and
//! bounds are per day, so that a day's file stays small.
//!
//! Every publication of the set calls [`write_changes()`], even one that only removes names because
//! a new list was held back. [`is_current()`] checks whether these files need rewriting.
//!
//! [docs/changes.md]: https://github.com/fedicensus/fedicensus/blob/main/docs/changes.md

mod day_files;
mod diff;
mod is_current;
mod limits;
pub mod mirror;
mod recent_names;
mod write;

pub use crate::line::{Change, Counts, Header, RowDigests, Section, Sha256Hex};
pub use crate::row::Row;
pub use diff::Standing;
pub use is_current::is_current;
pub use limits::{CHANGES_A_DAY_MAX, DAYS_KEPT};
pub use mirror::{Gap, Mirror};
pub use write::{ChangesFile, Outcome, WrittenChanges, write_changes};

/// The JSON Schema of a line, to publish next to the files.
pub const CHANGE_SCHEMA: &str = include_str!("../schema/change.json");

#[cfg(test)]
mod tests;
