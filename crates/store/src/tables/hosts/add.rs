//! Adds new hosts.
//!
//! The caller passes canonical names that were admitted, or whole records of a simulated census.
//! New rows are in the state Discovered or in the record's. A known row stays unchanged, so that
//! nobody can cause an earlier check by naming a host (invariant I8).

use std::collections::HashSet;
use std::time::Duration;

use admission::Names;
use census::state::Record;
use census::time::Timestamp;
use protocol::Host;
use rusqlite::{Connection, params};

use crate::db::error::StoreError;
use crate::known::forgotten;
use crate::tables::hosts::opt_out;
use crate::tables::{groups, row};

/// Names written per request: about one line of a peers list, so that a long list never delays
/// other writes for long.
pub(crate) const ADD_MAX: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub host: Host,
    /// Its place among new hosts, the least first. All are checked as soon as they can be.
    pub due: Timestamp,
    pub first_seen: Timestamp,
}

/// So far before now, a due time precedes those of all names that others brought.
const FIRST_IN_LINE: Duration = Duration::from_hours(48);

impl Candidate {
    /// A host that precedes all that nobody vouches for.
    pub fn first_in_line(host: Host, now: Timestamp) -> Self {
        Self {
            host,
            due: now.minus(FIRST_IN_LINE),
            first_seen: now,
        }
    }
}

/// The result of adding a name by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddedAs {
    /// A row was inserted, also for a forgotten name, or a parked host came back.
    New,
    /// The name was known already and is unchanged.
    Known,
}

/// Rows per statement. For each statement that may fire a trigger, SQLite saves the original pages;
/// with one row per statement that is half the cost of a new name. Ten times as many rows gain
/// nothing more. Unused rows are NULL, at 10 to 20 µs a statement. `bench/RESULTS.md` has the
/// figures.
pub(crate) const ROWS: usize = 50;

/// Parameters per row: name, first seen, due, hash, registered domain.
const PARAMETERS: usize = 5;

macro_rules! five {
    ($rows:expr) => {
        concat!($rows, ",", $rows, ",", $rows, ",", $rows, ",", $rows)
    };
}

macro_rules! fifty {
    ($row:literal) => {
        concat!(five!(five!($row)), ",", five!(five!($row)))
    };
}
pub(crate) use {fifty, five};

/// Inserts the names that are neither known nor forgotten.
pub(crate) const INSERT: &str = concat!(
    "INSERT INTO hosts (name, state, since, first_seen, due, group_id) SELECT column1, 'discovered', column2, column2, column3, \
     (SELECT id FROM groups WHERE domain = column5) FROM (VALUES ",
    fifty!("(?,?,?,?,?)"),
    ") WHERE column1 IS NOT NULL AND NOT EXISTS (SELECT 1 FROM forgotten WHERE hash = column4) ON CONFLICT (name) DO NOTHING RETURNING name"
);

pub(crate) const NOTE: &str = "UPDATE hosts SET last_note = ?2 WHERE name = ?1";

/// Note of an imported host until its first verdict.
const IMPORTED: &str = "imported from another crawler";

/// Inserts discovered hosts, except known and forgotten ones, each into the group that `names`
/// gives it. Returns, for each, whether it was inserted.
pub(crate) fn insert_candidates(
    connection: &Connection,
    candidates: &[Candidate],
    names: Option<&Names>,
) -> Result<Vec<bool>, StoreError> {
    let key = forgotten::key(connection)?;
    let mut statement = connection.prepare_cached(INSERT)?;
    let mut made = Vec::with_capacity(candidates.len());
    for portion in candidates.chunks(ROWS) {
        statement.clear_bindings();
        for (place, one) in (0..).step_by(PARAMETERS).zip(portion) {
            let name = one.host.as_str();
            statement.raw_bind_parameter(place + 1, name)?;
            statement.raw_bind_parameter(place + 2, one.first_seen.0)?;
            statement.raw_bind_parameter(place + 3, one.due.0)?;
            statement.raw_bind_parameter(place + 4, forgotten::hash_by(&key, name))?;
            if let Some(names) = names {
                let domain = names.registered_domain(&one.host);
                groups::make(connection, &domain)?;
                statement.raw_bind_parameter(place + 5, domain)?;
            }
        }
        let mut new: HashSet<String> = HashSet::with_capacity(portion.len());
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            new.insert(row.get(0)?);
        }
        drop(rows);
        for one in portion {
            // A name that appears twice is new once.
            let is_new = new.remove(one.host.as_str());
            if let Some(names) = names.filter(|_| !is_new) {
                groups::drop_empty(connection, &names.registered_domain(&one.host))?;
            }
            made.push(is_new);
        }
    }
    Ok(made)
}

/// Adds names by hand, due at once. Forgotten and parked ones come back.
pub(crate) fn add_now(
    connection: &Connection,
    hosts: &[Host],
    now: Timestamp,
    names: Option<&Names>,
) -> Result<Vec<(Host, AddedAs)>, StoreError> {
    let mut candidates = Vec::with_capacity(hosts.len());
    for host in hosts {
        forgotten::remember(connection, host)?;
        candidates.push(Candidate::first_in_line(host.clone(), now));
    }
    let made = insert_candidates(connection, &candidates, names)?;
    let mut added = Vec::with_capacity(made.len());
    for (one, is_new) in candidates.into_iter().zip(made) {
        let comes_in = is_new || opt_out::unpark_row(connection, one.host.as_str(), now, now)?;
        let added_as = if comes_in {
            AddedAs::New
        } else {
            AddedAs::Known
        };
        added.push((one.host, added_as));
    }
    Ok(added)
}

/// Inserts hosts with their records. Forgotten ones come back.
pub(crate) fn import(
    connection: &Connection,
    records: &[Record],
) -> Result<Vec<(Host, AddedAs)>, StoreError> {
    records
        .iter()
        .map(|record| {
            let name = record.host.as_str();
            let is_known: bool = connection
                .prepare_cached(row::IS_KNOWN)?
                .query_row([name], |row| row.get(0))?;
            if is_known {
                return Ok((record.host.clone(), AddedAs::Known));
            }
            forgotten::remember(connection, &record.host)?;
            row::insert(connection, record)?;
            connection
                .prepare_cached(NOTE)?
                .execute(params![name, IMPORTED])?;
            Ok((record.host.clone(), AddedAs::New))
        })
        .collect()
}
