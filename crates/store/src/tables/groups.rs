//! The tables `groups`, `grouping` and `group_decisions`: hosts by registered domain, and what the operator decided about whole domains.
//!
//! In: hosts without a group, decisions, what made-up names show. Out: groups with their sizes, which triggers keep true. Refused: nothing; decisions are never changed.
//!
//! Only the census knows the list of public suffixes, so it hands in the rule for names; a portion of hosts is grouped by one request.

pub(crate) mod decide;
pub(crate) mod wildcard;

use std::sync::Arc;

use admission::Names;
use census::group::{Decision, Group, Turn};
use census::time::{Calendar, Jitter, Timestamp};
use protocol::Host;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::db::error::StoreError;
use crate::db::reader::Reader;
use crate::tables::host_decisions::{Ruling, Undone};
use crate::tables::hosts::row::HostRow;
use crate::writer::handle::Writer;
pub use wildcard::WildcardLook;

/// Hosts grouped by one request: some milliseconds, so that the writer is not held up.
const PORTION_MAX: u32 = 500;

/// Decisions shown of a group, the newest.
const DECISIONS_SHOWN_MAX: u32 = 20;

/// A group with its domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredGroup {
    /// The registered domain.
    pub domain: String,
    /// What is known of it.
    pub group: Group,
    /// Why it was decided on; none without a decision.
    pub reason: Option<String>,
    /// When.
    pub decided_at: Option<Timestamp>,
    /// Of its hosts, those that came in, or had never lived, when it was over the threshold.
    pub held_back: u64,
    /// Whether any name below it resolves, as far as that was looked at.
    pub wildcard: WildcardLook,
}

/// A decision about a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// When.
    pub at: Timestamp,
    /// What; `none` takes back what was decided before.
    pub decision: Decision,
    /// Why.
    pub reason: String,
    /// Who, and how.
    pub who: String,
}

/// How much is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeldCounts {
    /// Groups that are over the threshold and that nobody has looked at.
    pub groups: u64,
    /// Their hosts that are held back.
    pub hosts: u64,
    /// Groups that the operator denies.
    pub denied: u64,
}

/// SQLite would rather take `hosts_group` and sort.
pub(crate) const UNGROUPED: &str = "SELECT id, name, NULL FROM hosts INDEXED BY hosts_ungrouped WHERE group_id IS NULL AND id > ?1 ORDER BY id LIMIT ?2";

pub(crate) const AGAIN: &str = "SELECT id, name, (SELECT domain FROM groups WHERE groups.id = group_id) FROM hosts WHERE id > ?1 ORDER BY id LIMIT ?2";

pub(crate) const MAKE: &str =
    "INSERT INTO groups (domain) VALUES (?1) ON CONFLICT (domain) DO NOTHING";

pub(crate) const JOIN: &str =
    "UPDATE hosts SET group_id = (SELECT id FROM groups WHERE domain = ?2) WHERE id = ?1";

pub(crate) const PUT_THRESHOLD: &str = "UPDATE grouping SET threshold = ?1 WHERE id = 1";

/// Writes sizes as they are, for the triggers that compare them with the threshold.
pub(crate) const COMPARE: &str = "UPDATE groups SET hosts = hosts WHERE is_over <> (hosts > ?1)";

