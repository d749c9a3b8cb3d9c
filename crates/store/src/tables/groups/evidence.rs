//! The table `namings`: independent sources that named a held-back host, and what they decide.
//!
//! A source is a registered domain. It is independent of a group if it has an ordinary, listed host
//! that has responded for two weeks, and is neither that group nor held or denied itself.

use std::sync::Arc;

use census::group::{
    Evidence, PLACES_MAX, Place, RESPONSES_MIN, SOURCE_RESPONSES_MIN, SOURCES_MAX,
};
use census::time::{Calendar, Timestamp};
use protocol::Host;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::db::error::StoreError;
use crate::db::reader::Reader;
use crate::queue::handle::Writer;
use crate::tables::groups;
use crate::tables::row::{self, HostRow};

/// Names noted per transaction: takes some milliseconds, so that other writes don't wait long.
const NOTED_AT_ONCE: usize = 500;

/// Whether a row of `groups` is an independent source. `?2` is the least number of responses.
/// `INDEXED BY`, because SQLite would otherwise read the responding hosts of all groups.
macro_rules! is_independent {
    () => {
        "decision <> 'deny' AND (is_over = 0 OR decision <> 'none') AND EXISTS (SELECT 1 FROM hosts INDEXED BY hosts_group \
         WHERE group_id = groups.id AND held_back = 0 AND state = 'alive' AND hidden = 0 AND alive_count >= ?2)"
    };
}

pub(crate) const HELD: &str = "SELECT domain FROM groups INDEXED BY groups_over \
     WHERE is_over = 1 AND decision = 'none' ORDER BY id LIMIT ?1";

pub(crate) const SOURCE: &str = concat!(
    "SELECT id FROM groups WHERE domain = ?1 AND ",
    is_independent!()
);

pub(crate) const NOTE: &str = "INSERT INTO namings (host_id, source, first_named) \
     SELECT hosts.id, ?2, ?3 FROM hosts JOIN groups ON groups.id = hosts.group_id \
     WHERE hosts.name = ?1 AND hosts.held_back = 1 AND groups.id <> ?2 AND is_over = 1 AND decision = 'none' \
     AND (SELECT count(*) FROM namings WHERE host_id = hosts.id) < ?4 ON CONFLICT (host_id, source) DO NOTHING";

pub(crate) const DROP_FORMER: &str = concat!(
    "DELETE FROM namings WHERE host_id = ?1 AND NOT EXISTS (SELECT 1 FROM groups WHERE groups.id = source AND ",
    is_independent!(),
    ")"
);

pub(crate) const COUNT: &str = concat!(
    "SELECT count(*) FROM namings JOIN groups ON groups.id = source \
     WHERE host_id = ?1 AND first_named <= ?3 AND ",
    is_independent!()
);

/// Of a whole group. Hosts that got a place have no namings any more.
pub(crate) const NAMED_BY: &str = concat!(
    "SELECT count(DISTINCT source), count(DISTINCT source) FILTER (WHERE first_named <= ?3), min(first_named) \
     FROM hosts AS member JOIN namings ON host_id = member.id JOIN groups ON groups.id = source \
     WHERE member.group_id = (SELECT id FROM groups WHERE domain = ?1) AND ",
    is_independent!()
);

/// Counts no further than the limit.
pub(crate) const PLACES: &str =
    "SELECT count(*) FROM (SELECT 1 FROM hosts WHERE group_id = ?1 AND held_back = 0 LIMIT ?2)";

pub(crate) const FREE: &str = "UPDATE hosts SET held_back = 0 WHERE id = ?1";

/// Independent sources that named held-back hosts of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamedBy {
    pub sources: u32,
    /// Those that first named one at least [`Calendar::named_at_least`] ago.
    pub long: u32,
    /// When the first of them did. `None` without sources.
    pub since: Option<Timestamp>,
}

