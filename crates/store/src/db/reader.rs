//! A connection that reads, next to the writer and never in its way.
//!
//! `queries/` and the modules of tables have its methods. All of them block: asynchronous callers
//! use a blocking thread.

use rusqlite::Connection;

use crate::db::error::StoreError;
use crate::db::migrate;

/// A connection that reads. One thread at a time uses it; make one a thread.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
}

impl Reader {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection }
    }

    /// For queries.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The schema's version: the number of migrations it went through.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn schema_version(&self) -> Result<i64, StoreError> {
        Ok(migrate::version(&self.connection)?)
    }
}
