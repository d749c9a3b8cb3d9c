//! Counts of hosts and of waiting names.

use census::state::{OptedOutBy, StateName};
use rusqlite::{Connection, Params};

use crate::db::error::StoreError;
use crate::db::reader::Reader;
use crate::tables::admitted;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Hosts per state: all states, in the order of [`StateName::ALL`].
    pub by_state: Vec<(StateName, u64)>,
    /// Hosts that ask not to appear in statistics, in any state.
    pub hidden: u64,
    /// Hosts that are being checked.
    pub in_flight: u64,
    pub hosts: u64,
}

/// Hosts that were never checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unchecked {
    pub hosts: u64,
    /// Hosts held back in undecided groups.
    pub held: u64,
    /// Other hosts with each of the given notes.
    pub noted: [u64; 4],
}

pub(crate) const COUNT_UNCHECKED: &str = "SELECT count(*), count(*) FILTER (WHERE is_held), \
     count(*) FILTER (WHERE NOT is_held AND last_note = ?1), count(*) FILTER (WHERE NOT is_held AND last_note = ?2), \
     count(*) FILTER (WHERE NOT is_held AND last_note = ?3), count(*) FILTER (WHERE NOT is_held AND last_note = ?4) \
     FROM (SELECT last_note, held_back = 1 AND is_over = 1 AND decision = 'none' AS is_held \
     FROM hosts LEFT JOIN groups ON groups.id = group_id WHERE state = 'discovered')";

pub(crate) const COUNT_BY_STATE: &str =
    "SELECT state, count(*), sum(hidden) FROM hosts GROUP BY state";

pub(crate) const COUNT_IN_FLIGHT: &str = "SELECT count(*) FROM hosts WHERE in_flight = 1";

pub(crate) const COUNT_OPTED_OUT: &str =
    "SELECT opted_out_by, count(*) FROM hosts WHERE state = 'opted_out' GROUP BY opted_out_by";

impl Reader {
    /// Counts of hosts, by state.
    pub fn counts(&self) -> Result<Counts, StoreError> {
        let snapshot = self.connection().unchecked_transaction()?;
        let mut counts = Counts {
            by_state: StateName::ALL.map(|name| (name, 0)).to_vec(),
            hidden: 0,
            in_flight: count(&snapshot, COUNT_IN_FLIGHT, [])?,
            hosts: 0,
        };
        let mut statement = snapshot.prepare_cached(COUNT_BY_STATE)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let state: String = row.get(0)?;
            let hosts = unsigned(row.get(1)?);
            counts.hosts += hosts;
            counts.hidden += unsigned(row.get(2)?);
            for (name, sum) in &mut counts.by_state {
                if name.as_str() == state {
                    *sum = hosts;
                }
            }
        }
        Ok(counts)
    }

    /// Counts of hosts that were never checked. Reads each of their rows.
    pub fn unchecked(&self, notes: [&str; 4]) -> Result<Unchecked, StoreError> {
        let mut statement = self.connection().prepare_cached(COUNT_UNCHECKED)?;
        Ok(statement.query_row(notes, |row| {
            let at = |column: usize| row.get(column).map(unsigned);
            Ok(Unchecked {
                hosts: at(0)?,
                held: at(1)?,
                noted: [at(2)?, at(3)?, at(4)?, at(5)?],
            })
        })?)
    }

    /// Opted-out hosts by who opted them out. A party without opt-outs is missing.
    pub fn opted_out(&self) -> Result<Vec<(OptedOutBy, u64)>, StoreError> {
        let mut found = Vec::new();
        let mut statement = self.connection().prepare_cached(COUNT_OPTED_OUT)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let word: String = row.get(0)?;
            let hosts = unsigned(row.get(1)?);
            let who = [OptedOutBy::Robots, OptedOutBy::Owner, OptedOutBy::Moderator];
            let by = who.into_iter().find(|by| by.as_str() == word);
            found.extend(by.map(|by| (by, hosts)));
        }
        Ok(found)
    }

    /// Number of names that wait for room.
    pub fn waiting(&self) -> Result<u64, StoreError> {
        count(self.connection(), admitted::COUNT_WAITING, [])
    }
}

/// The single number that a statement returns.
pub(super) fn count(
    connection: &Connection,
    sql: &str,
    params: impl Params,
) -> Result<u64, StoreError> {
    let count = connection
        .prepare_cached(sql)?
        .query_row(params, |row| row.get(0))?;
    Ok(unsigned(count))
}

fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
