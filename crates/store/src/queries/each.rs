//! Every host, in the order of names.

use census::state::Record;
use census::transition::Entry;

use crate::db::error::StoreError;
use crate::db::reader::Reader;
use crate::tables::history;
use crate::tables::row::{self, columns};

pub(crate) const EACH: &str = concat!("SELECT ", columns!(), " FROM hosts ORDER BY name");

impl Reader {
    /// Visits every host with its last verdict, sorted by name, from one snapshot of the database.
    /// Fails on a database error; some hosts may have been visited already.
    pub fn each(&self, mut visit: impl FnMut(&Record, Option<&Entry>)) -> Result<(), StoreError> {
        let snapshot = self.connection().unchecked_transaction()?;
        let mut statement = snapshot.prepare_cached(EACH)?;
        let mut rows = statement.query([])?;
        while let Some(columns) = rows.next()? {
            let row = row::decode(columns)?;
            let last = history::newest_first(&snapshot, row.id)?;
            visit(&row.record, last.first());
        }
        Ok(())
    }
}
