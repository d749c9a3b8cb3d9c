//! Bounds of the files of changes.

/// Days for which files are kept, in addition to today's. A mirror that was away for a season
/// fetches the whole list, which is then hardly longer than the changes. This also limits how long
/// a file can name a host that the census has forgotten.
pub const DAYS_KEPT: u32 = 90;

/// Changes in a day's file. This number of lines is about 4 MB, as large as the whole list of
/// 30 000 hosts; beyond that, a mirror should fetch the list. On an ordinary day a few per cent of
/// the hosts get a new version, and a few hundred come, go or fail to answer.
pub const CHANGES_A_DAY_MAX: usize = 20_000;

/// Bytes of a day's changes, for names and versions longer than any in use.
pub(super) const DAY_BYTES_MAX: usize = 5 * 1024 * 1024;

/// Sections in a day's file. Four dumps a day are ordinary, and opt-outs bring at most 144. Others
/// are made by hand, or while a list is held back. Beyond the bound, the first ones are dropped.
pub(super) const SECTIONS_A_DAY_MAX: usize = 200;

/// Bytes of a day's file that are read: its changes, and the headers of its sections at about 700
/// bytes each.
pub(super) const DAY_FILE_BYTES_MAX: usize = DAY_BYTES_MAX + SECTIONS_A_DAY_MAX * 1024;

/// File names that are read from the folder, which usually has about ninety.
pub(super) const FOLDER_NAMES_MAX: usize = 10_000;

/// Seconds by which a dump may be as old as, or older than, the previous one. It is then dated one
/// second later, for two manual dumps in one second or a clock correction. Beyond that, the clock
/// was set back, and sections with later times are dropped.
pub(super) const CLOCK_SLACK_SECONDS: i64 = 60;
