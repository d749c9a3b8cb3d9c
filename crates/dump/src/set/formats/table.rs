//! `instances.sqlite`, as far as this crate knows it: the SQL is in `store`.
//!
//! Takes rows sorted by host. Finishing counts the rows of each version and variant of
//! each software.

use std::io;
use std::path::Path;

use store::{InstanceRow, InstancesFile, VersionCount};

use crate::row::ListedRow;

/// A file that rows are inserted into. It is useless if dropped before it is finished.
#[derive(Debug)]
pub(crate) struct Table(InstancesFile);

impl Table {
    /// Begins in the empty file at `path`.
    pub(crate) fn begin(path: &Path) -> io::Result<Self> {
        InstancesFile::begin(path).map(Self)
    }

    /// Inserts a row. Hosts must be in ascending order.
    pub(crate) fn push(&mut self, row: &ListedRow) -> io::Result<()> {
        self.0.push(InstanceRow {
            host: &row.host,
            state: row.state.as_str(),
            first_seen: &row.first_seen.to_string(),
            last_alive: &row.last_alive.to_string(),
            instance: &row.instance,
        })
    }

    /// Finishes the file and counts its rows: the versions of one software after the other, sorted,
    /// unknown ones first.
    pub(crate) fn finish(self, visit: &mut dyn FnMut(VersionCount<'_>)) -> io::Result<()> {
        self.0.finish(visit)
    }
}
