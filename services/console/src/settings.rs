//! The console's settings.

use std::path::PathBuf;
use std::thread::available_parallelism;

/// Most password hashes at once, for known browsers and for others separately. The container's
/// memory limit has room for twice this many of [`accounts::password::MEMORY_KIB`].
pub const HASHES_MAX: usize = 4;

#[derive(Debug, Clone)]
pub struct Settings {
    /// The census's name.
    pub title: String,
    pub socket: PathBuf,
    pub census_socket: PathBuf,
    pub accounts: PathBuf,
    pub log_addresses: LogAddresses,
    /// Password hashes at once, 1 to [`HASHES_MAX`].
    pub hashes: usize,
}

/// Whether addresses reach the log (invariant I10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogAddresses {
    No,
    /// Log a line for each refused or failed login, for fail2ban.
    Yes,
}

/// Default for `hashes`: half of the machine's processors, at least one and at most [`HASHES_MAX`].
pub fn ordinary_hashes() -> usize {
    let processors = available_parallelism().map_or(1, std::num::NonZero::get);
    (processors / 2).clamp(1, HASHES_MAX)
}
