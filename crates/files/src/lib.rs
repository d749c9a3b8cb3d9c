//! Files that readers see complete or not at all: written next to their places, synced, and renamed
//! into place.
//!
//! [`replace`] does this for one small file. Its calls use [`Disk`], so that tests can make any of
//! them fail.

mod disk;
mod folder;
mod lock;
mod private;
mod replace;

pub use disk::{Disk, Mode, folder_of, sync_folder};
pub use folder::{advice, shared_file_system};
pub use lock::{Lock, ServeError};
pub use private::{create_private, make_private};
pub use replace::{Written, replace, write};

#[cfg(test)]
mod tests;
