//! How a database is opened: the defaults, and what benchmarks and tests change.

use std::time::Duration;

use crate::db::checkpoint::{Bounds, TakeOver};
use crate::db::migrate::{SCHEMA, Schema};
use crate::tables::known::NAMES_MAX;

/// How long to wait for another process that holds the write lock, such as a backup or somebody's
/// `sqlite3`: a checkpoint takes well under a second, and a check's slot waits meanwhile.
pub(super) const BUSY_WAIT: Duration = Duration::from_secs(5);

/// SQLite's page cache of the writer: the rows of 10 000 hosts and all indexes fit in, and a
/// million hosts don't make it grow.
pub(super) const WRITER_CACHE_KIB: i64 = 16 * 1024;

/// Nothing of the file is mapped into memory: a page that the disk can't give would end the whole
/// daemon by a signal instead of failing one request.
const MAPPED_BYTES: i64 = 0;

/// What benchmarks compare; the default is what the census goes by.
#[derive(Debug, Clone, Copy)]
pub struct Opening {
    /// Who takes the log over.
    pub take_over: TakeOver,
    /// SQLite's page cache of the writer, in KiB.
    pub cache_kib: i64,
    /// How much of the file is mapped into memory, in bytes.
    pub mapped_bytes: i64,
}

impl Default for Opening {
    fn default() -> Self {
        Self {
            take_over: TakeOver::default(),
            cache_kib: WRITER_CACHE_KIB,
            mapped_bytes: MAPPED_BYTES,
        }
    }
}

/// What tests make shorter, longer, or stop at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    pub(crate) busy_wait: Duration,
    pub(crate) schema: &'static Schema,
    pub(crate) at: fn(Moment),
    pub(crate) opening: Opening,
    pub(crate) log: Bounds,
    pub(crate) names_max: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            busy_wait: BUSY_WAIT,
            schema: &SCHEMA,
            at: |_moment| {},
            opening: Opening::default(),
            log: Bounds::default(),
            names_max: NAMES_MAX,
        }
    }
}

/// Moments of an upgrade between which a crash makes a difference. Tests stop at each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The copy is written, and not yet in its place.
    Copied,
    /// The copy is in its place, and no step was taken.
    Kept,
    /// All steps were taken, and copies that are too many are still there.
    Migrated,
}
