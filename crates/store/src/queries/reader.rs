//! Reading, beside the writer: explanations, counts, the dump.
//!
//! In: questions. Out: rows. Refused: writing; the connection can't. All methods block: asynchronous callers use a blocking thread.

use admission::Waiter;
use census::class::{Class, PerClass};
use census::group::Place;
use census::state::{OptedOutBy, Record, State, StateName};
use census::time::{Calendar, Timestamp};
use census::transition::Entry;
use protocol::Host;
use rusqlite::{Connection, params};

use crate::db::error::StoreError;
use crate::db::migrate;
use crate::tables::dumps::DumpRecord;
use crate::tables::groups::StoredGroup;
use crate::tables::hosts::row::{self, columns};
use crate::tables::hosts::take;
use crate::tables::{admitted, dumps, forgotten, groups, history};

/// A connection that reads. One thread at a time uses it; make one a thread.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
}

/// All that is known of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its record.
    pub record: Record,
    /// It is being checked, or its verdict waits to be confirmed.
    pub in_flight: bool,
    /// Its last checks that a crash of ours cut short, in a row.
    pub interruptions: u32,
    /// Its last checks that ended in a fault of ours, in a row.
    pub faults: u32,
    /// What last happened to it on our side without a verdict, since the last one.
    pub last_note: Option<String>,
    /// Its verdicts, the newest first, at most ten; three of a host that never lived.
    pub history: Vec<Entry>,
    /// It moves, or has moved, to a host that is Alive.
    pub target_is_alive: bool,
    /// Its group; none until it is grouped, soon after it came in.
    pub group: Option<StoredGroup>,
    /// Its place in its group.
    pub place: Place,
}

/// A host that is on the list, with all that is published of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed<'r> {
    /// Its name.
    pub host: &'r str,
    /// Its software.
    pub software: Option<&'r str>,
    /// The software's version.
    pub version: Option<&'r str>,
    /// Its state: [`StateName::Alive`], [`StateName::Dying`] or [`StateName::Moving`].
    pub state: StateName,
    /// When it was first heard of.
    pub first_seen: Timestamp,
    /// When it was last found alive.
    pub last_alive: Timestamp,
}

/// How many hosts there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// A line a state, all of them, in the order of [`StateName::ALL`].
    pub by_state: Vec<(StateName, u64)>,
    /// Hosts that ask to be left out of statistics, whatever their state.
    pub hidden: u64,
    /// Hosts that are being checked.
    pub in_flight: u64,
    /// All hosts.
    pub hosts: u64,
}

pub(crate) const TARGET_IS_ALIVE: &str =
    "SELECT EXISTS (SELECT 1 FROM hosts WHERE name = ?1 AND state = 'alive')";

pub(crate) const COUNT_BY_STATE: &str =
    "SELECT state, count(*), sum(hidden) FROM hosts GROUP BY state";

pub(crate) const COUNT_IN_FLIGHT: &str = "SELECT count(*) FROM hosts WHERE in_flight = 1";

pub(crate) const COUNT_OPTED_OUT: &str =
    "SELECT opted_out_by, count(*) FROM hosts WHERE state = 'opted_out' GROUP BY opted_out_by";

pub(crate) const COUNT_DUE: &str = "SELECT count(*) FROM hosts WHERE in_flight = 0 AND due IS NOT NULL AND class IN (0, 1, 2, 3) AND due <= ?1";

/// Counts no further than it is told to, so that it costs the same however much is due.
pub(crate) const COUNT_DUE_BETWEEN: &str = "SELECT count(*) FROM (SELECT 1 FROM hosts WHERE in_flight = 0 AND due IS NOT NULL \
     AND class IN (0, 1, 2, 3) AND due > ?1 AND due <= ?2 LIMIT ?3)";

pub(crate) const NEXT_DUE: &str = "SELECT due FROM hosts WHERE in_flight = 0 AND due IS NOT NULL AND class = ?1 ORDER BY due LIMIT 1";

