//! Checkpoints: copies the write-ahead log into the database file on a separate thread.
//!
//! By default, SQLite checkpoints within a commit: the commit that reaches the thousandth page
//! copies all pages and syncs the file. After a dump, which keeps the log from being reset, that is
//! everything written during the dump. Here a separate thread copies while the writer appends.
//!
//! Pages that are appended during the thread's last round stay in the log. SQLite resets the log
//! only when all of it is in the database file. So the writer copies this rest when the log is
//! long. It copies at most `OWN_PAGES_MAX` pages, unless the thread cannot keep up at all.

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread::JoinHandle;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::db::error::coded;

/// Log growth, in pages, after which the thread runs: 4 MiB, SQLite's own threshold.
const ROUND_PAGES: u32 = 1000;

/// Log length, in pages, from which the writer helps: as many bytes as the file keeps when the log
/// is reset.
const LONG_PAGES: u32 = 4096;

/// Pages that the writer copies in one commit: 1 MiB, which takes a disk some milliseconds.
const OWN_PAGES_MAX: u32 = 256;

/// Log length, in pages, from which the writer copies everything: the thread does not get to run,
/// and a full disk is worse than a wait.
const LONGEST_PAGES: u32 = 4 * LONG_PAGES;

/// The bounds above; tests use smaller ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) round: u32,
    pub(crate) long: u32,
    pub(crate) own_max: u32,
    pub(crate) longest: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            round: ROUND_PAGES,
            long: LONG_PAGES,
            own_max: OWN_PAGES_MAX,
            longest: LONGEST_PAGES,
        }
    }
}

thread_local! {
    /// Length of the log in pages after this thread's last commit.
    static LOGGED: Cell<u32> = const { Cell::new(0) };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    /// Whether to wake the checkpoint thread.
    wake: bool,
    own: Own,
}

/// What the writer copies itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Own {
    Nothing,
    /// The short rest, unless the thread is running a checkpoint.
    Little,
    /// Everything, once the thread has ended its round.
    All,
}

/// Decides after each commit. No side effects.
#[derive(Debug, Default)]
struct Turns {
    bounds: Bounds,
    /// Length of the log at the last commit.
    pages: u32,
    /// Length of the log when the thread was last woken, and when the writer last copied
    /// everything.
    woken_at: u32,
    own_at: u32,
}

impl Turns {
    /// `pages` is the length of the log; `taken` is the number of its pages that were in the
    /// database file after the thread's last checkpoint.
    fn after_commit(&mut self, pages: u32, taken: u32) -> Turn {
        let bounds = self.bounds;
        if pages < self.pages {
            // The log was reset.
            (self.woken_at, self.own_at) = (0, 0);
        }
        self.pages = pages;
        let wake = pages >= self.woken_at.saturating_add(bounds.round);
        if wake {
            self.woken_at = pages;
        }
        // `taken` describes the log before a reset.
        let left = pages.saturating_sub(if taken > pages { 0 } else { taken });
        let is_little = left <= bounds.own_max && pages > bounds.long;
        // While a reader uses an old snapshot, a checkpoint achieves nothing, so don't try at each
        // commit.
        let is_time = pages >= self.own_at.saturating_add(bounds.round);
        let own = if pages > bounds.longest && is_time {
            self.own_at = pages;
            Own::All
        } else if is_little {
            Own::Little
        } else {
            Own::Nothing
        };
        Turn { wake, own }
    }
}

/// The checkpoint thread. The writer's thread owns it.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    turns: Turns,
    shared: Arc<Shared>,
    /// Dropped before the thread is joined.
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the two threads share.
#[derive(Debug, Default)]
struct Shared {
    /// Pages of the log that are in the database file, as of the thread's last checkpoint.
    taken: AtomicU32,
    /// Held during a checkpoint: otherwise SQLite returns "busy" to the other connection, and its
    /// attempt is wasted.
    turn: Mutex<()>,
}

