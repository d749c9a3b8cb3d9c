//! Files that readers see whole or not at all: written beside their places, synced, and renamed
//! into them.
//!
//! [`replace`] does this for one small file, [`Waiting`] for many that take their places in a
//! chosen order. Both write under hidden names, which [`clear`] removes after a crash. All calls go
//! through [`Disk`], so that tests can fail any of them.

mod clear;
mod disk;
mod replace;
mod waiting;

pub use clear::{ClearError, clear};
pub use disk::{Disk, Mode, SystemDisk, folder_of, sync_folder};
pub use replace::{Written, replace, write};
pub use waiting::{Put, Waiting};

#[cfg(test)]
mod tests;
