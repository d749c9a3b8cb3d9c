//! How a database is opened: the defaults, and what tests change.

use std::time::Duration;

use crate::db::checkpoint::Bounds;
use crate::db::migrate::{SCHEMA, Schema};

/// How long to wait for another process that holds the write lock, such as a backup or an `sqlite3`
/// shell. A checkpoint takes well under a second, and a check's slot is occupied during the wait.
pub(super) const BUSY_WAIT: Duration = Duration::from_secs(5);

/// The writer's page cache: holds the rows of 10 000 hosts and all indexes, and does not grow with
/// a million hosts.
pub(crate) const WRITER_CACHE_KIB: i64 = 16 * 1024;

/// No memory mapping: reading a mapped page that the disk can't provide would kill the daemon with
/// a signal instead of failing one request.
pub(super) const MAPPED_BYTES: i64 = 0;

/// Most known names in memory: 140 MB, ten times the size that the census is designed for. Further
/// names are looked up.
pub(crate) const NAMES_MAX: usize = 10_000_000;

/// Settings that tests change, and a hook at which they stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    pub(crate) busy_wait: Duration,
    pub(crate) schema: &'static Schema,
    pub(crate) at: fn(Moment),
    pub(crate) log: Bounds,
    pub(crate) names_max: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            busy_wait: BUSY_WAIT,
            schema: &SCHEMA,
            at: |_moment| {},
            log: Bounds::default(),
            names_max: NAMES_MAX,
        }
    }
}

/// Steps of an upgrade between which a crash makes a difference. Tests stop at each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The copy is written, but not in its place yet.
    Copied,
    /// The copy is in its place, and no migration has run.
    Kept,
    /// All migrations have run, and old copies are not deleted yet.
    Migrated,
}
