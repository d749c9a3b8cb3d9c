//! The tables `walks` and `peers_lists`: results of walks through hosts' public conversations, and
//! of reading their peers lists.
//!
//! Also selects the host to walk next. No statement here writes to a host's row, since a walk says
//! nothing about its host (invariant I3).

use std::collections::BTreeMap;

use census::backoff::Backoff;
use census::time::{Jitter, Timestamp};
use protocol::{Host, PeersOutcome, WalkOutcome};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::db::error::StoreError;
use crate::db::reader::Reader;
use crate::queue::handle::Writer;

pub(crate) const PUT_PEERS: &str = "INSERT INTO peers_lists (host_id, outcome) SELECT id, ?2 FROM hosts WHERE name = ?1 \
     ON CONFLICT (host_id) DO UPDATE SET outcome = excluded.outcome WHERE outcome <> excluded.outcome";

pub(crate) const PEERS: &str =
    "SELECT outcome FROM peers_lists JOIN hosts ON hosts.id = host_id WHERE name = ?1";

pub(crate) const COUNT_PEERS: &str = "SELECT outcome, count(*) FROM peers_lists GROUP BY outcome";

pub(crate) const PUT: &str = "INSERT INTO walks (host_id, at, outcome, requests, posts, named, failures, free_at) \
     SELECT id, ?2, ?3, ?4, ?5, ?6, ?7, ?8 FROM hosts WHERE name = ?1 \
     ON CONFLICT (host_id) DO UPDATE SET at = excluded.at, outcome = excluded.outcome, requests = excluded.requests, \
     posts = excluded.posts, named = excluded.named, failures = excluded.failures, free_at = excluded.free_at";

pub(crate) const FIND: &str = "SELECT at, outcome, requests, posts, walks.named, failures, free_at FROM walks \
     JOIN hosts ON hosts.id = host_id WHERE name = ?1";

pub(crate) const COUNT: &str = "SELECT outcome, count(*) FROM walks GROUP BY outcome";

pub(crate) const LAST_ID: &str = "SELECT max(id) FROM hosts";

/// Condition for a walk: the host responds, wants to be found and speaks an API that a walk knows;
/// its group is neither held nor denied; its last walk was long enough ago, and it is not paused.
macro_rules! may_be_walked {
    () => {
        "hosts.state = 'alive' AND hosts.hidden = 0 AND hosts.refuses = 0 AND hosts.held_back = 0 \
         AND hosts.software IN ('mastodon', 'hometown', 'glitchcafe', 'pleroma', 'akkoma', 'rebased', 'gotosocial', 'friendica', \
         'takahe', 'wildebeest', 'mitra', 'misskey', 'calckey', 'firefish', 'sharkey', 'foundkey', 'cherrypick', 'iceshrimp', \
         'iceshrimp.net', 'catodon', 'meisskey', 'nexkey', 'kmyblue') \
         AND NOT EXISTS (SELECT 1 FROM groups WHERE groups.id = hosts.group_id \
         AND (groups.decision = 'deny' OR (groups.decision = 'none' AND groups.is_over = 1))) \
         AND NOT EXISTS (SELECT 1 FROM walks WHERE walks.host_id = hosts.id AND (walks.at > ?2 OR walks.free_at > ?3))"
    };
}

pub(crate) const SILENT_FROM: &str = concat!(
    "SELECT hosts.name FROM peers_lists CROSS JOIN hosts ON hosts.id = peers_lists.host_id \
     WHERE peers_lists.outcome IN ('refused', 'none') AND peers_lists.host_id >= ?1 AND ",
    may_be_walked!(),
    " ORDER BY peers_lists.host_id LIMIT 1"
);

pub(crate) const ANY_FROM: &str = concat!(
    "SELECT hosts.name FROM hosts WHERE hosts.id >= ?1 AND ",
    may_be_walked!(),
    " ORDER BY hosts.id LIMIT 1"
);

pub(crate) const MAY_BE_WALKED: &str = concat!(
    "SELECT EXISTS (SELECT 1 FROM hosts WHERE hosts.name = ?1 AND ",
    may_be_walked!(),
    ")"
);

pub(crate) const IS_LATE: &str = "SELECT EXISTS (SELECT 1 FROM hosts WHERE class = 0 AND in_flight = 0 AND due IS NOT NULL AND due < ?1)";

/// The last walk through a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastWalk {
    pub at: Timestamp,
    pub outcome: WalkOutcome,
    pub requests: u32,
    pub posts: u32,
    /// Number of hosts that it found, including known ones.
    pub named: u32,
    /// Consecutive failures, and until when the host is left alone.
    pub backoff: Backoff,
}

/// Times that decide whether a walk may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkTimes {
    pub now: Timestamp,
    /// Hosts that were walked after this time are not eligible yet.
    pub walked_before: Timestamp,
    /// If a responding host has been due since before this time, its check takes precedence and no
    /// walk begins.
    pub late_before: Timestamp,
}

