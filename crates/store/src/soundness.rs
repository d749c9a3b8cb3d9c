//! Checks whether a database is sound: its pages, its references, and the invariants that the
//! census relies on.
//!
//! It lists what is wrong, each with a remedy. It only reads and repairs nothing: the next start
//! repairs what can be repaired, and a backup replaces the rest.
//!
//! While a daemon writes, each check sees one snapshot. The write-ahead log can't be reset until
//! the check ends, so its time is limited.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, InterruptHandle, Row};

use crate::db::error::{StoreError, coded};
use crate::db::reader::Reader;
use crate::tables::history;
use crate::tables::hosts::recovery;

/// Names listed per finding: enough to look at, without a list of a million.
const EXAMPLES_MAX: u32 = 10;

/// Damage messages listed: SQLite's own bound for `integrity_check`.
const DAMAGES_MAX: u32 = 100;

/// Interval at which a check is interrupted once its time is over. A single interrupt would miss a
/// statement that begins at that moment.
const STOP_EVERY: Duration = Duration::from_millis(50);

/// Gives `ok`, or up to [`DAMAGES_MAX`] messages about pages and about indexes that don't match
/// their tables.
const INTEGRITY: &str = "PRAGMA integrity_check";

/// As [`INTEGRITY`], without comparing indexes with their tables.
const INTEGRITY_OF_PAGES: &str = "PRAGMA quick_check";

const FOREIGN_KEYS: &str = "PRAGMA foreign_key_check";

/// A host that may be checked but has no due time would never be checked again.
pub(crate) const NEVER_DUE: &str = "SELECT name FROM hosts WHERE due IS NULL AND state <> 'parked' \
     AND (state <> 'opted_out' OR opted_out_by = 'robots') LIMIT ?1";

/// An alive host needs a time at which it was last alive: listing depends on it.
pub(crate) const ALIVE_NEVER: &str =
    "SELECT name FROM hosts WHERE state = 'alive' AND last_alive IS NULL LIMIT ?1";

/// Only triggers write a group's size.
pub(crate) const GROUP_SIZES: &str = "SELECT domain FROM groups WHERE hosts <> (SELECT count(*) FROM hosts WHERE group_id = groups.id) LIMIT ?1";

/// Only triggers write whether a group is over the threshold.
pub(crate) const GROUPS_OVER: &str = "SELECT domain FROM groups WHERE is_over <> \
     (hosts > (SELECT threshold FROM grouping WHERE id = 1) AND domain NOT IN (SELECT domain FROM hosters)) LIMIT ?1";

/// Each verdict prunes its host's history.
pub(crate) const LONG_HISTORY: &str = "SELECT hosts.name FROM history JOIN hosts ON hosts.id = history.host_id \
     GROUP BY history.host_id HAVING count(*) > ?2 LIMIT ?1";

/// Migrations wrote one row into each table, and nothing deletes it.
pub(crate) const SINGLE_ROWS: &str = "SELECT 'forgotten_key' WHERE NOT EXISTS (SELECT 1 FROM forgotten_key) \
     UNION ALL SELECT 'admission_state' WHERE NOT EXISTS (SELECT 1 FROM admission_state) \
     UNION ALL SELECT 'grouping' WHERE NOT EXISTS (SELECT 1 FROM grouping) LIMIT ?1";

/// How thorough a check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Checks all pages, and compares every index with its table.
    Whole,
    /// Checks all pages. Skips the comparison of indexes with their tables, which takes most of the
    /// time.
    Quick,
}

/// What to do about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    Restore,
    Restart,
    /// Check the hosts once, which gives them a due time again.
    Ask,
    /// Wait: the census repairs it as it checks hosts.
    Wait,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong, with some names.
    pub what: String,
    pub remedy: Remedy,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Soundness {
    /// What is wrong, the worst first.
    pub findings: Vec<Finding>,
    /// Parts that were not finished in time.
    pub unfinished: Vec<&'static str>,
}

/// Something that the census relies on.
struct Invariant {
    /// Query for the names that break it.
    sql: &'static str,
    /// Description of these names in a finding.
    what: &'static str,
    remedy: Remedy,
}

const INVARIANTS: [Invariant; 6] = [
    Invariant {
        sql: SINGLE_ROWS,
        what: "required rows that are missing",
        remedy: Remedy::Restore,
    },
    Invariant {
        sql: GROUP_SIZES,
        what: "groups with a wrong stored number of hosts",
        remedy: Remedy::Restore,
    },
    Invariant {
        sql: GROUPS_OVER,
        what: "groups whose mark does not agree with the threshold",
        remedy: Remedy::Restart,
    },
    Invariant {
        sql: NEVER_DUE,
        what: "hosts that may be checked and are never due",
        remedy: Remedy::Ask,
    },
    Invariant {
        sql: ALIVE_NEVER,
        what: "responding hosts without the time of a response",
        remedy: Remedy::Wait,
    },
    Invariant {
        sql: LONG_HISTORY,
        what: "hosts with more verdicts than are kept",
        remedy: Remedy::Wait,
    },
];

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Restore => "stop the daemon and restore a backup; another program has written to the database, or the disk is failing",
            Self::Restart => "restart the daemon, which corrects them",
            Self::Ask => "check each once with `fedicensus check HOST`",
            Self::Wait => "nothing: the next check of each corrects it",
        })
    }
}

impl Reader {
    /// SQLite's messages about damage: damaged pages, indexes that don't match their tables,
    /// verdicts of missing hosts. Empty if the file is sound. Reads all of it.
    pub fn damage(&self) -> Result<Vec<String>, StoreError> {
        let mut damage = pages(self.connection(), INTEGRITY)?;
        damage.extend(orphans(self.connection())?);
        Ok(damage)
    }

