//! Step 7 of 7: rows → dump → files behind nginx, swapped at once.
//!
//! In: one read transaction. Out: `nodes.json` and `nodes.json.gz`, whole. Refused: a list that lost more than 30 % of its names since the
//! last one is held back until an operator says so (invariant I11).

use std::path::Path;

use census::time::{Calendar, Timestamp};
use dump::{DumpError, Force, HeldBack};
use store::{Reader, StoreError};
use thiserror::Error;

/// Why no new list was published; the old one stands.
#[derive(Debug, Error)]
pub enum PublishError {
    /// The database could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The files could not be written.
    #[error(transparent)]
    Dump(#[from] DumpError),
    /// Too many names were lost at once.
    #[error(transparent)]
    HeldBack(#[from] HeldBack),
}

/// Writes the list of what is listed at `now` and swaps it in. Gives the number of names. Blocks; the caller records the dump.
///
/// # Errors
/// See [`PublishError`]. The published files are then what they were before.
pub fn publish(
    reader: &Reader,
    directory: &Path,
    now: Timestamp,
    calendar: Calendar,
    force: Force,
) -> Result<u64, PublishError> {
    let previous = reader.last_dump()?.map(|dump| dump.names);
    let staged = dump::write_nodes(directory, |name| {
        let mut failed = None;
        let read = reader.listed(now, calendar, |host| {
            if failed.is_none() {
                failed = name(host).err();
            }
        });
        match failed {
            Some(error) => Err(PublishError::Dump(error)),
            None => Ok(read.map(|_names| ())?),
        }
    })?;
    dump::guard(previous, staged.names(), force)?;
    let names = staged.names();
    staged.publish()?;
    Ok(names)
}
