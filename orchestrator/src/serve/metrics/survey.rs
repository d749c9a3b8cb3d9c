//! Figures that only the database and the disks have. They are read from time to time and shown
//! until the next reading.
//!
//! Each scrape gets the last survey and its age. However many scrapes there are, the database is
//! read at most every [`EVERY_MIN`], and at most for one part in [`REST`] of the time. Counting a
//! million hosts takes a while, and checks continue during it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use census::state::OptedOutBy;
use census::time::Timestamp;
use protocol::egress::Way;
use rustix::fs::statvfs;
use store::{Counts, DumpRecord, HeldCounts, Reader, StoreError};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::ground::clock::Clock;

/// Prometheus scrapes every fifteen seconds by default, and there may be a second one.
pub const EVERY_MIN: Duration = Duration::from_secs(15);

/// After a reading, there is none for this many times its duration: it takes at most a twentieth of
/// one processor.
pub const REST: u32 = 19;

/// Longest wait for a reading in progress; after that, the scrape gets the survey before.
/// Prometheus gives up after ten seconds.
pub const WAIT_MAX: Duration = Duration::from_secs(4);

/// The figures of one reading.
#[derive(Debug, Clone)]
pub struct Survey {
    pub counts: Counts,
    /// Hosts that opted out, by who requested it.
    pub opted_out: Vec<(OptedOutBy, u64)>,
    /// Hosts that respond by one way out only, by the way.
    pub one_way: [(Way, u32); 2],
    pub due: u64,
    /// How long the longest-waiting of them has been due.
    pub overdue: Duration,
    pub held: HeldCounts,
    /// Public lists that were read at least once.
    pub sources: u64,
    pub paused: u64,
    pub last_dump: Option<DumpRecord>,
    pub database_bytes: u64,
    /// Bytes of its write-ahead log.
    pub wal_bytes: u64,
    /// Space on the disks that could be read: what the directory is for, free bytes, total bytes.
    pub disks: Vec<(&'static str, u64, u64)>,
}

/// The last survey with its age, for the page.
#[derive(Debug, Clone, Default)]
pub struct LastSurvey {
    /// The survey, its age, and how long it took; `None` until one succeeds.
    pub survey: Option<(Arc<Survey>, Duration, Duration)>,
    pub failures: u64,
}

#[derive(Debug, Clone)]
pub struct Places {
    pub database: PathBuf,
    pub public: PathBuf,
}

#[derive(Debug, Clone)]
pub struct Surveyor(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    reader: Mutex<Reader>,
    places: Places,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct State {
    last: Option<(Arc<Survey>, Instant, Duration)>,
    failures: u64,
    running: bool,
    not_before: Option<Instant>,
}

impl Surveyor {
    pub fn new(reader: Reader, places: Places, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Shared {
            reader: Mutex::new(reader),
            places,
            clock,
            state: Mutex::default(),
            ended: Notify::new(),
        }))
    }

