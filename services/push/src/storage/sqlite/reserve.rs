//! Disk space that is kept for the day when the disk is full: with it, clients can still connect,
//! and acknowledge and remove what waits for them. Nothing new is stored in it.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

/// More than the write-ahead log takes between two checkpoints; the database gets as much.
const RESERVE_BYTES: u64 = 8 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Reserve {
    database: PathBuf,
    /// The database and its log. They stay open: closing a file ends all of the process's locks of
    /// it, so this field is dropped after the connection.
    files: Mutex<Vec<File>>,
    is_short: AtomicBool,
}

impl Reserve {
    /// The reserve of a database. Nothing is held yet.
    pub(super) fn of(database: &Path) -> Self {
        Self {
            database: database.to_owned(),
            files: Mutex::default(),
            is_short: AtomicBool::new(false),
        }
    }

    /// Allocates the space behind both files, where nobody else can take it. A file system that
    /// can't has none.
    pub(super) fn hold(&self) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.is_empty() {
            let mut log = self.database.clone().into_os_string();
            log.push("-wal");
            let open = |path: &Path| OpenOptions::new().write(true).open(path);
            files.extend(open(&self.database).into_iter().chain(open(log.as_ref())));
        }
        for (number, file) in files.iter().enumerate() {
            // The log is written from its beginning again; the database grows.
            let used = match number {
                0 => file.metadata().map_or(0, |file| file.len()),
                _ => 0,
            };
            let end = used.saturating_add(RESERVE_BYTES);
            fallocate(file, FallocateFlags::KEEP_SIZE, 0, end).ok();
        }
    }

    /// Whether the disk is too full for anything new.
    pub(super) fn is_short(&self) -> bool {
        let folder = self.database.parent().unwrap_or(Path::new("."));
        let is_short = statvfs(folder)
            .is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < RESERVE_BYTES);
        if self.is_short.swap(is_short, Ordering::Relaxed) != is_short {
            match is_short {
                true => tracing::error!(
                    "the disk is full: no messages, users and channels are stored until there is room"
                ),
                false => tracing::info!("the disk has room again: messages are stored"),
            }
        }
        is_short
    }
}
