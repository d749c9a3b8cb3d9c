//! The census's own parts for a simulation: store, gate, services, and a clock that is set
//! explicitly.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use admission::{Names, Reserved, Suffixes};
use anyhow::Context as _;
use census::state::{Record, State};
use census::time::{Calendar, DOUBLINGS_MAX, Jitter, Timestamp};
use gateway::GatewayClient;
use launcher::LauncherClient;
use orchestrator::admit::gate::NameGate;
use orchestrator::admit::policy::Files;
use orchestrator::check::services::Services;
use orchestrator::check::slot_queue::SlotQueue;
use orchestrator::ground::clock::{Clock, Random};
use rand::Rng as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use store::{Reader, Store};
use tempfile::TempDir;

use crate::guard::GROUP_THRESHOLD;
use crate::measure::Measure;
use crate::world::names::Name;
use crate::world::truth::{Now, Truth};

/// Records imported at once: a few megabytes.
const IMPORTED_AT_ONCE: usize = 5000;

/// Names that never responded were added within this many days before the start, so that none is
/// forgotten at once and all are within a year.
const KNOWN_FOR_DAYS: u32 = 300;

#[derive(Debug)]
struct VirtualClock(AtomicI64);

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }
}

#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) services: Services,
    pub(crate) store: Store,
    pub(crate) reader: Reader,
    clock: Arc<VirtualClock>,
    folder: TempDir,
}

impl Stage {
    /// A new census in a new folder below `below`, with the daemon's default rules.
    pub(crate) async fn open(below: &Path, seed: u64, start: Timestamp) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("simulation-")
            .tempdir_in(below)
            .with_context(|| format!("no folder below {}", below.display()))?;
        let store = store::open(&folder.path().join("census.db"))?;
        let files = Files::default();
        let names = Names {
            suffixes: Suffixes::compiled(),
            reserved: Reserved::Refuse,
        };
        let writer = store.writer();
        writer.set_group_threshold(GROUP_THRESHOLD).await?;
        let clock = Arc::new(VirtualClock(AtomicI64::new(start.0)));
        let nowhere = folder.path().join("no-socket");
        let services = Services {
            gateway: GatewayClient::new(nowhere.clone()),
            launcher: LauncherClient::socket(&nowhere),
            gate: NameGate::open(writer.clone(), names, files).await?,
            writer,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            random: Arc::new(Random::seeded(seed)),
            calendar: Calendar::REAL,
            slots: SlotQueue::unlimited(),
            contact: "".into(),
            seeds: Arc::default(),
            peers_every: 3,
            meters: Arc::default(),
        };
        Ok(Self {
            reader: store.reader()?,
            services,
            store,
            clock,
            folder,
        })
    }

    pub(crate) fn set(&self, now: Timestamp) {
        self.clock.0.store(now.0, Ordering::Relaxed);
    }

    /// Bytes of the database with its log.
    pub(crate) fn bytes(&self) -> u64 {
        ["census.db", "census.db-wal"]
            .iter()
            .filter_map(|name| std::fs::metadata(self.folder.path().join(name)).ok())
            .map(|metadata| metadata.len())
            .sum()
    }

    /// Adds all hosts of the world, as in the middle of a long census: responding hosts were seen
    /// within their day, dead ones are checked every four weeks, half of them responded once. All
    /// are at random points of their interval.
    pub(crate) async fn import(
        &self,
        truth: &Truth,
        measure: &mut Measure,
        seed: u64,
        start: Timestamp,
    ) -> anyhow::Result<()> {
        let mut chance = StdRng::seed_from_u64(seed);
        let mut records = Vec::new();
        for number in 0..truth.count() {
            let is_up = truth
                .being(number)
                .is_some_and(|being| being.now == Now::Up);
            let record = known(number, is_up, start, &mut chance)?;
            measure.imported(&record, number);
            records.push(record);
            if records.len() == IMPORTED_AT_ONCE {
                self.services
                    .writer
                    .import(std::mem::take(&mut records))
                    .await?;
            }
        }
        self.services.writer.import(records).await?;
        self.group().await
    }

    /// Groups all hosts that have no group, as the daemon does every few seconds.
    pub(crate) async fn group(&self) -> anyhow::Result<()> {
        let mut after = Some(0);
        while let Some(last) = after {
            let names = self.services.gate.names();
            after = self.services.writer.group_new(names, last).await?;
        }
        Ok(())
    }

    /// Closes the database. Returns its bytes.
    pub(crate) fn close(self) -> anyhow::Result<u64> {
        let Self {
            services,
            store,
            reader,
            clock,
            folder,
        } = self;
        // Drops all handles before the writer, which would wait for them.
        drop((services, reader, clock));
        store.close();
        Ok(std::fs::metadata(folder.path().join("census.db"))?.len())
    }
}

/// The record of a host that has been known for a long time.
fn known(
    number: u32,
    is_up: bool,
    start: Timestamp,
    chance: &mut StdRng,
) -> anyhow::Result<Record> {
    let day = std::time::Duration::from_secs(24 * 3600);
    let first_seen = start.minus(day * chance.random_range(40..KNOWN_FOR_DAYS));
    let jitter = Jitter(chance.random());
    let (state, interval) = if is_up {
        (State::Alive, Calendar::REAL.day(jitter))
    } else {
        (State::Dead, Calendar::REAL.weeks(DOUBLINGS_MAX, jitter))
    };
    let last_checked = start.minus(interval.mul_f64(chance.random()));
    let once_alive: bool = chance.random();
    let last_alive = match (is_up, once_alive) {
        (true, _) => Some(last_checked),
        (false, true) => Some(start.minus(day * 39)),
        (false, false) => None,
    };
    let mut record = Record::discovered(
        Name::Host(number).host()?,
        first_seen,
        last_checked.plus(interval),
    );
    record.state = state;
    record.instance.software = last_alive.map(|_| "mastodon".to_owned());
    record.last_alive = last_alive;
    record.last_checked = Some(last_checked);
    record.doublings = if is_up { 0 } else { DOUBLINGS_MAX };
    record.alive_count = last_alive.map_or(0, |_| chance.random_range(1..100));
    Ok(record)
}
