//! Writes a decision about a group: the group's row, an entry among the decisions, and the places
//! and due times of the group's hosts.

use census::group::Decision;
use census::time::{Calendar, Jitter};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{BY_DOMAIN, Decided, Recorded, decision, drop_empty, find, make};
use crate::db::error::StoreError;
use crate::tables::host_decisions::{Ruling, Undone};

pub(crate) const DECIDE: &str = "UPDATE groups SET decision = ?2, a_day = ?3, reason = ?4, decided_at = ?5, asked_since = NULL, asked = 0 WHERE domain = ?1";

pub(crate) const RECORD: &str = "INSERT INTO group_decisions (at, domain, decision, a_day, reason, who) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// Remembers the hosts that a decision frees.
pub(crate) const FREE: &str = "INSERT INTO freed (host_id, had_responded) SELECT id, last_alive IS NOT NULL FROM hosts \
     WHERE held_back = 1 AND group_id = (SELECT id FROM groups WHERE domain = ?1) ON CONFLICT (host_id) DO NOTHING";

/// Held-back hosts are accepted, or stay as they are if the group goes on being held. Hosts that
/// are checked daily come due within a day, but not before a day after their last check (invariant
/// I8). The row's id replaces a random number.
pub(crate) const WELCOME: &str = "UPDATE hosts SET \
     held_back = held_back AND ?4 AND (SELECT is_over FROM groups WHERE domain = ?1), \
     due = CASE WHEN in_flight = 0 AND state IN ('discovered', 'alive', 'dying', 'moving') \
           THEN min(due, max(coalesce(last_checked, 0) + ?3, ?2 + (id * 7919 % 1000) * ?3 / 1000)) ELSE due END \
     WHERE group_id = (SELECT id FROM groups WHERE domain = ?1)";

pub(crate) const HOLD_BACK: &str = "UPDATE hosts SET held_back = 1 \
     WHERE (last_alive IS NULL OR EXISTS (SELECT 1 FROM freed WHERE host_id = hosts.id AND had_responded = 1)) \
     AND group_id = (SELECT id FROM groups WHERE domain = ?1 AND is_over = 1)";

pub(crate) const FORGET_FREED: &str = "DELETE FROM freed WHERE host_id IN (SELECT id FROM hosts WHERE group_id = (SELECT id FROM groups WHERE domain = ?1))";

pub(crate) const BY_ID: &str = "SELECT domain, NOT EXISTS (SELECT 1 FROM group_decisions AS newer \
     WHERE newer.domain = group_decisions.domain AND newer.id > ?1) FROM group_decisions WHERE id = ?1";

pub(crate) const BEFORE: &str = "SELECT decision, a_day, reason FROM group_decisions \
     WHERE domain = ?1 AND id < ?2 ORDER BY id DESC LIMIT 1";

/// Decides about a registered domain.
pub(super) fn decide(
    connection: &Connection,
    domain: &str,
    decided: &Decided,
    calendar: Calendar,
) -> Result<Recorded, StoreError> {
    let (a_day, word) = (a_day(decided.decision), decided.decision.as_str());
    make(connection, domain)?;
    let (reason, at) = match decided.decision {
        Decision::None => (None, None),
        Decision::Allow | Decision::Deny | Decision::Limit { .. } => {
            (Some(&decided.reason), Some(decided.at.0))
        }
    };
    connection
        .prepare_cached(DECIDE)?
        .execute(params![domain, word, a_day, reason, at])?;
    let id = connection.prepare_cached(RECORD)?.insert(params![
        decided.at.0,
        domain,
        word,
        a_day,
        decided.reason,
        decided.who
    ])?;
    let is_denied = decided.decision == Decision::Deny;
    let is_taken_back = decided.decision == Decision::None;
    if !is_denied && !is_taken_back {
        connection.prepare_cached(FREE)?.execute([domain])?;
    }
    if !is_denied {
        let day = decided.at.plus(calendar.day(Jitter(0))).since(decided.at);
        let day = i64::try_from(day.as_millis()).unwrap_or(i64::MAX);
        connection.prepare_cached(WELCOME)?.execute(params![
            domain,
            decided.at.0,
            day,
            is_taken_back
        ])?;
    }
    if is_taken_back {
        connection.prepare_cached(HOLD_BACK)?.execute([domain])?;
        connection.prepare_cached(FORGET_FREED)?.execute([domain])?;
    }
    let hosts = find(connection, BY_DOMAIN, domain)?.map_or(0, |found| found.group.hosts);
    drop_empty(connection, domain)?;
    Ok(Recorded { id, hosts })
}

/// Undoes a decision if it is the newest about its group.
pub(super) fn undo(
    connection: &Connection,
    id: i64,
    ruling: &Ruling,
    calendar: Calendar,
) -> Result<Undone<(String, Decision)>, StoreError> {
    let found: Option<(String, bool)> = connection
        .prepare_cached(BY_ID)?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((domain, is_newest)) = found else {
        return Ok(Undone::Unknown);
    };
    if !is_newest {
        return Ok(Undone::Superseded);
    }
    let former: Option<(Decision, String)> = connection
        .prepare_cached(BEFORE)?
        .query_row(params![domain, id], |row| {
            Ok((decision(row)?, row.get("reason")?))
        })
        .optional()?;
    let (decision, reason) = match former {
        Some((decision, reason)) if decision != Decision::None => (decision, reason),
        Some(_) | None => (Decision::None, ruling.reason.clone()),
    };
    let decided = Decided {
        at: ruling.at,
        decision,
        reason,
        who: ruling.who.clone(),
    };
    decide(connection, &domain, &decided, calendar)?;
    Ok(Undone::Done((domain, decision)))
}

fn a_day(decision: Decision) -> Option<u32> {
    match decision {
        Decision::Limit { a_day } => Some(a_day),
        Decision::None | Decision::Allow | Decision::Deny => None,
    }
}