impl Writer {
    /// Stores how reading a host's peers list ended.
    /// Fails on a database error; what was remembered before is kept.
    pub async fn remember_peers(
        &self,
        host: &Host,
        outcome: PeersOutcome,
    ) -> Result<(), StoreError> {
        let host = host.clone();
        self.call(move |c| {
            c.prepare_cached(PUT_PEERS)?
                .execute(params![host.as_str(), outcome.as_str()])?;
            Ok(())
        })
        .await
    }

    /// Stores a walk through a host.
    pub async fn remember_walk(&self, host: &Host, walk: LastWalk) -> Result<(), StoreError> {
        let host = host.clone();
        self.call(move |c| {
            c.prepare_cached(PUT)?.execute(params![
                host.as_str(),
                walk.at.0,
                walk.outcome.as_str(),
                walk.requests,
                walk.posts,
                walk.named,
                walk.backoff.failures,
                walk.backoff.free_at.map(|at| at.0),
            ])?;
            Ok(())
        })
        .await
    }

    /// The last walk through a host. `None` if there was none.
    pub async fn last_walk(&self, host: &Host) -> Result<Option<LastWalk>, StoreError> {
        let host = host.clone();
        self.call(move |c| find(c, &host)).await
    }

    /// The host to walk next, drawn by `start`. Hosts whose peers list was refused or does not
    /// exist come first. `None` if no host may be walked now, or if responding hosts wait to be
    /// checked.
    pub async fn next_walk(
        &self,
        start: Jitter,
        times: WalkTimes,
    ) -> Result<Option<Host>, StoreError> {
        self.call(move |c| next(c, start, times)).await
    }

    /// Whether a host may be walked now.
    pub async fn may_be_walked(&self, host: &Host, times: WalkTimes) -> Result<bool, StoreError> {
        let host = host.clone();
        self.call(move |c| {
            let mut statement = c.prepare_cached(MAY_BE_WALKED)?;
            let moments = (host.as_str(), times.walked_before.0, times.now.0);
            Ok(statement.query_row(moments, |row| row.get(0))?)
        })
        .await
    }
}

impl Reader {
    /// The last walk through a host. `None` if there was none.
    pub fn last_walk(&self, host: &Host) -> Result<Option<LastWalk>, StoreError> {
        find(self.connection(), host)
    }

    /// How reading a host's last peers list ended. `None` if there was none.
    pub fn peers_outcome(&self, host: &Host) -> Result<Option<String>, StoreError> {
        let mut statement = self.connection().prepare_cached(PEERS)?;
        let outcome = statement.query_row([host.as_str()], |row| row.get(0));
        Ok(outcome.optional()?)
    }

    /// Number of hosts by how reading their last peers list ended.
    pub fn peers_outcomes(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        counts(self.connection(), COUNT_PEERS)
    }

    /// Number of hosts by how the last walk through them ended.
    pub fn walk_outcomes(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        counts(self.connection(), COUNT)
    }
}

fn counts(connection: &Connection, sql: &str) -> Result<BTreeMap<String, u64>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        let count: i64 = row.get(1)?;
        Ok((row.get(0)?, u64::try_from(count).unwrap_or(0)))
    })?;
    rows.map(|row| Ok(row?)).collect()
}

fn next(
    connection: &Connection,
    start: Jitter,
    times: WalkTimes,
) -> Result<Option<Host>, StoreError> {
    let is_late: bool = connection
        .prepare_cached(IS_LATE)?
        .query_row([times.late_before.0], |row| row.get(0))?;
    if is_late {
        return Ok(None);
    }
    let last: Option<i64> = connection
        .prepare_cached(LAST_ID)?
        .query_row([], |row| row.get(0))?;
    let last = u64::try_from(last.unwrap_or(0)).unwrap_or(0);
    let drawn = i64::try_from(start.of(last)).unwrap_or(i64::MAX);
    for sql in [SILENT_FROM, ANY_FROM] {
        for from in [drawn, 0] {
            let mut statement = connection.prepare_cached(sql)?;
            let moments = (from, times.walked_before.0, times.now.0);
            let found: Option<String> =
                statement.query_row(moments, |row| row.get(0)).optional()?;
            if let Some(host) = found.and_then(|name| Host::parse(&name).ok()) {
                return Ok(Some(host));
            }
        }
    }
    Ok(None)
}

fn find(connection: &Connection, host: &Host) -> Result<Option<LastWalk>, StoreError> {
    let mut statement = connection.prepare_cached(FIND)?;
    let found = statement.query_row([host.as_str()], |row| {
        let word: String = row.get("outcome")?;
        let outcome = WalkOutcome::ALL
            .into_iter()
            .find(|outcome| outcome.as_str() == word);
        Ok(LastWalk {
            at: Timestamp(row.get("at")?),
            // The word of a later version counts as this outcome.
            outcome: outcome.unwrap_or(WalkOutcome::Unresponsive),
            requests: row.get("requests")?,
            posts: row.get("posts")?,
            named: row.get("named")?,
            backoff: Backoff {
                failures: row.get("failures")?,
                free_at: row.get::<_, Option<i64>>("free_at")?.map(Timestamp),
            },
        })
    });
    Ok(found.optional()?)
}

#[cfg(test)]
mod tests;