impl Checkpoints {
    /// Starts checkpointing the database at `path`. `writer` is the only connection that writes to
    /// it.
    pub(crate) fn begin(
        path: &Path,
        writer: &Connection,
        bounds: Bounds,
    ) -> Result<Self, BeginError> {
        let background = open(path)?;
        // Replaces SQLite's own hook and so ends its automatic checkpoints.
        writer.wal_hook(Some(|_log, pages| {
            LOGGED.set(u32::try_from(pages).unwrap_or(0));
            Ok(())
        }));
        let shared = Arc::<Shared>::default();
        // One message is enough: it only says that there is work.
        let (wake, woken) = sync_channel::<()>(1);
        let thread = std::thread::Builder::new()
            .name("store-log".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || {
                    let mut trouble = Trouble::default();
                    while woken.recv().is_ok() {
                        trouble.tell(round(&background, &shared));
                    }
                }
            })
            .map_err(BeginError::Thread)?;
        Ok(Self {
            turns: Turns {
                bounds,
                ..Turns::default()
            },
            shared,
            wake: Some(wake),
            thread: Some(thread),
        })
    }

    /// Called by the writer's thread after each transaction.
    pub(crate) fn after_commit(&mut self, writer: &Connection) {
        let taken = self.shared.taken.load(Ordering::Relaxed);
        let turn = self.turns.after_commit(LOGGED.get(), taken);
        let is_mine = match turn.own {
            Own::Nothing => None,
            Own::Little => match self.shared.turn.try_lock() {
                Ok(is_mine) => Some(is_mine),
                Err(TryLockError::Poisoned(is_mine)) => Some(is_mine.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            },
            Own::All => Some(
                self.shared
                    .turn
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner),
            ),
        };
        if is_mine.is_some()
            && let Err(error) = take_over(writer)
        {
            tracing::debug!(error = %coded(&error), "the writer could not checkpoint the log; the checkpoint thread logs the reason");
        }
        drop(is_mine);
        if turn.wake
            && let Some(wake) = &self.wake
        {
            // A message may be waiting already.
            wake.try_send(()).ok();
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that takes the database's log over had panicked");
        }
    }
}

/// Why the checkpoint thread can't be started.
#[derive(Debug)]
pub(crate) enum BeginError {
    Sqlite(rusqlite::Error),
    Thread(std::io::Error),
}

impl From<rusqlite::Error> for BeginError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// A connection for checkpoints only. It has no busy timeout: a passive checkpoint copies what it
/// can.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "synchronous", "full")?;
    // The writer does that when it closes.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// Runs checkpoints, which also copy what was appended in between, until nothing is left or a round
/// leaves as much as the one before.
fn round(background: &Connection, shared: &Shared) -> rusqlite::Result<()> {
    let mut left_before = u32::MAX;
    loop {
        let is_mine = shared.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let log = take_over(background)?;
        drop(is_mine);
        shared.taken.store(log.taken, Ordering::Relaxed);
        let left = log.pages.saturating_sub(log.taken);
        if left == 0 || left >= left_before {
            return Ok(());
        }
        left_before = left;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Log {
    pages: u32,
    /// Pages of the log that are in the database file.
    taken: u32,
}

fn take_over(connection: &Connection) -> rusqlite::Result<Log> {
    // Both are -1 if there is no log.
    let pages = |number: i64| u32::try_from(number).unwrap_or(0);
    connection
        .prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?
        .query_row([], |row| {
            Ok(Log {
                pages: pages(row.get(1)?),
                taken: pages(row.get(2)?),
            })
        })
}

/// Logs the first failure and the recovery: a full disk fails every round.
#[derive(Debug, Default)]
struct Trouble {
    is_told: bool,
}

impl Trouble {
    fn tell(&mut self, round: rusqlite::Result<()>) {
        match round {
            Ok(()) if self.is_told => {
                tracing::info!("the database's log is taken over again");
                self.is_told = false;
            }
            Ok(()) => {}
            Err(error) if self.is_told => {
                tracing::debug!(error = %coded(&error), "the database's log still can't be taken over");
            }
            Err(error) => {
                tracing::warn!(error = %coded(&error), "the database's log can't be taken over: it grows until that works; nothing is lost");
                self.is_told = true;
            }
        }
    }
}

#[cfg(test)]
mod tests;