impl Writer {
    /// The registered domains of held groups, the oldest groups first.
    pub async fn held_domains(&self, limit: u32) -> Result<Vec<String>, StoreError> {
        self.call(move |c| {
            let mut statement = c.prepare_cached(HELD)?;
            let domains = statement.query_map([limit], |row| row.get(0))?;
            Ok(domains.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Notes that a source, given by its registered domain, names these hosts. Only independent
    /// sources and held-back hosts of other groups matter. Takes 500 names per transaction.
    pub async fn note_namings(
        &self,
        hosts: Vec<Host>,
        source: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let source: Arc<str> = source.into();
        for chunk in hosts.chunks(NOTED_AT_ONCE) {
            let (chunk, source) = (chunk.to_vec(), Arc::clone(&source));
            self.call(move |c| note(c, &chunk, &source, now)).await?;
        }
        Ok(())
    }
}

impl Reader {
    /// What speaks for a host at `now`. `None` if no held group holds it back.
    pub fn evidence(
        &self,
        host: &Host,
        now: Timestamp,
        calendar: Calendar,
    ) -> Result<Option<Evidence>, StoreError> {
        let snapshot = self.connection().unchecked_transaction()?;
        let found = row::find(&snapshot, host)?.filter(|row| row.place == Place::HeldBack);
        let Some((row, id)) = found.and_then(|row| row.group_id.map(|id| (row, id))) else {
            return Ok(None);
        };
        let is_held = groups::of_row(&snapshot, id)?.is_some_and(|stored| stored.group.is_held());
        is_held
            .then(|| of(&snapshot, &row, now, calendar))
            .transpose()
    }
}

fn note(
    connection: &Connection,
    hosts: &[Host],
    source: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let source: Option<i64> = connection
        .prepare_cached(SOURCE)?
        .query_row(params![source, SOURCE_RESPONSES_MIN], |row| row.get(0))
        .optional()?;
    let Some(source) = source else {
        return Ok(());
    };
    let mut statement = connection.prepare_cached(NOTE)?;
    for host in hosts {
        statement.execute(params![host.as_str(), source, now.0, SOURCES_MAX])?;
    }
    Ok(())
}

fn of(
    connection: &Connection,
    row: &HostRow,
    now: Timestamp,
    calendar: Calendar,
) -> Result<Evidence, StoreError> {
    let named = now.minus(calendar.named_at_least());
    let sources = connection
        .prepare_cached(COUNT)?
        .query_row(params![row.id, SOURCE_RESPONSES_MIN, named.0], |row| {
            row.get(0)
        })?;
    let places = connection
        .prepare_cached(PLACES)?
        .query_row(params![row.group_id, PLACES_MAX], |row| row.get(0))?;
    Ok(Evidence {
        sources,
        responses: row.record.alive_count,
        places,
    })
}

/// The independent sources of a whole group, at `now`.
pub(crate) fn named_by(
    connection: &Connection,
    domain: &str,
    now: Timestamp,
    calendar: Calendar,
) -> Result<NamedBy, StoreError> {
    let named = now.minus(calendar.named_at_least());
    let found = connection.prepare_cached(NAMED_BY)?.query_row(
        params![domain, SOURCE_RESPONSES_MIN, named.0],
        |row| {
            Ok(NamedBy {
                sources: row.get(0)?,
                long: row.get(1)?,
                since: row.get::<_, Option<i64>>(2)?.map(Timestamp),
            })
        },
    )?;
    Ok(found)
}

/// Gives a due held-back host a place if there is evidence for it. Returns whether it got one.
pub(super) fn free(
    connection: &Connection,
    row: &HostRow,
    now: Timestamp,
    calendar: Calendar,
) -> Result<bool, StoreError> {
    if row.record.alive_count < RESPONSES_MIN {
        return Ok(false);
    }
    // Otherwise sources that closed down would leave no room for others.
    connection
        .prepare_cached(DROP_FORMER)?
        .execute(params![row.id, SOURCE_RESPONSES_MIN])?;
    let is_freed = of(connection, row, now, calendar)?.frees();
    if is_freed {
        connection.prepare_cached(FREE)?.execute([row.id])?;
    }
    Ok(is_freed)
}
