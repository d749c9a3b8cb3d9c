//! The census's own parts for a simulation: store, gate, services, and a clock that is set
//! explicitly.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use admission::{Names, Reserved, Suffixes};
use anyhow::Context as _;
use census::time::{Calendar, Timestamp};
use gateway::GatewayClient;
use launcher::LauncherClient;
use orchestrator::admit::gate::NameGate;
use orchestrator::admit::policy::Files;
use orchestrator::check::services::Services;
use orchestrator::check::slot_queue::SlotQueue;
use orchestrator::ground::clock::{Clock, Random};
use store::{Reader, Store};
use tempfile::TempDir;

use crate::guard::GROUP_THRESHOLD;

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
            second_gateway: None,
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
