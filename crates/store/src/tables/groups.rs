//! The tables `groups`, `grouping`, `hosters` and `group_decisions`: hosts by registered domain,
//! and the operator's decisions about whole domains.
//!
//! Triggers keep the groups' sizes correct. Decisions are never changed, only superseded. The rule
//! that maps names to domains comes from the caller, since only the census knows the list of public
//! suffixes. One request groups a limited number of hosts.

pub(crate) mod decide;
pub(crate) mod evidence;

use std::sync::Arc;

use admission::Names;
use census::group::{Decision, Group, Place, Turn};
use census::time::{Calendar, Jitter, Timestamp};
use protocol::Host;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::db::error::StoreError;
use crate::db::reader::Reader;
use crate::queue::handle::Writer;
use crate::tables::host_decisions::{Ruling, Undone};
use crate::tables::row::HostRow;

/// Hosts grouped per request: takes some milliseconds, so that other writes don't wait long.
const PORTION_MAX: u32 = 500;

/// Most decisions shown per group, the newest first.
const DECISIONS_SHOWN_MAX: u32 = 20;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredGroup {
    pub domain: String,
    /// Size, decision and rate of the group.
    pub group: Group,
    /// Reason of the decision. `None` without a decision.
    pub reason: Option<String>,
    pub decided_at: Option<Timestamp>,
    /// Hosts of the group that are held back: when the group was over the threshold, they were new
    /// or had never been alive.
    pub held_back: u64,
}

/// A decision about a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    pub at: Timestamp,
    /// What was decided. [`Decision::None`] takes the previous decision back.
    pub decision: Decision,
    pub reason: String,
    pub who: String,
}

/// A decision about a group that was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// With which it can be undone.
    pub id: i64,
    /// Hosts of the group.
    pub hosts: u64,
}

/// Counts of held groups and hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeldCounts {
    /// Groups that are over the threshold and have no decision.
    pub groups: u64,
    /// Hosts of these groups that are held back.
    pub hosts: u64,
    /// Groups that the operator denies.
    pub denied: u64,
}

/// `INDEXED BY`, because SQLite would otherwise use `hosts_group` and sort.
pub(crate) const UNGROUPED: &str = "SELECT id, name, NULL FROM hosts INDEXED BY hosts_ungrouped WHERE group_id IS NULL AND id > ?1 ORDER BY id LIMIT ?2";

pub(crate) const AGAIN: &str = "SELECT id, name, (SELECT domain FROM groups WHERE groups.id = group_id) FROM hosts WHERE id > ?1 ORDER BY id LIMIT ?2";

pub(crate) const MAKE: &str =
    "INSERT INTO groups (domain) VALUES (?1) ON CONFLICT (domain) DO NOTHING";

pub(crate) const JOIN: &str =
    "UPDATE hosts SET group_id = (SELECT id FROM groups WHERE domain = ?2) WHERE id = ?1";

pub(crate) const DROP_EMPTY: &str =
    "DELETE FROM groups WHERE domain = ?1 AND hosts = 0 AND decision = 'none'";

pub(crate) const PUT_THRESHOLD: &str = "UPDATE grouping SET threshold = ?1 WHERE id = 1";

pub(crate) const DROP_HOSTERS: &str = "DELETE FROM hosters";

pub(crate) const PUT_HOSTER: &str = "INSERT INTO hosters (domain) VALUES (?1)";

/// Writes unchanged sizes to run the triggers that compare sizes with the threshold.
pub(crate) const COMPARE: &str = "UPDATE groups SET hosts = hosts WHERE is_over <> \
     (hosts > (SELECT threshold FROM grouping WHERE id = 1) AND domain NOT IN (SELECT domain FROM hosters))";

/// The columns of a [`StoredGroup`].
macro_rules! columns {
    () => {
        "id, domain, hosts, is_over, decision, a_day, reason, decided_at, asked_since, asked, \
         (SELECT count(*) FROM hosts WHERE group_id = groups.id AND held_back = 1) AS held_back"
    };
}
pub(crate) use columns;

