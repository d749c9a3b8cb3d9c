//! New names.
//!
//! In: names in canonical form, admitted by the caller. Out: rows in the state Discovered, or as another crawler knew them. Refused: nothing; a known row is not touched, so that
//! nobody can make us ask a host sooner by naming it (invariant I8).

use census::state::Record;
use census::time::Timestamp;
use protocol::Host;
use rusqlite::{Connection, params};

use crate::admitted::IS_KNOWN;
use crate::forgotten::Key;
use crate::hosts::row;
use crate::{StoreError, forgotten};

/// Names written by one request: a peers line's worth, so that a long list never holds the writer up.
pub(crate) const ADD_MAX: usize = 500;

/// A name that was learned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The name.
    pub host: Host,
    /// When it is asked first.
    pub due: Timestamp,
    /// When it came in.
    pub first_seen: Timestamp,
}

impl Candidate {
    pub(crate) fn discovered(&self) -> Record {
        Record::discovered(self.host.clone(), self.first_seen, self.due)
    }
}

/// What became of a name that was added by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddedAs {
    /// A row was made, or made again for a forgotten name.
    New,
    /// Known already, and not touched.
    Known,
}

pub(crate) const INSERT: &str = "INSERT INTO hosts (name, state, since, first_seen, due) VALUES (?1, 'discovered', ?2, ?2, ?3) ON CONFLICT (name) DO NOTHING";

pub(crate) const NOTE: &str = "UPDATE hosts SET last_note = ?2 WHERE name = ?1";

/// What is said of a host until its first verdict here.
const ADOPTED: &str = "taken over from another crawler";

/// Inserts a discovered host unless it is known or forgotten; gives whether it did. `key` is that of forgotten names, asked for once for many.
pub(crate) fn insert_candidate(
    connection: &Connection,
    key: &Key,
    discovered: &Record,
) -> Result<bool, StoreError> {
    if forgotten::has(connection, key, &discovered.host)? {
        return Ok(false);
    }
    let rows = connection.prepare_cached(INSERT)?.execute(params![
        discovered.host.as_str(),
        discovered.first_seen.0,
        discovered.due.map(|due| due.0)
    ])?;
    Ok(rows > 0)
}

/// Inserts names by hand, due at once; forgotten ones come back.
pub(crate) fn add_now(
    connection: &Connection,
    hosts: &[Host],
    now: Timestamp,
) -> Result<Vec<(Host, AddedAs)>, StoreError> {
    let key = forgotten::key(connection)?;
    hosts
        .iter()
        .map(|host| {
            forgotten::remember(connection, host)?;
            let record = Record::discovered(host.clone(), now, now);
            let added_as = if insert_candidate(connection, &key, &record)? {
                AddedAs::New
            } else {
                AddedAs::Known
            };
            Ok((host.clone(), added_as))
        })
        .collect()
}

/// Inserts hosts as another crawler knew them; forgotten ones come back.
pub(crate) fn adopt(
    connection: &Connection,
    records: &[Record],
) -> Result<Vec<(Host, AddedAs)>, StoreError> {
    records
        .iter()
        .map(|record| {
            let name = record.host.as_str();
            let is_known: bool = connection
                .prepare_cached(IS_KNOWN)?
                .query_row([name], |row| row.get(0))?;
            if is_known {
                return Ok((record.host.clone(), AddedAs::Known));
            }
            forgotten::remember(connection, &record.host)?;
            row::insert(connection, record)?;
            connection
                .prepare_cached(NOTE)?
                .execute(params![name, ADOPTED])?;
            Ok((record.host.clone(), AddedAs::New))
        })
        .collect()
}
