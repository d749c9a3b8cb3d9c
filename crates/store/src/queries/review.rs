//! What moderators look at: held or decided groups, their members, waiting names, and the log of
//! decisions. The caller's `limit` bounds each answer.

use admission::Waiter;
use census::group::Decision;
use census::state::StateName;
use census::time::{Calendar, Timestamp};
use rusqlite::{Row, params};

use crate::db::error::StoreError;
use crate::db::reader::Reader;
use crate::tables::admitted;
use crate::tables::groups::evidence::{self, NamedBy};
use crate::tables::groups::{self, StoredGroup, columns};
use crate::tables::host_decisions::HostDecision;

/// Days, and kinds of software, that are counted for a group.
const COUNTED_MAX: u32 = 20;

/// The newest names of the census, of which a group's share is counted.
const NEWEST_MAX: u32 = 1000;

/// Milliseconds per day. Days are in UTC.
const DAY_MS: i64 = 86_400_000;

pub(crate) const HELD: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM groups INDEXED BY groups_over WHERE is_over = 1 AND decision = 'none' \
     ORDER BY hosts DESC, domain LIMIT ?1 OFFSET ?2"
);

pub(crate) const DECIDED: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM groups WHERE decided_at IS NOT NULL ORDER BY decided_at DESC LIMIT ?1 OFFSET ?2"
);

/// Ids give the order in which names were added.
pub(crate) const MEMBERS: &str = "SELECT name, state, first_seen, software, held_back FROM hosts \
     WHERE group_id = (SELECT id FROM groups WHERE domain = ?1) ORDER BY id DESC LIMIT ?2";

pub(crate) const STATES: &str = "SELECT state, count(*), count(*) FILTER (WHERE held_back = 0 AND hidden = 0), min(first_seen) FROM hosts \
     WHERE group_id = (SELECT id FROM groups WHERE domain = ?1) GROUP BY state ORDER BY 2 DESC";

pub(crate) const SOFTWARE: &str = "SELECT software, count(*) FROM hosts \
     WHERE group_id = (SELECT id FROM groups WHERE domain = ?1) AND software IS NOT NULL \
     GROUP BY software ORDER BY 2 DESC, 1 LIMIT ?2";

pub(crate) const CAME: &str = "SELECT first_seen / ?3, count(*) FROM hosts \
     WHERE group_id = (SELECT id FROM groups WHERE domain = ?1) \
     GROUP BY 1 ORDER BY 1 DESC LIMIT ?2";

/// Ids give the order in which names were added.
pub(crate) const SHARE: &str = "SELECT count(*), count(*) FILTER (WHERE group_id = (SELECT id FROM groups WHERE domain = ?1)) \
     FROM (SELECT group_id FROM hosts ORDER BY id DESC LIMIT ?2)";

pub(crate) const WAITING: &str = "SELECT name, room, first_named_s, last_named_s, source, named_by \
     FROM waiting WHERE name > ?1 ORDER BY name LIMIT ?2";

pub(crate) const GROUP_LOG: &str = "SELECT id, at, domain, decision, a_day, reason, who, \
     NOT EXISTS (SELECT 1 FROM group_decisions AS newer WHERE newer.domain = log.domain AND newer.id > log.id) \
     FROM group_decisions AS log WHERE id < ?1 ORDER BY id DESC LIMIT ?2";

pub(crate) const HOST_LOG: &str = "SELECT id, at, host, decision, reason, who, \
     NOT EXISTS (SELECT 1 FROM host_decisions AS newer WHERE newer.host = log.host AND newer.id > log.id) \
     FROM host_decisions AS log WHERE id < ?1 ORDER BY id DESC LIMIT ?2";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Groups that are held, the largest first.
    Held,
    /// Groups with a decision in force, the newest first.
    Decided,
}

/// A host of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub state: String,
    pub first_seen: Timestamp,
    pub software: Option<String>,
    pub held_back: bool,
}

/// The hosts of a group, and what speaks for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members {
    pub newest: Vec<Member>,
    pub states: Vec<(String, u64)>,
    /// Hosts by software, the most frequent first.
    pub software: Vec<(String, u64)>,
    /// Hosts by the day on which they were added, the newest first. A day is given by its start.
    pub came: Vec<(Timestamp, u64)>,
    /// Responding hosts that a list contains unless the group is denied.
    pub listed: u64,
    /// When the first of them was added.
    pub known_since: Option<Timestamp>,
    pub named_by: NamedBy,
    /// Its hosts among the newest names of the census.
    pub newest_names: u64,
    /// The number of these names, at most a thousand.
    pub newest_names_of: u64,
}

/// An entry of the log of decisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedDecision {
    /// What was decided about what. Groups and hosts have separate id sequences.
    pub about: About,
    pub id: i64,
    pub at: Timestamp,
    pub reason: String,
    pub who: String,
    /// Whether it can be undone: no later decision is about the same group or host.
    pub is_newest: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    Group {
        domain: String,
        decision: Decision,
    },
    Host {
        name: String,
        decision: HostDecision,
    },
}

/// Where the log continues: decisions below these ids are older.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogCursor {
    /// Id among decisions about groups.
    pub group_id: i64,
    /// Id among decisions about hosts.
    pub host_id: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPage {
    pub rows: Vec<LoggedDecision>,
    /// Where the next page begins. `None` after the last page.
    pub next: Option<LogCursor>,
}

impl Reader {
    /// At most `limit` groups, after the first `skip`.
    pub fn groups_to_review(
        &self,
        which: Which,
        skip: u32,
        limit: u32,
    ) -> Result<Vec<StoredGroup>, StoreError> {
        let sql = match which {
            Which::Held => HELD,
            Which::Decided => DECIDED,
        };
        let mut statement = self.connection().prepare_cached(sql)?;
        let rows = statement.query_map([limit, skip], |row| Ok(groups::stored(row)))?;
        rows.collect::<Result<Vec<_>, _>>()?.into_iter().collect()
    }

