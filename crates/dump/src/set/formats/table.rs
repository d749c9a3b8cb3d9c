//! `instances.sqlite`, as far as this crate knows it: SQL stands in `store`.
//!
//! In: rows, sorted by host. Out: a file that is whole and on the disk, and how many rows there are of each version of each software. Refused: nothing.

use std::fs::File;
use std::io;
use std::path::Path;

use files::{Disk, Mode, SystemDisk};
use store::{InstanceRow, InstancesFile, VersionCount};

use crate::instance::Instance;

/// A file that rows are inserted into. Dropped before its end, it is worth nothing.
pub(crate) trait Table {
    /// Inserts a row, whose host is greater than the one before.
    fn push(&mut self, instance: &Instance) -> io::Result<()>;

    /// Ends the file, waits until it is on the disk, and counts its rows: the versions of each software one after the other, sorted, what is unknown
    /// first.
    fn finish(self, visit: &mut dyn FnMut(VersionCount<'_>)) -> io::Result<()>;
}

/// A disk on which tables can be made.
pub(crate) trait TableDisk: Disk {
    /// A file that rows are inserted into.
    type Table: Table;

    /// Makes a new file for a table. An existing file is an error.
    fn create_table(&self, path: &Path) -> io::Result<Self::Table>;
}

impl TableDisk for SystemDisk {
    type Table = SystemTable;

    fn create_table(&self, path: &Path) -> io::Result<SystemTable> {
        SystemTable::begin(self.create(path, Mode::Public)?, path)
    }
}

/// The real one.
#[derive(Debug)]
pub(crate) struct SystemTable {
    rows: InstancesFile,
    /// For waiting until it is on the disk.
    file: File,
}

impl SystemTable {
    /// Begins in the empty file at `path`, which is open as `file` too.
    pub(crate) fn begin(file: File, path: &Path) -> io::Result<Self> {
        Ok(Self {
            rows: InstancesFile::begin(path)?,
            file,
        })
    }
}

impl Table for SystemTable {
    fn push(&mut self, instance: &Instance) -> io::Result<()> {
        self.rows.push(InstanceRow {
            host: &instance.host,
            software: instance.software.as_deref(),
            version: instance.version.as_deref(),
            state: instance.state.as_str(),
            first_seen: &instance.first_seen.to_string(),
            last_alive: &instance.last_alive.to_string(),
            open_registrations: instance.open_registrations,
        })
    }

    fn finish(self, visit: &mut dyn FnMut(VersionCount<'_>)) -> io::Result<()> {
        self.rows.finish(visit)?;
        self.file.sync_all()
    }
}
