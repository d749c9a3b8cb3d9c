//! Answers "is my instance listed, and why not?" for every name in one pass.
//!
//! Reads from one snapshot of the database: every host, sorted by name, with all that decides
//! whether it is listed; then the names that wait for room. An unreadable row is reported as such
//! and does not stop the pass.

use census::group::{Group, Place};
use census::state::{Record, State};
use census::transition::Entry;
use protocol::Host;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Row};

use crate::db::error::StoreError;
use crate::db::reader::Reader;
use crate::queries::each::EACH;
use crate::queries::host::TARGET_IS_ALIVE;
use crate::tables::row;
use crate::tables::{groups, history};

/// Waiting names, except those that were added since and are still in the table of waiting names.
pub(crate) const WAITING: &str = "SELECT name FROM waiting WHERE NOT EXISTS (SELECT 1 FROM hosts WHERE hosts.name = waiting.name) ORDER BY name";

/// The census's answer about one name.
#[derive(Debug)]
pub enum HostAnswer<'r> {
    Known(&'r KnownHost),
    /// A row that can't be decoded, such as one whose name is no longer valid. It is not listed.
    Unreadable(&'r str),
    /// A name that had no room yet.
    Waiting(&'r Host),
}

/// A host with all that decides whether it is listed.
#[derive(Debug)]
pub struct KnownHost {
    pub record: Record,
    pub last: Option<Entry>,
    /// Whether it moves, or has moved, to a host that is Alive.
    pub target_is_alive: bool,
    /// Its group. `None` until it is grouped, soon after it was added.
    pub group: Option<Group>,
    pub place: Place,
}

/// Statements that run for each host in addition to the one that reads its row.
struct PerHost<'c> {
    last: CachedStatement<'c>,
    target: CachedStatement<'c>,
    group: CachedStatement<'c>,
}

impl Reader {
    /// Visits every name that the census has an answer for: hosts sorted by the bytes of their
    /// names, then waiting names. Reads from one snapshot, and stops at the first error of `visit`.
    ///
    /// # Errors
    /// Fails on a database error or with `visit`'s error; some names may have been visited already.
    pub fn each_host_answer<E: From<StoreError>>(
        &self,
        mut visit: impl FnMut(HostAnswer<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let snapshot = self.connection().unchecked_transaction().map_err(ours)?;
        let mut per_host = PerHost::new(&snapshot).map_err(ours)?;
        let mut statement = snapshot.prepare_cached(EACH).map_err(ours)?;
        let mut rows = statement.query([]).map_err(ours)?;
        while let Some(columns) = rows.next().map_err(ours)? {
            match per_host.known(columns) {
                Ok(known) => visit(HostAnswer::Known(&known))?,
                Err(StoreError::BadRow { .. }) => {
                    let name: String = columns.get("name").map_err(ours)?;
                    visit(HostAnswer::Unreadable(&name))?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let mut statement = snapshot.prepare_cached(WAITING).map_err(ours)?;
        let mut rows = statement.query([]).map_err(ours)?;
        while let Some(row) = rows.next().map_err(ours)? {
            let name: String = row.get(0).map_err(ours)?;
            // Skips a name that is no longer valid.
            if let Ok(host) = Host::parse(&name) {
                visit(HostAnswer::Waiting(&host))?;
            }
        }
        Ok(())
    }
}

fn ours(error: rusqlite::Error) -> StoreError {
    error.into()
}

impl<'c> PerHost<'c> {
    fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            last: connection.prepare_cached(history::NEWEST_FIRST)?,
            target: connection.prepare_cached(TARGET_IS_ALIVE)?,
            group: connection.prepare_cached(groups::OF_HOST)?,
        })
    }

    fn known(&mut self, columns: &Row<'_>) -> Result<KnownHost, StoreError> {
        let row = row::decode(columns)?;
        let last = self
            .last
            .query_row([row.id, 1], history::entry)
            .optional()?;
        let target_is_alive = match &row.record.state {
            State::Moving { target, .. } | State::Moved { target } => {
                self.target.query_row([target.as_str()], |row| row.get(0))?
            }
            State::Discovered
            | State::Alive
            | State::Dying { .. }
            | State::Dead
            | State::OptedOut { .. }
            | State::Parked => false,
        };
        let group = match row.group_id {
            Some(id) => self
                .group
                .query_row([id], groups::group_columns)
                .optional()?,
            None => None,
        };
        Ok(KnownHost {
            last,
            target_is_alive,
            group,
            place: row.place,
            record: row.record,
        })
    }
}

#[cfg(test)]
mod tests;
