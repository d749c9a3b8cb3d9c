//! The bounds of the files of changes.

/// Days for which files are kept beside today's. Who was away for a season takes the whole list,
/// which is then hardly longer than all that changed; and so long at most somebody's name can stand
/// in a file after the census forgot who they were.
pub const DAYS_KEPT: u32 = 90;

/// Changes in a day's file. As many lines are about 4 MB, which is what the whole list of 30 000
/// hosts takes: beyond that a mirror better takes the list. On an ordinary day some per cent of the
/// hosts get a new version, and a few hundred come, go or fail to answer.
pub const CHANGES_A_DAY_MAX: usize = 20_000;

/// Bytes of a day's changes, for names and versions that are longer than any in use.
pub(super) const DAY_BYTES_MAX: usize = 5 * 1024 * 1024;

/// Sections in a day's file: four dumps a day are made by themselves, more by hand or while a list
/// is held back and people opt out. The first ones of that day go when there are more.
pub(super) const SECTIONS_A_DAY_MAX: usize = 100;

/// Bytes of a day's file that are read: its changes, and the first lines of its sections at about
/// 700 bytes each.
pub(super) const DAY_FILE_BYTES_MAX: usize = DAY_BYTES_MAX + SECTIONS_A_DAY_MAX * 1024;

/// Names that are looked at in the folder: it holds some ninety.
pub(super) const FOLDER_NAMES_MAX: usize = 10_000;

/// Seconds by which a dump may be older than the last one, or as old, and is called a second newer:
/// two dumps by hand in one second, a clock that is put right. Beyond that the clock was set, and
/// what it said before is dropped.
pub(super) const CLOCK_SLACK_SECONDS: i64 = 60;
