//! Takes the write-ahead log over into the database file, beside the writer.
//!
//! In: how long the log is after each commit. Out: a database file that has what the log had, and a log that begins anew. Refused: to have the writer wait
//! for more than `OWN_PAGES_MAX` pages, as long as the thread beside it gets its turns.
//!
//! SQLite's own way is that whoever commits the thousandth page copies all of them and syncs the file before it goes on; after a dump, which keeps
//! the log from being emptied, that is all that was written meanwhile. Here a thread of its own copies, while the writer appends. What is appended
//! during its last round is left; the writer takes that little over itself when the log has grown too long, for a log begins anew only when all of it is
//! in the database file.

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread::JoinHandle;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

/// Pages of the log at which it is taken over, and then again each time it has grown by as many: 4 MiB, SQLite's own threshold.
const ROUND_PAGES: u32 = 1000;

/// Pages of the log from which on the writer helps to empty it: as many bytes as are kept of the file.
const LONG_PAGES: u32 = 4096;

/// Pages that the writer takes over itself: 1 MiB, which a disk takes in some milliseconds.
const OWN_PAGES_MAX: u32 = 256;

/// Pages of the log from which on the writer takes over whatever there is: the thread beside it gets no turns, and a full disk is worse than a wait.
const LONGEST_PAGES: u32 = 4 * LONG_PAGES;

/// The bounds above; tests have smaller ones.
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

/// Who takes the log over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TakeOver {
    /// A thread beside the writer.
    #[default]
    Beside,
    /// Whoever commits, as SQLite does by itself: for benchmarks, which compare the two.
    Within,
}

thread_local! {
    /// Pages of the log after this thread's last commit.
    static LOGGED: Cell<u32> = const { Cell::new(0) };
}

/// What is to be done after a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    /// The thread beside the writer has something to do.
    wake: bool,
    own: Own,
}

/// What the writer takes over itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Own {
    Nothing,
    /// The little that is left, unless the thread beside it is at work.
    Little,
    /// Whatever is left, when the thread beside it has ended its round.
    All,
}

/// Decides after each commit; pure.
#[derive(Debug, Default)]
struct Turns {
    bounds: Bounds,
    /// The log at the last commit.
    pages: u32,
    /// The log when it was last begun to be taken over, by either.
    woken_at: u32,
    own_at: u32,
}

impl Turns {
    /// The log has so many `pages`, of which so many were `taken` over when it was last looked at.
    fn after_commit(&mut self, pages: u32, taken: u32) -> Turn {
        let bounds = self.bounds;
        if pages < self.pages {
            // It began anew.
            (self.woken_at, self.own_at) = (0, 0);
        }
        self.pages = pages;
        let wake = pages >= self.woken_at.saturating_add(bounds.round);
        if wake {
            self.woken_at = pages;
        }
        // A look at a former log says nothing about this one.
        let left = pages.saturating_sub(if taken > pages { 0 } else { taken });
        let is_little = left <= bounds.own_max && pages > bounds.long;
        // While somebody reads an old state nothing can be done: not at each commit.
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

/// The thread beside the writer, which the writer's thread owns.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    turns: Turns,
    shared: Arc<Shared>,
    /// Dropped before the thread is waited for.
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the two threads share.
#[derive(Debug, Default)]
struct Shared {
    /// Pages of the log that are in the database file, at the thread's last look.
    taken: AtomicU32,
    /// Held by whoever takes over: SQLite would tell the other one that it is busy, and nothing came of it.
    turn: Mutex<()>,
}

impl Checkpoints {
    /// Begins to take over the log of the database at `path`, which `writer` is the only one to write.
    pub(crate) fn begin(
        path: &Path,
        writer: &Connection,
        bounds: Bounds,
    ) -> Result<Self, BeginError> {
        let beside = open(path)?;
        // In place of SQLite's own, which it ends.
        writer.wal_hook(Some(|_log, pages| {
            LOGGED.set(u32::try_from(pages).unwrap_or(0));
            Ok(())
        }));
        let shared = Arc::<Shared>::default();
        // One wish at a time: it says only that there is something to do.
        let (wake, woken) = sync_channel::<()>(1);
        let thread = std::thread::Builder::new()
            .name("store-log".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || {
                    let mut trouble = Trouble::default();
                    while woken.recv().is_ok() {
                        trouble.tell(round(&beside, &shared));
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
            tracing::debug!(%error, "the writer could not take its log over; the thread beside it tells of that");
        }
        drop(is_mine);
        if turn.wake
            && let Some(wake) = &self.wake
        {
            // It may have been told already.
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

/// Why the log can't be taken over beside the writer.
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

/// A connection that does nothing else. It never waits for anybody: who takes over passively takes what it gets.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "synchronous", "full")?;
    // The writer does that when it closes.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// Takes over what there is, and what came in meanwhile, until nothing is left or no round leaves less than the one before.
fn round(beside: &Connection, shared: &Shared) -> rusqlite::Result<()> {
    let mut left_before = u32::MAX;
    loop {
        let is_mine = shared.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let log = take_over(beside)?;
        drop(is_mine);
        shared.taken.store(log.taken, Ordering::Relaxed);
        let left = log.pages.saturating_sub(log.taken);
        if left == 0 || left >= left_before {
            return Ok(());
        }
        left_before = left;
    }
}

/// The log after it was taken over as far as possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Log {
    pages: u32,
    /// Of these, in the database file.
    taken: u32,
}

fn take_over(connection: &Connection) -> rusqlite::Result<Log> {
    // Both are -1 when there is no log.
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

/// Tells once that something is wrong, and once that it is over: a full disk fails every round.
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
                tracing::debug!(%error, "the database's log still can't be taken over");
            }
            Err(error) => {
                tracing::warn!(%error, "the database's log can't be taken over: it grows until that works; nothing is lost");
                self.is_told = true;
            }
        }
    }
}

#[cfg(test)]
mod tests;
