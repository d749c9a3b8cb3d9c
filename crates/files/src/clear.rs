//! Deletes what a crash left next to published files.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::Disk;

/// Names that are read from one folder. A larger folder keeps some leftovers, which only take disk
/// space.
const NAMES_MAX: usize = 100_000;

#[derive(Debug)]
pub enum ClearError {
    List(io::Error),
    Remove { path: PathBuf, source: io::Error },
}

/// Deletes the files and folders of `folder` that have hidden names and are stale according to
/// `is_stale`. Returns their number.
pub fn clear(
    disk: &impl Disk,
    folder: &Path,
    is_stale: impl Fn(&str) -> bool,
) -> Result<u32, ClearError> {
    let names = disk.list(folder, NAMES_MAX).map_err(ClearError::List)?;
    let mut cleared = 0_u32;
    for name in names {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with('.') && is_stale(name))
        {
            let path = folder.join(name);
            if let Err(source) = disk.remove_all(&path) {
                return Err(ClearError::Remove { path, source });
            }
            cleared = cleared.saturating_add(1);
        }
    }
    Ok(cleared)
}
