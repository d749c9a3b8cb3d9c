//! Before a check: marks due hosts as in flight.
//!
//! A host that is in flight already (invariant I8) or must never be checked (invariant I7) is
//! refused. A host that exceeds its group's pace, or the share of all held groups, is postponed.

use census::class::{Class, PerClass};
use census::group::{HELD_A_DAY, OTHERS_PER_HELD};
use census::schedule::due_when_taken;
use census::state::Record;
use census::time::{Calendar, Jitter, Timestamp};
use protocol::Host;
use rusqlite::{Connection, params};

use crate::db::error::StoreError;
use crate::tables::groups::{self, Start};
use crate::tables::hosts::recovery;
use crate::tables::row::{self, HostRow, columns};

/// Hosts taken per request: more than any engine checks at once, and few enough not to delay other
/// writes.
pub(crate) const TAKE_MAX: u32 = 1000;

/// Hosts read in a further look, after hosts of the first look were postponed.
const PORTION_AGAIN: u32 = 250;

/// Most starts of other hosts that held groups may still use: one group's checks of a day, so that
/// a quiet week does not end in a burst. The oldest hosts of groups may overdraw it by two thousand
/// checks.
const CREDIT_MAX: i32 = HELD_A_DAY.cast_signed() * OTHERS_PER_HELD;
const CREDIT_MIN: i32 = -100 * CREDIT_MAX;

/// A host that is in flight from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Its record, with the next ordinary due time already set.
    pub record: Record,
    /// Consecutive checks, up to the last one, that a crash on our side interrupted.
    pub interruptions: u32,
    /// Consecutive checks, up to the last one, that ended in a fault on our side.
    pub faults: u32,
    /// Its class when it was taken.
    pub class: Class,
}

pub(crate) const TAKE_DUE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM hosts WHERE in_flight = 0 AND due IS NOT NULL AND class = ?1 AND due <= ?2 ORDER BY due LIMIT ?3"
);

/// Stops counting at a limit, so that the cost does not grow with the backlog.
pub(crate) const COUNT_WAITING: &str = "SELECT count(*) FROM (SELECT 1 FROM hosts WHERE in_flight = 0 AND due IS NOT NULL AND class = ?1 AND due <= ?2 LIMIT ?3)";

pub(crate) const CREDIT: &str = "SELECT held_credit FROM grouping WHERE id = 1";

pub(crate) const PUT_CREDIT: &str = "UPDATE grouping SET held_credit = ?1 WHERE id = 1";

pub(crate) const MARK: &str = "UPDATE hosts SET due = ?2, in_flight = 1 WHERE id = ?1";

/// Takes due hosts, the longest due first: at most `wanted` of each class, and at most one per
/// jitter. Hosts that exceed their group's pace are postponed, and others of their class are taken
/// instead, so that one bad group does not delay them.
pub(crate) fn take_due(
    connection: &Connection,
    now: Timestamp,
    wanted: PerClass<u32>,
    jitters: &[Jitter],
    calendar: Calendar,
) -> Result<Vec<Taken>, StoreError> {
    let credit = connection
        .prepare_cached(CREDIT)?
        .query_row([], |row| row.get(0))?;
    let mut taking = Taking {
        connection,
        now,
        calendar,
        jitters: jitters.iter().copied().peekable(),
        taken: Vec::new(),
        left: TAKE_MAX,
        credit,
    };
    let mut missing = wanted;
    // In the first look, most of the rows are taken.
    let mut portion_min = 0;
    loop {
        let mut found = 0;
        for class in Class::ALL {
            found += taking.of_class(class, missing.of_mut(class), portion_min)?;
        }
        let is_over = missing.sum() == 0 || taking.left == 0 || taking.jitters.peek().is_none();
        if found == 0 || is_over {
            break;
        }
        portion_min = PORTION_AGAIN;
    }
    // The usual state is that all credit is left, which costs no write.
    if taking.credit != credit {
        connection
            .prepare_cached(PUT_CREDIT)?
            .execute([taking.credit])?;
    }
    Ok(taking.taken)
}

/// Due hosts per class, counted up to `most`.
pub(crate) fn due_by_class(
    connection: &Connection,
    now: Timestamp,
    most: u32,
) -> Result<PerClass<u32>, StoreError> {
    let mut statement = connection.prepare_cached(COUNT_WAITING)?;
    let mut waiting = PerClass::default();
    for class in Class::ALL {
        *waiting.of_mut(class) =
            statement.query_row(params![class.number(), now.0, most], |row| row.get(0))?;
    }
    Ok(waiting)
}

