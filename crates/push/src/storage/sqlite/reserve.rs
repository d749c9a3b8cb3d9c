//! Disk space that is kept for the day when the disk is full: with it, clients can still connect,
//! and acknowledge and remove what fills the disk.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// More than the write-ahead log takes between two checkpoints.
const RESERVE_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    /// The disk was full, and the reserve could not be made again.
    is_short: AtomicBool,
}

impl Reserve {
    /// The reserve of a database. Nothing is held yet.
    pub(super) fn of(database: &Path) -> Self {
        Self {
            path: database.with_extension("reserve"),
            is_short: AtomicBool::new(false),
        }
    }

    pub(super) fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// Takes the space, if it is not taken yet.
    pub(super) fn hold(&self) {
        let is_held = fs::metadata(&self.path)
            .is_ok_and(|file| usize::try_from(file.len()).is_ok_and(|len| len == RESERVE_BYTES));
        let is_short = !is_held && self.make().is_err();
        if is_short {
            self.give_back();
        }
        if self.is_short.swap(is_short, Ordering::Relaxed) && !is_short {
            tracing::info!("the disk has room again: messages are stored");
        }
    }

    fn make(&self) -> io::Result<()> {
        let mut file = File::create(&self.path)?;
        // Only what is written takes space.
        let zeros = vec![0; RESERVE_BYTES];
        file.write_all(&zeros)?;
        file.sync_data()
    }

    /// Gives the space back after a write for which there was none. Returns whether there was some.
    pub(super) fn give_back(&self) -> bool {
        if !self.is_short.swap(true, Ordering::Relaxed) {
            tracing::error!(
                "the disk is full: no messages, users and channels are stored until there is room"
            );
        }
        fs::remove_file(&self.path).is_ok()
    }
}

/// Whether a write failed for lack of space.
pub(super) fn is_lack_of_space(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_given_back_once_and_taken_again() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = Reserve::of(&folder.path().join("push.db"));
        assert!(!reserve.give_back(), "nothing is held yet");
        assert!(reserve.is_short());
        reserve.hold();
        assert!(!reserve.is_short());
        let file = folder.path().join("push.reserve");
        assert_eq!(fs::metadata(&file).unwrap().len(), 8 * 1024 * 1024);
        assert!(reserve.give_back() && reserve.is_short());
        assert!(!file.exists());
        // A folder in its place: there is no room.
        fs::create_dir(&file).unwrap();
        reserve.hold();
        assert!(reserve.is_short());
    }
}
