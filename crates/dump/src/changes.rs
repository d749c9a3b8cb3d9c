//! What changed from one dump to the next, in a file a day, so that a mirror follows without fetching the whole list ([docs/changes.md] has the
//! format).
//!
//! In: the rows that were published last and the new ones, each sorted by name, and what became of a host ([`Standing`]). Out: a section in
//! `changes/YYYY-MM-DD.ndjson`, the feeds of the newest sections, and the files of earlier days without the names of who has left since, each with its
//! compressed companions; staged beside the published ones until [`StagedChanges::publish`]. Refused: a guess. A section starts from the last dump only
//! if that dump's digest is the digest of the former rows as they were read now: whatever crashed or flipped in between, a mirror sees a gap or the
//! truth.
//!
//! Changes rebuild a host's [`Row`]: name, software, version, state and when it was first seen. Not when it was last found alive: that is new for
//! nearly every host in every dump, and would make each section as long as the list. Counts and bounds are of a day, so that a day's file stays small.
//!
//! Every publication of the set calls [`stage_changes()`], that of a list that was held back and is only rid of some names as well. Whether that has to be,
//! [`stand_as_told()`] says of these files.
//!
//! [docs/changes.md]: https://github.com/fedicensus/fedicensus/blob/main/docs/changes.md

mod join;
mod kept;
pub mod line;
pub mod mirror;
mod stage;
mod standing;
mod stayed;

pub use line::{Change, Counts, Header, Row, Section, Sha256Hex};
pub use mirror::{Gap, Mirror};
pub use stage::{ChangesFile, Outcome, StagedChanges, stage_changes};
pub use standing::stand_as_told;

/// The JSON Schema of a line, for whoever publishes it beside the files.
pub const CHANGE_SCHEMA: &str = include_str!("../schema/change.json");

/// Days for which files are kept beside today's. Who was away for a season takes the whole list, which is then hardly longer than all that changed;
/// and so long at most somebody's name can stand in a file after the census forgot who they were.
pub const DAYS_KEPT: u32 = 90;

/// Changes in a day's file. As many lines are about 3 MB, which is what the whole list of 30 000 hosts takes: beyond that a mirror better takes the
/// list. On an ordinary day some per cent of the hosts get a new version, and a few hundred come, go or fail to answer.
pub const CHANGES_A_DAY_MAX: usize = 20_000;

/// Bytes of a day's changes, for names and versions that are longer than any in use.
const DAY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Sections in a day's file: four dumps a day are made by themselves, more by hand or while a list is held back and people opt out. The first ones of
/// that day go when there are more.
const SECTIONS_A_DAY_MAX: usize = 100;

/// Bytes of a day's file that are read: its changes, and the first lines of its sections at about 700 bytes each.
const DAY_FILE_BYTES_MAX: usize = DAY_BYTES_MAX + SECTIONS_A_DAY_MAX * 1024;

/// Names that are looked at in the folder: it holds some ninety.
const FOLDER_NAMES_MAX: usize = 10_000;

/// Seconds by which a dump may be older than the last one, or as old, and is called a second newer: two dumps by hand in one second, a clock that is
/// put right. Beyond that the clock was set, and what it said before is dropped.
const CLOCK_SLACK_SECONDS: i64 = 60;

/// What the census knows of a host, as far as the public may hear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is in the list that is being published.
    Listed,
    /// It does not live, or nothing is known of it any more.
    Died,
    /// It redirects to another host for good.
    Moved {
        /// The other one. It is named only if its own standing is [`Standing::Listed`].
        to: Option<String>,
    },
    /// It opted out, asked to be hidden, is marked gone by its owner, is denied, held back or parked. Its name stands nowhere from now on.
    Withdrawn,
}

#[cfg(test)]
mod tests;