struct Taking<'c, J: Iterator> {
    connection: &'c Connection,
    now: Timestamp,
    calendar: Calendar,
    jitters: std::iter::Peekable<J>,
    taken: Vec<Taken>,
    /// Hosts that may still be examined.
    left: u32,
    /// Starts of other hosts that held groups have not used yet.
    credit: i32,
}

impl<J: Iterator<Item = Jitter>> Taking<'_, J> {
    /// Takes hosts of a class from one look until none is `missing`. Returns the number of hosts
    /// found.
    fn of_class(
        &mut self,
        class: Class,
        missing: &mut u32,
        portion_min: u32,
    ) -> Result<usize, StoreError> {
        if *missing == 0 || self.left == 0 {
            return Ok(0);
        }
        let rows = self.look(class, (*missing).max(portion_min).min(self.left))?;
        let found = rows.len();
        for row in rows {
            if *missing == 0 {
                break;
            }
            self.left = self.left.saturating_sub(1);
            match row {
                Ok(row) => *missing = missing.saturating_sub(u32::from(self.take(row)?)),
                // Otherwise an invalid row at the head of the queue would stop the census.
                Err(StoreError::BadRow { id, column }) => {
                    recovery::park_bad_row(self.connection, id, column, self.now)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    fn look(
        &self,
        class: Class,
        portion: u32,
    ) -> Result<Vec<Result<HostRow, StoreError>>, StoreError> {
        let mut statement = self.connection.prepare_cached(TAKE_DUE)?;
        let parameters = params![class.number(), self.now.0, portion];
        let rows = statement.query_map(parameters, |row| Ok(row::decode(row)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Takes or postpones a host. Returns whether it was taken.
    fn take(&mut self, row: HostRow) -> Result<bool, StoreError> {
        let (connection, now, calendar) = (self.connection, self.now, self.calendar);
        let Some(jitter) = self.jitters.peek().copied() else {
            return Ok(false);
        };
        let has_room = self.credit >= OTHERS_PER_HELD;
        let own = own(jitter, &row);
        match groups::start(connection, &row, now, own, calendar, has_room)? {
            None => return Ok(false),
            Some(Start::Ordinary) => {
                self.credit = self.credit.saturating_add(1).min(CREDIT_MAX);
            }
            Some(Start::OfHeld) => {
                let left = self.credit.saturating_sub(OTHERS_PER_HELD);
                self.credit = left.max(CREDIT_MIN);
            }
        }
        self.jitters.next();
        self.taken
            .push(take(connection, row, now, jitter, calendar)?);
        Ok(true)
    }
}

/// A separate jitter for a host that may be postponed: many postponed hosts see the same unused
/// jitter.
fn own(jitter: Jitter, row: &HostRow) -> Jitter {
    recovery::jitter(u64::from(jitter.0), row.id)
}

/// Takes one host, whatever its due time.
pub(crate) fn take_one(
    connection: &Connection,
    host: &Host,
    now: Timestamp,
    jitter: Jitter,
    calendar: Calendar,
) -> Result<Option<Taken>, StoreError> {
    let Some(row) = row::find(connection, host)? else {
        return Ok(None);
    };
    if row.in_flight {
        return Err(StoreError::InFlight { host: host.clone() });
    }
    if row.record.state.is_never_asked() {
        return Err(StoreError::NeverAsked { host: host.clone() });
    }
    if let Some(id) = row.group_id
        && groups::is_denied(connection, id)?
    {
        return Err(StoreError::GroupDenied { host: host.clone() });
    }
    take(connection, row, now, jitter, calendar).map(Some)
}

fn take(
    connection: &Connection,
    row: HostRow,
    now: Timestamp,
    jitter: Jitter,
    calendar: Calendar,
) -> Result<Taken, StoreError> {
    let class = row.class();
    let mut record = row.record;
    record.due = due_when_taken(&record, now, jitter, calendar);
    connection
        .prepare_cached(MARK)?
        .execute(params![row.id, record.due.map(|due| due.0)])?;
    Ok(Taken {
        record,
        interruptions: row.interruptions,
        faults: row.faults,
        class,
    })
}