pub(crate) const OF_HOST: &str =
    "SELECT hosts, is_over, decision, a_day, asked_since, asked FROM groups WHERE id = ?1";

pub(crate) const BY_DOMAIN: &str = concat!("SELECT ", columns!(), " FROM groups WHERE domain = ?1");

pub(crate) const BY_ID: &str = concat!("SELECT ", columns!(), " FROM groups WHERE id = ?1");

pub(crate) const LARGEST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM groups WHERE ?1 = 0 OR (is_over = 1 AND decision = 'none') ORDER BY hosts DESC, domain LIMIT ?2"
);

pub(crate) const OLDER: &str = "SELECT 1 FROM hosts WHERE group_id = ?1 AND held_back = 0 AND id < ?2 AND state = 'alive' LIMIT 1";

pub(crate) const COUNT: &str = "UPDATE groups SET asked_since = ?2, asked = ?3 WHERE id = ?1";

pub(crate) const PUT_OFF: &str = "UPDATE hosts SET due = ?2 WHERE id = ?1";

pub(crate) const DECISIONS: &str = "SELECT at, decision, a_day, reason, who FROM group_decisions WHERE domain = ?1 ORDER BY id DESC LIMIT ?2";

pub(crate) const COUNT_HELD: &str =
    "SELECT count(*) FROM groups WHERE is_over = 1 AND decision = 'none'";

pub(crate) const COUNT_HELD_HOSTS: &str = "SELECT count(*) FROM groups JOIN hosts ON hosts.group_id = groups.id AND hosts.held_back = 1 \
     WHERE is_over = 1 AND decision = 'none'";

pub(crate) const COUNT_DENIED: &str = "SELECT count(*) FROM groups WHERE decision = 'deny'";

impl Writer {
    /// From now on, groups with more than `threshold` hosts are over the threshold. This includes
    /// existing groups.
    pub async fn set_group_threshold(&self, threshold: u32) -> Result<(), StoreError> {
        self.call(move |c| {
            c.execute(PUT_THRESHOLD, [threshold])?;
            c.execute(COMPARE, [])?;
            Ok(())
        })
        .await
    }

    /// From now on, the groups of these registered domains, and of no others, are never over the
    /// threshold.
    pub async fn set_hosters(&self, domains: Vec<String>) -> Result<(), StoreError> {
        self.call(move |c| {
            c.execute(DROP_HOSTERS, [])?;
            for domain in &domains {
                c.execute(PUT_HOSTER, [domain])?;
            }
            c.execute(COMPARE, [])?;
            Ok(())
        })
        .await
    }

    /// Groups a limited number of hosts that have no group yet, after row `after`.
    ///
    /// - `Ok(Some(last))` if there may be more hosts after row `last`
    /// - `Ok(None)` if none was left
    pub async fn group_new(
        &self,
        names: Arc<Names>,
        after: i64,
    ) -> Result<Option<i64>, StoreError> {
        self.call(move |c| group(c, UNGROUPED, &names, after)).await
    }

    /// As [`Writer::group_new`] for all hosts: hosts whose registered domain is different according
    /// to `names` change their group.
    pub async fn group_again(
        &self,
        names: Arc<Names>,
        after: i64,
    ) -> Result<Option<i64>, StoreError> {
        self.call(move |c| group(c, AGAIN, &names, after)).await
    }

    /// Decides about a registered domain, with or without hosts, and keeps the decision
    /// permanently.
    pub async fn decide_group(
        &self,
        domain: String,
        decided: Decided,
        calendar: Calendar,
    ) -> Result<Recorded, StoreError> {
        self.call(move |c| decide::decide(c, &domain, &decided, calendar))
            .await
    }

