//! Files that readers see complete or not at all: written next to their places, synced, and renamed
//! into place.
//!
//! [`replace`] does this for one small file, [`Waiting`] for many files that are renamed in a
//! chosen order. Both use hidden temporary names, which [`clear`] deletes after a crash. All calls
//! use [`Disk`], so that tests can make any of them fail.

mod clear;
mod disk;
mod folder;
mod lock;
mod private;
mod replace;
mod waiting;

pub use clear::{ClearError, clear};
pub use disk::{Disk, Mode, SystemDisk, folder_of, sync_folder};
pub use folder::{advice, shared_file_system};
pub use lock::{Lock, ServeError};
pub use private::{create_private, make_private};
pub use replace::{Written, replace, write};
pub use waiting::{Put, Waiting};

#[cfg(test)]
mod tests;