/// `census::listing::is_listed` and `census::group::Group::lists` as SQL. The first line repeats the condition of the index `hosts_listable`, so that SQLite may use it, and
/// `INDEXED BY` makes it do so: it would rather take `hosts_state` and sort everything at the end. The names come out in the order of their bytes. What is read is what `crates/dump/columns.toml` calls
/// public, and the index has all of it.
pub(crate) const LISTED: &str = "SELECT name, software, version, state, first_seen, last_alive FROM hosts AS host INDEXED BY hosts_listable \
     WHERE hidden = 0 AND last_alive IS NOT NULL AND state IN ('alive', 'dying', 'moving') \
     AND last_alive >= ?1 \
     AND (state = 'alive' \
          OR (state = 'dying' AND state_before = 'alive' AND gone = 0) \
          OR (state = 'moving' AND state_before = 'alive' \
              AND NOT EXISTS (SELECT 1 FROM hosts AS target WHERE target.name = host.target AND target.state = 'alive'))) \
     AND NOT EXISTS (SELECT 1 FROM groups WHERE groups.id = host.group_id \
          AND (decision = 'deny' OR (decision = 'none' AND is_over = 1 AND host.held_back = 1))) \
     ORDER BY name";

/// Who may not stay on a list that was published before either: hidden, opted out, parked by a moderator or no name any more, marked gone, or not listed
/// by its group.
pub(crate) const IS_WITHDRAWN: &str = "SELECT EXISTS (SELECT 1 FROM hosts AS host WHERE name = ?1 \
     AND (hidden = 1 OR state IN ('opted_out', 'parked') OR (state = 'dying' AND gone = 1) \
          OR EXISTS (SELECT 1 FROM groups WHERE groups.id = host.group_id \
               AND (decision = 'deny' OR (decision = 'none' AND is_over = 1 AND host.held_back = 1)))))";

pub(crate) const EACH: &str = concat!("SELECT ", columns!(), " FROM hosts ORDER BY name");