    /// The hosts of a group: its newest ones, at most `limit`, and counts of all. Takes time in
    /// proportion to the group's size.
    pub fn members(
        &self,
        domain: &str,
        limit: u32,
        now: Timestamp,
        calendar: Calendar,
    ) -> Result<Members, StoreError> {
        let snapshot = self.connection().unchecked_transaction()?;
        let mut members = Members {
            named_by: evidence::named_by(&snapshot, domain, now, calendar)?,
            ..Members::default()
        };
        let mut states = snapshot.prepare_cached(STATES)?;
        let mut rows = states.query([domain])?;
        while let Some(row) = rows.next()? {
            let (state, hosts) = counted(row)?;
            if state == StateName::Alive.as_str() {
                members.listed = number(row, 2)?;
            }
            let first = Timestamp(row.get(3)?);
            members.known_since = Some(members.known_since.map_or(first, |at| at.min(first)));
            members.states.push((state, hosts));
        }
        (members.newest_names_of, members.newest_names) = snapshot
            .prepare_cached(SHARE)?
            .query_row(params![domain, NEWEST_MAX], |row| {
                Ok((number(row, 0)?, number(row, 1)?))
            })?;
        members.newest = snapshot
            .prepare_cached(MEMBERS)?
            .query_map(params![domain, limit], |row| {
                Ok(Member {
                    name: row.get(0)?,
                    state: row.get(1)?,
                    first_seen: Timestamp(row.get(2)?),
                    software: row.get(3)?,
                    held_back: row.get(4)?,
                })
            })?
            .collect::<Result<_, _>>()?;
        members.software = snapshot
            .prepare_cached(SOFTWARE)?
            .query_map(params![domain, COUNTED_MAX], counted)?
            .collect::<Result<_, _>>()?;
        members.came = snapshot
            .prepare_cached(CAME)?
            .query_map(params![domain, COUNTED_MAX, DAY_MS], |row| {
                let day: i64 = row.get(0)?;
                Ok((Timestamp(day.saturating_mul(DAY_MS)), number(row, 1)?))
            })?
            .collect::<Result<_, _>>()?;
        Ok(members)
    }

    /// At most `limit` names that wait for room, sorted by name, after the name `after`.
    pub fn waiting_names(
        &self,
        after: &str,
        limit: u32,
    ) -> Result<Vec<(String, Waiter)>, StoreError> {
        let mut statement = self.connection().prepare_cached(WAITING)?;
        let mut rows = statement.query(params![after, limit])?;
        let mut names = Vec::new();
        while let Some(row) = rows.next()? {
            names.push((row.get(0)?, admitted::waiter(row)?));
        }
        Ok(names)
    }

    /// At most `limit` decisions about groups and hosts, the newest first, from `cursor` on.
    pub fn decisions(&self, cursor: Option<LogCursor>, limit: u32) -> Result<LogPage, StoreError> {
        let LogCursor {
            mut group_id,
            mut host_id,
        } = cursor.unwrap_or(LogCursor {
            group_id: i64::MAX,
            host_id: i64::MAX,
        });
        let snapshot = self.connection().unchecked_transaction()?;
        // One extra row, to know whether there is another page.
        let fetched = i64::from(limit).saturating_add(1);
        let groups: Vec<LoggedDecision> = snapshot
            .prepare_cached(GROUP_LOG)?
            .query_map([group_id, fetched], of_group)?
            .collect::<Result<_, _>>()?;
        let hosts: Vec<LoggedDecision> = snapshot
            .prepare_cached(HOST_LOG)?
            .query_map([host_id, fetched], of_host)?
            .collect::<Result<_, _>>()?;
        let (mut groups, mut hosts) = (groups.into_iter().peekable(), hosts.into_iter().peekable());
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut rows = Vec::new();
        while rows.len() < limit {
            // Within a kind, ids decide, since clocks jump; between kinds, only the time can.
            let is_groups_turn = match (groups.peek(), hosts.peek()) {
                (Some(group), Some(host)) => group.at >= host.at,
                (group, _) => group.is_some(),
            };
            let (next, id) = if is_groups_turn {
                (groups.next(), &mut group_id)
            } else {
                (hosts.next(), &mut host_id)
            };
            let Some(row) = next else { break };
            *id = row.id;
            rows.push(row);
        }
        let has_more = groups.peek().is_some() || hosts.peek().is_some();
        Ok(LogPage {
            rows,
            next: has_more.then_some(LogCursor { group_id, host_id }),
        })
    }
}

fn counted(row: &Row<'_>) -> rusqlite::Result<(String, u64)> {
    Ok((row.get(0)?, number(row, 1)?))
}

/// A column that is a count.
fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or_default())
}

fn of_group(row: &Row<'_>) -> rusqlite::Result<LoggedDecision> {
    Ok(LoggedDecision {
        id: row.get(0)?,
        at: Timestamp(row.get(1)?),
        about: About::Group {
            domain: row.get(2)?,
            decision: groups::decision(row)?,
        },
        reason: row.get(5)?,
        who: row.get(6)?,
        is_newest: row.get(7)?,
    })
}

fn of_host(row: &Row<'_>) -> rusqlite::Result<LoggedDecision> {
    let word: String = row.get(3)?;
    Ok(LoggedDecision {
        id: row.get(0)?,
        at: Timestamp(row.get(1)?),
        about: About::Host {
            name: row.get(2)?,
            decision: HostDecision::parse(&word),
        },
        reason: row.get(4)?,
        who: row.get(5)?,
        is_newest: row.get(6)?,
    })
}
