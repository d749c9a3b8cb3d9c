//! The list: the hosts that are published, and the names that must leave it at once.

use census::state::StateName;
use census::time::{Calendar, Timestamp};
use protocol::Instance;
use rusqlite::params;

use crate::db::error::StoreError;
use crate::db::reader::Reader;

/// A listed host, with everything that is published about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<'r> {
    pub host: &'r str,
    /// Its state: [`StateName::Alive`], [`StateName::Dying`] or [`StateName::Moving`].
    pub state: StateName,
    pub first_seen: Timestamp,
    /// When it was last found alive.
    pub last_alive: Timestamp,
    pub instance: Instance,
}

/// `census::listing::is_listed` and `census::group::Group::lists` as SQL. The first line repeats
/// the condition of the index `hosts_listable`, so that SQLite can use it. `INDEXED BY` enforces
/// that: otherwise SQLite uses `hosts_state` and sorts everything at the end. Names are sorted by
/// bytes. The columns are those that `crates/dump/columns.toml` calls public, and the index has all
/// of them.
pub(crate) const LISTED: &str = "SELECT name, software, version, state, first_seen, last_alive, open_registrations, variant \
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

/// Hosts that must leave an already published list: hidden, opted out, parked by a moderator or
/// because the name is no longer valid, marked gone, or not listed by their group.
pub(crate) const IS_WITHDRAWN: &str = "SELECT EXISTS (SELECT 1 FROM hosts AS host WHERE name = ?1 \
     AND (hidden = 1 OR state IN ('opted_out', 'parked') OR (state = 'dying' AND gone = 1) \
          OR EXISTS (SELECT 1 FROM groups WHERE groups.id = host.group_id \
               AND (decision = 'deny' OR (decision = 'none' AND is_over = 1 AND host.held_back = 1)))))";

impl Reader {
    /// Visits the listed hosts, sorted by the bytes of their names, from one snapshot of the
    /// database. Stops at the first error of `visit`. Returns their number.
    ///
    /// # Errors
    /// Fails on a database error or with `visit`'s error. Some hosts may have been visited already,
    /// and the caller must discard the output.
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

    /// Whether a name must leave an already published list (invariant I7): it is hidden, opted out,
    /// parked or marked gone, or its group keeps it off. `false` for a name without a row. Runs for
    /// every name in the change files of ninety days, and costs one look-up.
    pub fn is_withdrawn(&self, name: &str) -> Result<bool, StoreError> {
        Ok(self
            .connection()
            .prepare_cached(IS_WITHDRAWN)?
            .query_row([name], |row| row.get(0))?)
    }
}

fn listed<'r>(row: &'r rusqlite::Row<'_>) -> Result<Listed<'r>, StoreError> {
    // The query returns only three states.
    let word = text(row, 3)?.unwrap_or_default();
    let state = StateName::parse(word);
    Ok(Listed {
        host: text(row, 0)?.unwrap_or_default(),
        state: state.ok_or(StoreError::BadRow {
            id: 0,
            column: "state",
        })?,
        first_seen: Timestamp(row.get(4)?),
        last_alive: Timestamp(row.get(5)?),
        instance: Instance {
            software: row.get(1)?,
            version: row.get(2)?,
            open_registrations: row.get(6)?,
            variant: row.get(7)?,
            ..Instance::default()
        },
    })
}

fn text<'r>(row: &'r rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Option<&'r str>> {
    Ok(row.get_ref(column)?.as_str_or_null()?)
}