impl Reader {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection }
    }

    /// For the questions that stand beside their table.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// All that is known of a host; nothing when it has no row.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn record(&self, host: &Host) -> Result<Option<Stored>, StoreError> {
        // One snapshot, so that the history belongs to the row.
        let snapshot = self.connection.unchecked_transaction()?;
        let Some(row) = row::find(&snapshot, host)? else {
            return Ok(None);
        };
        let target_is_alive = match &row.record.state {
            State::Moving { target, .. } | State::Moved { target } => snapshot
                .prepare_cached(TARGET_IS_ALIVE)?
                .query_row([target.as_str()], |row| row.get(0))?,
            State::Discovered
            | State::Alive
            | State::Dying { .. }
            | State::Dead
            | State::OptedOut { .. }
            | State::Parked => false,
        };
        Ok(Some(Stored {
            in_flight: row.in_flight,
            interruptions: row.interruptions,
            faults: row.faults,
            last_note: row.last_note,
            history: history::newest_first(&snapshot, row.id)?,
            target_is_alive,
            group: match row.group_id {
                Some(id) => groups::of_row(&snapshot, id)?,
                None => None,
            },
            place: row.place,
            record: row.record,
        }))
    }

    /// Whether the name was here for a year, never lived, and was forgotten.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn is_forgotten(&self, host: &Host) -> Result<bool, StoreError> {
        forgotten::is_forgotten(&self.connection, host)
    }

    /// What is known of a name that waits for room; nothing when it does not wait.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn waiter(&self, host: &Host) -> Result<Option<Waiter>, StoreError> {
        admitted::find_waiter(&self.connection, host)
    }

    /// How many names wait for room.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn waiting(&self) -> Result<u64, StoreError> {
        count(&self.connection, admitted::COUNT_WAITING, [])
    }

    /// How many hosts there are, by state.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn counts(&self) -> Result<Counts, StoreError> {
        let snapshot = self.connection.unchecked_transaction()?;
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

    /// How many hosts opted out, by who said so; who is not there said it of none.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn opted_out(&self) -> Result<Vec<(OptedOutBy, u64)>, StoreError> {
        let mut found = Vec::new();
        let mut statement = self.connection.prepare_cached(COUNT_OPTED_OUT)?;
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

    /// How many hosts are due and not in flight.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn due(&self, now: Timestamp) -> Result<u64, StoreError> {
        count(&self.connection, COUNT_DUE, [now.0])
    }

    /// The earliest due time of a host that is not in flight.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        use rusqlite::OptionalExtension as _;
        let mut statement = self.connection.prepare_cached(NEXT_DUE)?;
        let mut next: Option<Timestamp> = None;
        for class in Class::ALL {
            let first = statement
                .query_row([class.number()], |row| row.get(0).map(Timestamp))
                .optional()?;
            next = [next, first].into_iter().flatten().min();
        }
        Ok(next)
    }

    /// How many hosts of each class are due and not in flight, counted up to `most`.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn due_by_class(&self, now: Timestamp, most: u32) -> Result<PerClass<u32>, StoreError> {
        take::due_by_class(&self.connection, now, most)
    }

    /// How many hosts that are not in flight come due after `after` and until `until`, counted up to `most`.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn due_between(
        &self,
        after: Timestamp,
        until: Timestamp,
        most: u32,
    ) -> Result<u32, StoreError> {
        Ok(self
            .connection
            .prepare_cached(COUNT_DUE_BETWEEN)?
            .query_row([after.0, until.0, i64::from(most)], |row| row.get(0))?)
    }

    /// Visits the hosts on the list, sorted by the bytes of their names, streamed from one snapshot of the database; ends with the first error of `visit`.
    /// Gives how many.
    ///
    /// # Errors
    /// A fault of ours, or what `visit` returned; some hosts may have been visited already, and what was made of them has to be thrown away.
    pub fn listed<E: From<StoreError>>(
        &self,
        now: Timestamp,
        calendar: Calendar,
        mut visit: impl FnMut(Listed<'_>) -> Result<(), E>,
    ) -> Result<u64, E> {
        let alive_since = now.minus(calendar.unlisted_after());
        let ours = StoreError::from;
        let mut statement = self.connection.prepare_cached(LISTED).map_err(ours)?;
        let mut rows = statement.query(params![alive_since.0]).map_err(ours)?;
        let mut hosts = 0;
        while let Some(row) = rows.next().map_err(ours)? {
            visit(listed(row)?)?;
            hosts += 1;
        }
        Ok(hosts)
    }

    /// Whether a name has to go from a list that was published before, whatever else is to be said of it (invariant I7): it is hidden, has opted out,
    /// is parked, is marked gone, or its group keeps it off. A name that has no row has not. It is asked of every name in the change files of ninety
    /// days: it takes one look-up.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn is_withdrawn(&self, name: &str) -> Result<bool, StoreError> {
        Ok(self
            .connection
            .prepare_cached(IS_WITHDRAWN)?
            .query_row([name], |row| row.get(0))?)
    }

    /// Visits every host with its last verdict, sorted by name, streamed from one snapshot of the database.
    ///
    /// # Errors
    /// A fault of ours; some hosts may have been visited already.
    pub fn each(&self, mut visit: impl FnMut(&Record, Option<&Entry>)) -> Result<(), StoreError> {
        let snapshot = self.connection.unchecked_transaction()?;
        let mut statement = snapshot.prepare_cached(EACH)?;
        let mut rows = statement.query([])?;
        while let Some(columns) = rows.next()? {
            let row = row::decode(columns)?;
            let last = history::newest_first(&snapshot, row.id)?;
            visit(&row.record, last.first());
        }
        Ok(())
    }

    /// The last dump that was published.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn last_dump(&self) -> Result<Option<DumpRecord>, StoreError> {
        dumps::last(&self.connection)
    }

    /// The schema's version: the number of migrations it went through.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn schema_version(&self) -> Result<i64, StoreError> {
        Ok(migrate::version(&self.connection)?)
    }
}

fn listed<'r>(row: &'r rusqlite::Row<'_>) -> Result<Listed<'r>, StoreError> {
    // The query asks for three of them.
    let word = text(row, 3)?.unwrap_or_default();
    let state = StateName::ALL
        .into_iter()
        .find(|name| name.as_str() == word);
    Ok(Listed {
        host: text(row, 0)?.unwrap_or_default(),
        software: text(row, 1)?,
        version: text(row, 2)?,
        state: state.ok_or(StoreError::BadRow {
            id: 0,
            column: "state",
        })?,
        first_seen: Timestamp(row.get(4)?),
        last_alive: Timestamp(row.get(5)?),
    })
}

fn text<'r>(row: &'r rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Option<&'r str>> {
    Ok(row.get_ref(column)?.as_str_or_null()?)
}

fn count(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> Result<u64, StoreError> {
    let count = connection
        .prepare_cached(sql)?
        .query_row(params, |row| row.get(0))?;
    Ok(unsigned(count))
}

fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

#[cfg(test)]
mod tests;
