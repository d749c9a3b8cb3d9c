//! `instances.sqlite`, as far as this crate knows it: the SQL is in `store`.
//!
//! Takes rows sorted by host. Finishing syncs the file and counts the rows of each version of each
//! software.

use std::fs::File;
use std::io;
use std::path::Path;

use files::{Disk, Mode, SystemDisk};
use store::{InstanceRow, InstancesFile, VersionCount};

use crate::row::ListedRow;

/// A file that rows are inserted into. It is useless if dropped before it is finished.
pub(crate) trait Table {
    /// Inserts a row. Hosts must be in ascending order.
    fn push(&mut self, row: &ListedRow) -> io::Result<()>;

    /// Finishes the file, syncs it, and counts its rows: the versions of one software after the
    /// other, sorted, unknown ones first.
    fn finish(self, visit: &mut dyn FnMut(VersionCount<'_>)) -> io::Result<()>;
}

/// A disk on which tables can be created.
pub(crate) trait TableDisk: Disk {
    /// A file that rows are inserted into.
    type Table: Table;

    /// Creates a new file for a table. An existing file is an error.
    fn create_table(&self, path: &Path) -> io::Result<Self::Table>;
}

impl TableDisk for SystemDisk {
    type Table = SystemTable;

    fn create_table(&self, path: &Path) -> io::Result<SystemTable> {
        SystemTable::begin(self.create(path, Mode::Public)?, path)
    }
}

/// The implementation on a real disk.
#[derive(Debug)]
pub(crate) struct SystemTable {
    rows: InstancesFile,
    file: File,
}

impl SystemTable {
    /// Begins in the empty file at `path`, which is also open as `file`.
    pub(crate) fn begin(file: File, path: &Path) -> io::Result<Self> {
        Ok(Self {
            rows: InstancesFile::begin(path)?,
            file,
        })
    }
}

impl Table for SystemTable {
    fn push(&mut self, row: &ListedRow) -> io::Result<()> {
        self.rows.push(InstanceRow {
            host: &row.host,
            state: row.state.as_str(),
            first_seen: &row.first_seen.to_string(),
            last_alive: &row.last_alive.to_string(),
            instance: &row.instance,
        })
    }

    fn finish(self, visit: &mut dyn FnMut(VersionCount<'_>)) -> io::Result<()> {
        self.rows.finish(visit)?;
        self.file.sync_all()
    }
}
