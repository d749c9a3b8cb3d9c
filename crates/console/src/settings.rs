//! The console's settings.

use std::path::PathBuf;
use std::thread::available_parallelism;

/// Password hashes at once, for known browsers and for others each: the container's memory limit
/// has room for this many of [`accounts::password::MEMORY_KIB`] twice.
pub const HASHES_MAX: usize = 4;

/// Settings of the console.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where requests come in.
    pub socket: PathBuf,
    /// The daemon's socket for the console.
    pub census_socket: PathBuf,
    /// The file of accounts.
    pub accounts: PathBuf,
    /// Whether refused logins are logged with the client's address.
    pub log_addresses: LogAddresses,
    /// Password hashes at once, 1 to [`HASHES_MAX`].
    pub hashes: usize,
}

/// Whether addresses reach the log (invariant I10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogAddresses {
    /// No line has an address.
    No,
    /// A line for each refused or failed login, for fail2ban.
    Yes,
}

/// Half of the machine's processors, at least one and at most [`HASHES_MAX`].
pub fn ordinary_hashes() -> usize {
    let processors = available_parallelism().map_or(1, std::num::NonZero::get);
    (processors / 2).clamp(1, HASHES_MAX)
}
