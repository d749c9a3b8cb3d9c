//! Whether a database is sound: its pages, what belongs together, and what the census takes for granted.
//!
//! In: a connection that reads, how thoroughly, and for how long. Out: what is wrong, each with what to do about it. Refused: writing, and mending: what can be
//! mended is mended at the next start, and what can't is a backup's.
//!
//! Beside a daemon that writes each look sees one moment; while it lasts, the write-ahead log is not emptied, hence the bound on time.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, InterruptHandle, Row};

use crate::db::error::StoreError;
use crate::db::reader::Reader;
use crate::tables::history;
use crate::tables::hosts::recovery;

/// Names told of one finding: enough to look at, and no list of a million.
const EXAMPLES_MAX: u32 = 10;

/// Damages told: SQLite's own bound for `integrity_check`.
const DAMAGES_MAX: u32 = 100;

/// How often a look whose time is over is told to stop: one that began in that moment would miss a single word.
const STOP_EVERY: Duration = Duration::from_millis(50);

/// Gives `ok`, or up to [`DAMAGES_MAX`] complaints: pages, and that each index has what its table has.
const INTEGRITY: &str = "PRAGMA integrity_check";

/// The same without comparing indexes with their tables.
const INTEGRITY_OF_PAGES: &str = "PRAGMA quick_check";

const FOREIGN_KEYS: &str = "PRAGMA foreign_key_check";

/// Whoever may be asked and has no time would never be asked again.
pub(crate) const NEVER_DUE: &str = "SELECT name FROM hosts WHERE due IS NULL AND state <> 'parked' \
     AND (state <> 'opted_out' OR opted_out_by = 'robots') LIMIT ?1";

/// Nobody lives who never lived: the list goes by when that was.
pub(crate) const ALIVE_NEVER: &str =
    "SELECT name FROM hosts WHERE state = 'alive' AND last_alive IS NULL LIMIT ?1";

/// Triggers alone write a group's size.
pub(crate) const GROUP_SIZES: &str = "SELECT domain FROM groups WHERE hosts <> (SELECT count(*) FROM hosts WHERE group_id = groups.id) LIMIT ?1";

/// Triggers alone write whether a group is over the threshold.
pub(crate) const GROUPS_OVER: &str = "SELECT domain FROM groups WHERE is_over <> (hosts > (SELECT threshold FROM grouping WHERE id = 1)) LIMIT ?1";

/// Each verdict prunes the verdicts of its host.
pub(crate) const LONG_HISTORY: &str = "SELECT hosts.name FROM history JOIN hosts ON hosts.id = history.host_id \
     GROUP BY history.host_id HAVING count(*) > ?2 LIMIT ?1";

/// Migrations wrote one row into each, and nothing takes it away.
pub(crate) const SINGLE_ROWS: &str = "SELECT 'forgotten_key' WHERE NOT EXISTS (SELECT 1 FROM forgotten_key) \
     UNION ALL SELECT 'admission_state' WHERE NOT EXISTS (SELECT 1 FROM admission_state) \
     UNION ALL SELECT 'grouping' WHERE NOT EXISTS (SELECT 1 FROM grouping) LIMIT ?1";

/// How thoroughly to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// All pages, and that every index has what its table has.
    Whole,
    /// All pages without comparing indexes with their tables, which takes most of the time.
    Quick,
}

/// What to do about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Put a backup in its place.
    Restore,
    /// The daemon mends it when it is started again.
    Restart,
    /// Have the hosts asked once, which gives them a time again.
    Ask,
    /// The census mends it by itself as hosts are asked.
    Wait,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What, in words, with some names.
    pub what: String,
    /// What to do.
    pub remedy: Remedy,
}

/// What a look at a database showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Soundness {
    /// What is wrong, the worst first.
    pub findings: Vec<Finding>,
    /// What was not looked at to its end because the time was over.
    pub unfinished: Vec<&'static str>,
}

/// Something that the census takes for granted.
struct Invariant {
    /// Gives names of those that break it.
    sql: &'static str,
    /// What is said of them.
    what: &'static str,
    remedy: Remedy,
}

const INVARIANTS: [Invariant; 6] = [
    Invariant {
        sql: SINGLE_ROWS,
        what: "without the row that all of the census goes by",
        remedy: Remedy::Restore,
    },
    Invariant {
        sql: GROUP_SIZES,
        what: "groups whose number of hosts is another than is written there",
        remedy: Remedy::Restore,
    },
    Invariant {
        sql: GROUPS_OVER,
        what: "groups that are over the threshold, or below it, and are not marked so",
        remedy: Remedy::Restart,
    },
    Invariant {
        sql: NEVER_DUE,
        what: "hosts that may be asked and are never due",
        remedy: Remedy::Ask,
    },
    Invariant {
        sql: ALIVE_NEVER,
        what: "hosts that are alive and have no time at which they were",
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
            Self::Restore => "stop the daemon and restore a backup; something else than this program has written it, or the disk is failing",
            Self::Restart => "start the daemon again, which mends it",
            Self::Ask => "have each asked once with `fedicensus check HOST`",
            Self::Wait => "nothing: it is mended when they are asked next",
        })
    }
}

impl Reader {
    /// What is wrong with the file, in SQLite's words: damaged pages, indexes that don't fit their tables, verdicts about no host. Nothing when it
    /// is sound. Reads all of it.
    ///
    /// # Errors
    /// A fault of ours.
    pub fn damage(&self) -> Result<Vec<String>, StoreError> {
        let mut damage = pages(self.connection(), INTEGRITY)?;
        damage.extend(orphans(self.connection())?);
        Ok(damage)
    }

    /// Looks whether the database is sound, for no longer than `within`. Writes nothing; works beside a daemon and without one.
    ///
    /// # Errors
    /// A fault of ours, such as a disk that can't be read. Damage is no error but a finding.
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

/// A look that goes on.
struct Look {
    began: Instant,
    within: Duration,
    result: Soundness,
}

impl Look {
    /// Looks at one thing, if there is time left.
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
                        what: format!("{what}: {error}"),
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

/// One finding with some names, or none.
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

/// Names, and targets of moves, that the rules of names don't take as they stand there.
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
    // Whatever was written there must not reach a terminal as it is.
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

/// Ends what a connection is doing when the time is over. Dropped, it ends with it.
struct Alarm {
    /// Dropped before the thread is waited for.
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
            // It does nothing that can panic.
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod tests;