    /// The last survey, after a new one if it is time for that.
    pub async fn last(&self) -> LastSurvey {
        let ended = self.0.ended.notified();
        tokio::pin!(ended);
        // Before the check, so that no end is missed.
        ended.as_mut().enable();
        if self.0.begins() {
            let reading = Reading(self.0.clone());
            tokio::task::spawn_blocking(move || reading.read());
        }
        if self.0.state().running {
            tokio::time::timeout(WAIT_MAX, ended).await.ok();
        }
        self.0.last()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // The state is consistent after each statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the caller has to read.
    fn begins(&self) -> bool {
        let now = Instant::now();
        let mut state = self.state();
        let begins = !state.running && state.not_before.is_none_or(|then| now >= then);
        state.running |= begins;
        begins
    }

    fn last(&self) -> LastSurvey {
        let state = self.state();
        LastSurvey {
            survey: state
                .last
                .as_ref()
                .map(|(survey, at, took)| (survey.clone(), at.elapsed(), *took)),
            failures: state.failures,
        }
    }

    fn keep(&self, outcome: Result<Survey, StoreError>, began: Instant) {
        let took = began.elapsed();
        let mut state = self.state();
        match outcome {
            Ok(survey) => state.last = Some((Arc::new(survey), began, took)),
            Err(error) => {
                state.failures = state.failures.saturating_add(1);
                tracing::debug!(%error, "metrics: the database could not be read");
            }
        }
        state.not_before = Instant::now().checked_add(EVERY_MIN.max(took.saturating_mul(REST)));
    }
}

/// A reading in progress: however it ends, the next one may begin.
struct Reading(Arc<Shared>);

impl Reading {
    fn read(self) {
        let began = Instant::now();
        let shared = &self.0;
        let outcome = {
            let reader = shared.reader.lock().unwrap_or_else(PoisonError::into_inner);
            read(&reader, &shared.places, shared.clock.now())
        };
        shared.keep(outcome, began);
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.state().running = false;
        self.0.ended.notify_waiters();
    }
}

fn read(reader: &Reader, places: &Places, now: Timestamp) -> Result<Survey, StoreError> {
    let sources = reader.sources()?;
    let paused = sources
        .iter()
        .filter(|(_, memory)| memory.paused.is_some())
        .count();
    let data = places.database.parent().unwrap_or(&places.database);
    let disks = [("data", data), ("public", &places.public)];
    Ok(Survey {
        counts: reader.counts()?,
        opted_out: reader.opted_out()?,
        one_way: [
            (Way::First, reader.only_by(Way::First)?),
            (Way::Second, reader.only_by(Way::Second)?),
        ],
        due: reader.due(now)?,
        overdue: reader
            .next_due()?
            .map_or(Duration::ZERO, |due| now.since(due)),
        held: reader.held()?,
        sources: count(sources.len()),
        paused: count(paused),
        last_dump: reader.last_dump()?,
        database_bytes: size(&places.database),
        wal_bytes: size(&wal(&places.database)),
        disks: disks
            .into_iter()
            .filter_map(|(name, path)| {
                // If a disk does not answer, something else fails and reports it.
                let disk = statvfs(path).ok()?;
                let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
                Some((name, bytes(disk.f_bavail), bytes(disk.f_blocks)))
            })
            .collect(),
    })
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// 0 if the file does not exist, like a log that was merged.
fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

fn wal(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

#[cfg(test)]
mod tests {
    use protocol::Host;
    use store::Store;

    use super::*;
    use crate::ground::clock::SystemClock;

    fn rig() -> (tempfile::TempDir, Store, Surveyor) {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("census.db");
        let store = store::open(&database).unwrap();
        let places = Places {
            database,
            public: directory.path().to_owned(),
        };
        let surveyor = Surveyor::new(store.reader().unwrap(), places, Arc::new(SystemClock));
        (directory, store, surveyor)
    }

    async fn hosts(surveyor: &Surveyor) -> u64 {
        surveyor.last().await.survey.unwrap().0.counts.hosts
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_scrapes_how_often_brings_no_second_reading_before_its_time() {
        let (_directory, store, surveyor) = rig();
        assert_eq!(hosts(&surveyor).await, 0);
        let writer = store.writer();
        let host = Host::parse("a.example.org").unwrap();
        writer.add_now(vec![host], Timestamp(0)).await.unwrap();
        for _ in 0..100 {
            assert_eq!(hosts(&surveyor).await, 0, "read again");
        }
        tokio::time::advance(EVERY_MIN).await;
        assert_eq!(hosts(&surveyor).await, 1);
        let (survey, age, _) = surveyor.last().await.survey.unwrap();
        assert!(survey.database_bytes > 0 && survey.due == 1 && !survey.overdue.is_zero());
        assert_eq!(survey.disks.len(), 2, "{:?}", survey.disks);
        assert!(age < EVERY_MIN);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reading_that_hangs_holds_no_scrape_up_and_has_no_second_one_beside_it() {
        let (_directory, _store, surveyor) = rig();
        assert_eq!(hosts(&surveyor).await, 0);
        tokio::time::advance(EVERY_MIN).await;
        let shared = surveyor.0.clone();
        // The state during a reading.
        assert!(shared.begins());
        let began = Instant::now();
        assert!(surveyor.last().await.survey.is_some(), "the one before");
        assert_eq!(began.elapsed(), WAIT_MAX);
        assert!(!shared.begins(), "a second one");
        drop(Reading(shared.clone()));
        assert!(shared.begins());
    }
}