    /// Undoes the newest decision about a group, by its id. The decision before it is in force
    /// again, with its original reason. Returns the domain and the decision in force.
    pub async fn undo_group_decision(
        &self,
        id: i64,
        ruling: Ruling,
        calendar: Calendar,
    ) -> Result<Undone<(String, Decision)>, StoreError> {
        self.call(move |c| decide::undo(c, id, &ruling, calendar))
            .await
    }
}

impl Reader {
    /// The group of this registered domain. `None` if it has neither hosts nor a decision.
    pub fn group(&self, domain: &str) -> Result<Option<StoredGroup>, StoreError> {
        find(self.connection(), BY_DOMAIN, domain)
    }

    /// At most `limit` groups by size, the largest first: all groups, or only held ones.
    pub fn largest_groups(
        &self,
        held_only: bool,
        limit: u32,
    ) -> Result<Vec<StoredGroup>, StoreError> {
        let mut statement = self.connection().prepare_cached(LARGEST)?;
        let rows = statement.query_map(params![held_only, limit], |row| Ok(stored(row)))?;
        rows.collect::<Result<Vec<_>, _>>()?.into_iter().collect()
    }

    /// The decisions about a registered domain, the newest first, at most twenty.
    pub fn group_decisions(&self, domain: &str) -> Result<Vec<Decided>, StoreError> {
        let mut statement = self.connection().prepare_cached(DECISIONS)?;
        let rows = statement.query_map(params![domain, DECISIONS_SHOWN_MAX], |row| {
            Ok(Decided {
                at: Timestamp(row.get("at")?),
                decision: decision(row)?,
                reason: row.get("reason")?,
                who: row.get("who")?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Counts of held groups and hosts.
    pub fn held(&self) -> Result<HeldCounts, StoreError> {
        let count = |sql: &str| -> rusqlite::Result<u64> {
            let count: i64 = self.connection().query_row(sql, [], |row| row.get(0))?;
            Ok(unsigned(count))
        };
        Ok(HeldCounts {
            groups: count(COUNT_HELD)?,
            hosts: count(COUNT_HELD_HOSTS)?,
            denied: count(COUNT_DENIED)?,
        })
    }
}

/// Makes a group without hosts, if there is none of this registered domain.
pub(crate) fn make(connection: &Connection, domain: &str) -> Result<(), StoreError> {
    connection.prepare_cached(MAKE)?.execute([domain])?;
    Ok(())
}

/// Deletes a group without hosts and decision.
pub(crate) fn drop_empty(connection: &Connection, domain: &str) -> Result<(), StoreError> {
    connection.prepare_cached(DROP_EMPTY)?.execute([domain])?;
    Ok(())
}

pub(crate) fn of_row(connection: &Connection, id: i64) -> Result<Option<StoredGroup>, StoreError> {
    find(connection, BY_ID, id)
}

/// A check that may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    Ordinary,
    /// Its group is held. It counts for all such groups, also if the host has a place: otherwise a
    /// thousand farms' first hosts, and those that evidence freed, would add to their share.
    OfHeld,
}

/// Whether the group of a due host lets it be checked now. Writes the group's count, the host's new
/// due time, or that evidence gives it a place. `has_room` is whether held groups have a start
/// left.
pub(crate) fn start(
    connection: &Connection,
    row: &HostRow,
    now: Timestamp,
    jitter: Jitter,
    calendar: Calendar,
    has_room: bool,
) -> Result<Option<Start>, StoreError> {
    let Some(id) = row.group_id else {
        return Ok(Some(Start::Ordinary));
    };
    let found = connection
        .prepare_cached(OF_HOST)?
        .query_row([id], group_columns)
        .optional()?;
    let Some(group) = found else {
        return Ok(Some(Start::Ordinary));
    };
    let ordinary = if group.is_held() {
        Start::OfHeld
    } else {
        Start::Ordinary
    };
    let is_held_back = row.place == Place::HeldBack;
    if is_held_back
        && group.is_held()
        && has_room
        && evidence::free(connection, row, now, calendar)?
    {
        return Ok(Some(ordinary));
    }
    let turn = match group.turn(&row.record, row.place, now, jitter, calendar) {
        Turn::Ordinary | Turn::Counted { .. }
            if group.is_held()
                && !has_room
                && (is_held_back
                    || Group::oldest_can_wait(&row.record, now, calendar)
                    || has_older(connection, id, row.id)?) =>
        {
            Turn::PutOff {
                until: group.next_turn(row.place, now, jitter, calendar),
            }
        }
        turn @ (Turn::Ordinary | Turn::Counted { .. } | Turn::PutOff { .. }) => turn,
    };
    match turn {
        Turn::Ordinary => Ok(Some(ordinary)),
        Turn::Counted { since, asked } => {
            connection
                .prepare_cached(COUNT)?
                .execute(params![id, since.0, asked])?;
            Ok(Some(ordinary))
        }
        Turn::PutOff { until } => {
            connection
                .prepare_cached(PUT_OFF)?
                .execute(params![row.id, until.0])?;
            Ok(None)
        }
    }
}

/// Whether a host with a place in the group that responds is older than this one.
fn has_older(connection: &Connection, group_id: i64, host_id: i64) -> Result<bool, StoreError> {
    let mut statement = connection.prepare_cached(OLDER)?;
    Ok(statement.exists([group_id, host_id])?)
}

/// Whether the operator denies the group of a host.
pub(crate) fn is_denied(connection: &Connection, group_id: i64) -> Result<bool, StoreError> {
    let group = connection
        .prepare_cached(OF_HOST)?
        .query_row([group_id], group_columns)
        .optional()?;
    Ok(group.is_some_and(|group| group.decision == Decision::Deny))
}

fn group(
    connection: &Connection,
    which: &str,
    names: &Names,
    after: i64,
) -> Result<Option<i64>, StoreError> {
    let portion = {
        let mut statement = connection.prepare_cached(which)?;
        let rows = statement.query_map(params![after, PORTION_MAX], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
        rows.collect::<Result<Vec<(i64, String, Option<String>)>, _>>()?
    };
    for (id, name, former) in &portion {
        // A host whose name is no longer valid is parked, and forms its own group.
        let domain = Host::parse(name).map(|host| names.registered_domain(&host));
        let domain = domain.as_deref().unwrap_or(name);
        if former.as_deref() != Some(domain) {
            make(connection, domain)?;
            connection
                .prepare_cached(JOIN)?
                .execute(params![id, domain])?;
        }
    }
    Ok(portion.last().map(|(id, _, _)| *id))
}

fn find(
    connection: &Connection,
    sql: &str,
    key: impl rusqlite::ToSql,
) -> Result<Option<StoredGroup>, StoreError> {
    connection
        .prepare_cached(sql)?
        .query_row([key], |row| Ok(stored(row)))
        .optional()?
        .transpose()
}

pub(crate) fn stored(row: &Row<'_>) -> Result<StoredGroup, StoreError> {
    Ok(StoredGroup {
        domain: row.get("domain")?,
        group: group_columns(row)?,
        reason: row.get("reason")?,
        decided_at: row.get::<_, Option<i64>>("decided_at")?.map(Timestamp),
        held_back: unsigned(row.get("held_back")?),
    })
}

pub(crate) fn group_columns(row: &Row<'_>) -> rusqlite::Result<Group> {
    Ok(Group {
        hosts: unsigned(row.get("hosts")?),
        is_over: row.get("is_over")?,
        decision: decision(row)?,
        asked_since: row.get::<_, Option<i64>>("asked_since")?.map(Timestamp),
        asked: row.get("asked")?,
    })
}

/// The schema allows no other values.
pub(crate) fn decision(row: &Row<'_>) -> rusqlite::Result<Decision> {
    let word: String = row.get("decision")?;
    Ok(match word.as_str() {
        "allow" => Decision::Allow,
        "deny" => Decision::Deny,
        "limit" => Decision::Limit {
            a_day: row.get("a_day")?,
        },
        _ => Decision::None,
    })
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests;
