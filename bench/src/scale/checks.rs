//! The orchestrator's own work for checks: what is due is picked, verdicts are written. No gateway, no engine.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bench::shared::cost::{Cost, Meter};
use bench::shared::making::NOW;
use census::state::{State, Verdict};
use census::time::{Calendar, Jitter, Timestamp};
use census::transition::{Change, transition};
use orchestrator::daemon::read_load;
use protocol::{DeadReason, Private};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use scheduler::demand::shares::{Room, Shares};
use store::{Store, Taken};

/// Checks in flight at full speed.
const AT_ONCE: u32 = 64;

/// Times that the load is measured.
const LOADS: usize = 20;

/// How far the clock is moved at first to find enough that is due.
const STEP: Duration = Duration::from_secs(1);

/// Times that the step is doubled at most: years.
const DOUBLINGS: u32 = 28;

/// How checks come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// As at 10 checks a second: a place is free, a host is picked for it; its verdict comes alone.
    OneByOne,
    /// As fast as they go: places come free and verdicts come in together.
    Together,
}

impl Way {
    pub(crate) const ALL: [Self; 2] = [Self::OneByOne, Self::Together];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::OneByOne => "One at a time",
            Self::Together => "64 at once",
        }
    }

    fn at_once(self) -> u32 {
        match self {
            Self::OneByOne => 1,
            Self::Together => AT_ONCE,
        }
    }
}

/// What the two writes of a check cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    pub(crate) pick: Cost,
    pub(crate) settle: Cost,
}

/// Several stretches of the same work, between which other work is done.
#[derive(Debug, Default)]
struct Sum {
    many: f64,
    seconds: f64,
    cpu_seconds: f64,
}

impl Sum {
    fn add(&mut self, cost: Cost, many: usize) {
        let many = many as f64;
        self.many += many;
        self.seconds += many / cost.rate;
        self.cpu_seconds += many / cost.cpu_rate;
    }

    fn cost(&self) -> Cost {
        Cost {
            rate: self.many / self.seconds,
            cpu_rate: self.many / self.cpu_seconds,
        }
    }
}

/// An open census with a clock of its own.
pub(crate) struct Census {
    store: Store,
    rows: u64,
    now: Timestamp,
    shares: Shares,
    chance: StdRng,
}

impl Census {
    /// As after a start, with all known names in memory.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut store = store::open(path)?;
        store.wait_for_names();
        Ok(Self {
            rows: store.reader()?.counts()?.hosts,
            store,
            now: NOW,
            shares: Shares::default(),
            chance: StdRng::seed_from_u64(1),
        })
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// So many checks. The clock is first moved to where so many hosts are due; that is not measured.
    pub(crate) async fn round(&mut self, way: Way, checks: u32) -> Result<Costs> {
        self.wait_for(checks)?;
        let (mut pick, mut settle) = (Sum::default(), Sum::default());
        let mut left = checks;
        while left > 0 {
            let meter = Meter::begin();
            let taken = self.pick(way.at_once().min(left)).await?;
            ensure!(!taken.is_empty(), "nothing is due of {left} checks");
            pick.add(meter.end(taken.len()), taken.len());
            left -= u32::try_from(taken.len())?;
            let meter = Meter::begin();
            let count = taken.len();
            self.settle(taken).await?;
            settle.add(meter.end(count), count);
        }
        Ok(Costs {
            pick: pick.cost(),
            settle: settle.cost(),
        })
    }

    /// What a look at the load costs.
    pub(crate) fn load(&self) -> Result<Cost> {
        let reader = self.store.reader()?;
        let meter = Meter::begin();
        for _ in 0..LOADS {
            read_load(&reader, self.now, Calendar::REAL)?;
        }
        Ok(meter.end(LOADS))
    }

    async fn pick(&mut self, free: u32) -> Result<Vec<Taken>> {
        let jitters = (0..free).map(|_| Jitter(self.chance.random())).collect();
        // As the daemon does: due hosts are counted, the room is divided among their classes.
        let waiting = self.store.reader()?.due_by_class(self.now, free)?;
        let wanted = self.shares.divide(Room::empty(free), waiting);
        let writer = self.store.writer();
        let taking = writer.take_due(self.now, wanted, jitters, Calendar::REAL);
        Ok(taking.await?)
    }

    async fn settle(&mut self, taken: Vec<Taken>) -> Result<()> {
        let mut settling = Vec::with_capacity(taken.len());
        for one in &taken {
            let (writer, change) = (self.store.writer(), self.change(one));
            settling.push(tokio::spawn(async move { writer.commit(change).await }));
        }
        for settled in settling {
            settled.await??;
        }
        Ok(())
    }

    /// Who lived when it was last asked lives, all others do not.
    fn change(&mut self, taken: &Taken) -> Change {
        let record = &taken.record;
        let verdict = match (&record.state, &record.software) {
            (State::Alive | State::Dying { .. }, Some(software)) => Verdict::Alive {
                software: software.clone(),
                version: record.version.clone(),
                private: Private::No,
                open_registrations: record.open_registrations,
            },
            _ => Verdict::Dead {
                reason: DeadReason::NoSuchName,
                status: None,
                to: None,
            },
        };
        let jitter = Jitter(self.chance.random());
        transition(record, &verdict, self.now, jitter, Calendar::REAL)
    }

    fn wait_for(&mut self, checks: u32) -> Result<()> {
        let reader = self.store.reader()?;
        for doubling in 0..DOUBLINGS {
            let until = self.now.plus(STEP * 2_u32.pow(doubling));
            if reader.due_between(Timestamp(i64::MIN), until, checks)? == checks {
                self.now = until;
                return Ok(());
            }
        }
        None.context("so many hosts never come due")
    }
}
