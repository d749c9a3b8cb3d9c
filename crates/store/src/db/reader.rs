//! A connection that reads and never blocks the writer.
//!
//! Its methods are in `queries/` and in the modules of tables. All of them block: asynchronous
//! callers use a blocking thread.

use rusqlite::Connection;

use crate::db::error::StoreError;
use crate::db::migrate;

/// A connection that reads. Only one thread at a time can use it, so each thread opens one.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
}

impl Reader {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The schema version: the number of migrations that were applied.
    pub fn schema_version(&self) -> Result<i64, StoreError> {
        Ok(migrate::version(&self.connection)?)
    }
}