/// The columns of a [`StoredGroup`].
macro_rules! columns {
    () => {
        "id, domain, hosts, is_over, decision, a_day, reason, decided_at, asked_since, asked, \
         wildcard, wildcard_at, wildcard_tried, wildcard_trouble, \
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

pub(crate) const COUNT: &str = "UPDATE groups SET asked_since = ?2, asked = ?3 WHERE id = ?1";

pub(crate) const PUT_OFF: &str = "UPDATE hosts SET due = ?2 WHERE id = ?1";

pub(crate) const DECISIONS: &str = "SELECT at, decision, a_day, reason, who FROM group_decisions WHERE domain = ?1 ORDER BY id DESC LIMIT ?2";

pub(crate) const COUNT_HELD: &str =
    "SELECT count(*) FROM groups WHERE is_over = 1 AND decision = 'none'";

pub(crate) const COUNT_HELD_HOSTS: &str = "SELECT count(*) FROM groups JOIN hosts ON hosts.group_id = groups.id AND hosts.held_back = 1 \
     WHERE is_over = 1 AND decision = 'none'";

pub(crate) const COUNT_DENIED: &str = "SELECT count(*) FROM groups WHERE decision = 'deny'";

impl Writer {
    /// Has groups grow too big at more than `threshold` hosts from now on, those that are there among them.
    ///
    /// # Errors
    /// A fault of ours; nothing was changed.
    pub async fn set_group_threshold(&self, threshold: u32) -> Result<(), StoreError> {
        self.call(move |c| {
            c.execute(PUT_THRESHOLD, [threshold])?;
            c.execute(COMPARE, [threshold])?;
            Ok(())
        })
        .await
    }

    /// Groups hosts that have no group yet, a portion of those after row `after`.
    ///
    /// - `Ok(Some(last))` if there may be more, after this row
    /// - `Ok(None)` if none was left
    ///
    /// # Errors
    /// A fault of ours; nothing was changed.
    pub async fn group_new(
        &self,
        names: Arc<Names>,
        after: i64,
    ) -> Result<Option<i64>, StoreError> {
        self.call(move |c| group(c, UNGROUPED, &names, after)).await
    }

    /// As [`Writer::group_new`] for all hosts: those whose registered domain is another by `names` change their group.
    ///
    /// # Errors
    /// A fault of ours; nothing was changed.
    pub async fn group_again(
        &self,
        names: Arc<Names>,
        after: i64,
    ) -> Result<Option<i64>, StoreError> {
        self.call(move |c| group(c, AGAIN, &names, after)).await
    }

    /// Decides about a registered domain, whether it has hosts or not, and keeps the decision for ever. Gives how many hosts it has.
    ///
    /// # Errors
    /// A fault of ours; nothing was decided.
    pub async fn decide_group(
        &self,
        domain: String,
        decided: Decided,
        calendar: Calendar,
    ) -> Result<u64, StoreError> {
        self.call(move |c| decide::decide(c, &domain, &decided, calendar))
            .await
    }

    /// Undoes the newest decision about a group, by its id: what was decided before it is in force
    /// again, with the reason of then. Gives the domain and what is in force.
    ///
    /// # Errors
    /// A fault of ours; nothing was undone.
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
    /// The group of this registered domain; nothing when it has no hosts and nobody decided about it.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn group(&self, domain: &str) -> Result<Option<StoredGroup>, StoreError> {
        find(self.connection(), BY_DOMAIN, domain)
    }

    /// Groups by their sizes, the largest first, at most `limit`; those that are held alone, or all.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn largest_groups(
        &self,
        held_only: bool,
        limit: u32,
    ) -> Result<Vec<StoredGroup>, StoreError> {
        let mut statement = self.connection().prepare_cached(LARGEST)?;
        let rows = statement.query_map(params![held_only, limit], |row| Ok(stored(row)))?;
        rows.collect::<Result<Vec<_>, _>>()?.into_iter().collect()
    }

    /// What was decided about a registered domain, the newest first, at most twenty.
    ///
    /// # Errors
    /// A fault of ours.
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

    /// How much is held.
    ///
    /// # Errors
    /// A fault of ours.
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

/// The group of a row, with its domain.
pub(crate) fn of_row(connection: &Connection, id: i64) -> Result<Option<StoredGroup>, StoreError> {
    find(connection, BY_ID, id)
}

/// Whether a due host is asked as far as its group has a say. Writes the group's count, or the host's new due time.
pub(crate) fn is_its_turn(
    connection: &Connection,
    row: &HostRow,
    now: Timestamp,
    jitter: Jitter,
    calendar: Calendar,
) -> Result<bool, StoreError> {
    let Some(id) = row.group_id else {
        return Ok(true);
    };
    let found = connection
        .prepare_cached(OF_HOST)?
        .query_row([id], group_columns)
        .optional()?;
    let Some(group) = found else {
        return Ok(true);
    };
    match group.turn(&row.record, row.place, now, jitter, calendar) {
        Turn::Ordinary => Ok(true),
        Turn::Counted { since, asked } => {
            connection
                .prepare_cached(COUNT)?
                .execute(params![id, since.0, asked])?;
            Ok(true)
        }
        Turn::PutOff { until } => {
            connection
                .prepare_cached(PUT_OFF)?
                .execute(params![row.id, until.0])?;
            Ok(false)
        }
    }
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
        // One that is no name any more is parked, and stands for itself.
        let domain = Host::parse(name).map(|host| names.registered_domain(&host));
        let domain = domain.as_deref().unwrap_or(name);
        if former.as_deref() != Some(domain) {
            connection.prepare_cached(MAKE)?.execute([domain])?;
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
        wildcard: wildcard::columns(row)?,
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

/// The schema takes no other word.
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