    /// Checks whether the database is sound, for at most `within`. Writes nothing, and works with
    /// or without a running daemon.
    ///
    /// # Errors
    /// Fails on a database error, such as a disk that can't be read. Damage is not an error but a
    /// finding.
    pub fn soundness(&self, depth: Depth, within: Duration) -> Result<Soundness, StoreError> {
        let connection = self.connection();
        let mut look = Look {
            began: Instant::now(),
            within,
            result: Soundness {
                findings: Vec::new(),
                unfinished: Vec::new(),
            },
        };
        let alarm = Alarm::set(connection.get_interrupt_handle(), within)?;
        let sql = match depth {
            Depth::Whole => INTEGRITY,
            Depth::Quick => INTEGRITY_OF_PAGES,
        };
        look.at("pages and indexes", Remedy::Restore, || {
            pages(connection, sql)
        })?;
        look.at("what belongs together", Remedy::Restore, || {
            orphans(connection)
        })?;
        for invariant in &INVARIANTS {
            look.at(invariant.what, invariant.remedy, || {
                broken(connection, invariant)
            })?;
        }
        look.at("names", Remedy::Restart, || bad_names(connection))?;
        drop(alarm);
        Ok(look.result)
    }
}

struct Look {
    began: Instant,
    within: Duration,
    result: Soundness,
}

impl Look {
    /// Checks one thing, if there is time left.
    fn at(
        &mut self,
        what: &'static str,
        remedy: Remedy,
        look: impl FnOnce() -> Result<Vec<String>, rusqlite::Error>,
    ) -> Result<(), StoreError> {
        if self.began.elapsed() >= self.within {
            self.result.unfinished.push(what);
            return Ok(());
        }
        match look() {
            Ok(found) => {
                let found = found.into_iter().map(|what| Finding { what, remedy });
                self.result.findings.extend(found);
            }
            Err(error) => match error.sqlite_error_code() {
                Some(ErrorCode::OperationInterrupted) => self.result.unfinished.push(what),
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                    self.result.findings.push(Finding {
                        what: format!("{what}: {}", coded(&error)),
                        remedy: Remedy::Restore,
                    });
                }
                Some(_) | None => return Err(error.into()),
            },
        }
        Ok(())
    }
}

fn pages(connection: &Connection, sql: &str) -> Result<Vec<String>, rusqlite::Error> {
    let mut check = connection.prepare(sql)?;
    let lines = check.query_map([], |row| row.get::<_, String>(0))?;
    let mut damage = Vec::new();
    for line in lines {
        let line = line?;
        if line != "ok" {
            damage.push(line);
        }
    }
    Ok(damage)
}

fn orphans(connection: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    let mut check = connection.prepare(FOREIGN_KEYS)?;
    let words = |row: &Row<'_>| {
        let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
        Ok(format!("a row of {table} belongs to no row of {parent}"))
    };
    let most = usize::try_from(DAMAGES_MAX).unwrap_or(usize::MAX);
    check.query_map([], words)?.take(most).collect()
}

/// At most one finding, with some names.
fn broken(connection: &Connection, invariant: &Invariant) -> Result<Vec<String>, rusqlite::Error> {
    let mut statement = connection.prepare(invariant.sql)?;
    statement.raw_bind_parameter(1, EXAMPLES_MAX)?;
    if statement.parameter_count() > 1 {
        statement.raw_bind_parameter(2, history::HISTORY_MAX)?;
    }
    let mut rows = statement.raw_query();
    let mut names = Vec::new();
    while let Some(row) = rows.next()? {
        names.push(row.get(0)?);
    }
    Ok(told(invariant.what, &names))
}

/// Host names, and targets of moves, that are not valid in their stored form.
fn bad_names(connection: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    let mut statement = connection.prepare(recovery::NAMES)?;
    let mut rows = statement.query([])?;
    let mut bad = Vec::new();
    let most = usize::try_from(EXAMPLES_MAX).unwrap_or(usize::MAX);
    while let Some(row) = rows.next()?
        && bad.len() < most
    {
        for name in [row.get(1)?, row.get::<_, Option<String>>(2)?] {
            bad.extend(name.filter(|name| !recovery::is_canonical(name)));
        }
    }
    Ok(told(
        "names that are no host names by this version's rules",
        &bad,
    ))
}

fn told(what: &str, names: &[String]) -> Vec<String> {
    if names.is_empty() {
        return Vec::new();
    }
    // Escaped, because the text may be anything and is printed to a terminal.
    let names: Vec<String> = names
        .iter()
        .map(|name| name.escape_debug().collect())
        .collect();
    let more = if names.len() < usize::try_from(EXAMPLES_MAX).unwrap_or(usize::MAX) {
        ""
    } else {
        " and perhaps more"
    };
    vec![format!("{what}: {}{more}", names.join(", "))]
}

/// Interrupts a connection when the time is over, until it is dropped.
struct Alarm {
    /// Dropped before the thread is joined.
    done: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Alarm {
    fn set(interrupt: InterruptHandle, within: Duration) -> Result<Self, StoreError> {
        let (done, is_done) = sync_channel::<()>(1);
        let watch = move || {
            let mut wait = within;
            while is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                interrupt.interrupt();
                wait = STOP_EVERY;
            }
        };
        let thread = std::thread::Builder::new()
            .name("store-alarm".to_owned())
            .spawn(watch)
            .map_err(|error| StoreError::Thread(Arc::new(error)))?;
        Ok(Self {
            done: Some(done),
            thread: Some(thread),
        })
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        drop(self.done.take());
        if let Some(thread) = self.thread.take() {
            // The thread does nothing that can panic.
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod tests;
