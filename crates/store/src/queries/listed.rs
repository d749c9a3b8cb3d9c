//! The list: the hosts that are published, and the names that must leave it at once.

use census::state::StateName;
use census::time::{Calendar, Timestamp};
use rusqlite::params;

use crate::db::error::StoreError;
use crate::db::reader::Reader;

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
    /// Whether it says that anyone may register. `None` if it did not say.
    pub open_registrations: Option<bool>,
}

/// `census::listing::is_listed` and `census::group::Group::lists` as SQL. The first line repeats
/// the condition of the index `hosts_listable`, so that SQLite may use it, and `INDEXED BY` makes
/// it do so: it would rather take `hosts_state` and sort everything at the end. The names come out
/// in the order of their bytes. What is read is what `crates/dump/columns.toml` calls public, and
/// the index has all of it.
pub(crate) const LISTED: &str = "SELECT name, software, version, state, first_seen, last_alive, open_registrations \
     FROM hosts AS host INDEXED BY hosts_listable \
     WHERE hidden = 0 AND last_alive IS NOT NULL AND state IN ('alive', 'dying', 'moving') \
     AND last_alive >= ?1 \
     AND (state = 'alive' \
          OR (state = 'dying' AND state_before = 'alive' AND gone = 0) \
          OR (state = 'moving' AND state_before = 'alive' \
              AND NOT EXISTS (SELECT 1 FROM hosts AS target WHERE target.name = host.target AND target.state = 'alive'))) \
     AND NOT EXISTS (SELECT 1 FROM groups WHERE groups.id = host.group_id \
          AND (decision = 'deny' OR (decision = 'none' AND is_over = 1 AND host.held_back = 1))) \
     ORDER BY name";

/// Who may not stay on a list that was published before either: hidden, opted out, parked by a
/// moderator or no name any more, marked gone, or not listed by its group.
pub(crate) const IS_WITHDRAWN: &str = "SELECT EXISTS (SELECT 1 FROM hosts AS host WHERE name = ?1 \
     AND (hidden = 1 OR state IN ('opted_out', 'parked') OR (state = 'dying' AND gone = 1) \
          OR EXISTS (SELECT 1 FROM groups WHERE groups.id = host.group_id \
               AND (decision = 'deny' OR (decision = 'none' AND is_over = 1 AND host.held_back = 1)))))";

impl Reader {
    /// Visits the hosts on the list, sorted by the bytes of their names, streamed from one snapshot
    /// of the database; ends with the first error of `visit`. Gives how many.
    ///
    /// # Errors
    /// A fault of ours, or what `visit` returned; some hosts may have been visited already, and
    /// what was made of them has to be thrown away.
    pub fn listed<E: From<StoreError>>(
        &self,
        now: Timestamp,
        calendar: Calendar,
        mut visit: impl FnMut(Listed<'_>) -> Result<(), E>,
    ) -> Result<u64, E> {
        let alive_since = now.minus(calendar.unlisted_after());
        let ours = StoreError::from;
        let mut statement = self.connection().prepare_cached(LISTED).map_err(ours)?;
        let mut rows = statement.query(params![alive_since.0]).map_err(ours)?;
        let mut hosts = 0;
        while let Some(row) = rows.next().map_err(ours)? {
            visit(listed(row)?)?;
            hosts += 1;
        }
        Ok(hosts)
    }

    /// Whether a name has to go from a list that was published before, whatever else is to be said
    /// of it (invariant I7): it is hidden, has opted out, is parked, is marked gone, or its group
    /// keeps it off. A name that has no row has not. It is asked of every name in the change files
    /// of ninety days: it takes one look-up.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn is_withdrawn(&self, name: &str) -> Result<bool, StoreError> {
        Ok(self
            .connection()
            .prepare_cached(IS_WITHDRAWN)?
            .query_row([name], |row| row.get(0))?)
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
        open_registrations: row.get(6)?,
    })
}

fn text<'r>(row: &'r rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Option<&'r str>> {
    Ok(row.get_ref(column)?.as_str_or_null()?)
}
