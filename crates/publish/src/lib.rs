//! The public tree: every published file, written into a new folder and swapped in at once.
//!
//! Writers create files in a [`Tree`]; a part that they do not write again is kept, as hard links
//! of the former tree's files. [`Tree::publish`] links what did not change, syncs once, and renames
//! one symbolic link, [`current`]. At any moment, and after any crash, the link leads to one whole
//! tree, the former or the new one (invariant I6). The former tree is deleted at once: it may name
//! hosts that opted out (invariant I7), and a download in progress keeps its open file.

mod cancel;
mod error;
mod gzip;
mod place;
mod tree;

pub use cancel::Cancel;
pub use error::TreeError;
pub use files::Disk;
pub use gzip::{GZIP_END, Gzip, gzip};
pub use place::{current, tidy};
pub use tree::{File, Tree};

#[cfg(test)]
mod tests;
