//! The orchestrator's own work for checks: taking due hosts and writing verdicts. Without gateway
//! and engine.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bench::shared::cost::{Cost, Meter};
use bench::shared::making::NOW;
use census::state::{State, Verdict};
use census::time::{Calendar, Jitter, Timestamp};
use census::transition::{Change, transition};
use orchestrator::daemon::read_load;
use protocol::{DeadReason, Instance, Private};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use scheduler::demand::shares::{Room, Shares};
use store::{Reader, Store, Taken};

const AT_ONCE: u32 = 64;

const LOADS: usize = 20;

/// First step by which the clock is moved to find enough due hosts.
const STEP: Duration = Duration::from_secs(1);

/// Most doublings of that step: years.
const DOUBLINGS: u32 = 28;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// As at 10 checks a second: each free slot gets one host, and each verdict arrives alone.
    OneByOne,
    /// At full speed: slots become free and verdicts arrive together.
    Together,
}

impl Arrival {
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

/// The cost of the two writes of a check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    pub(crate) pick: Cost,
    pub(crate) settle: Cost,
}

/// Sum over several periods of the same work, with other work in between.
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

pub(crate) struct Census {
    /// Opened once, as in the daemon: a connection takes longer to open than a host to pick.
    reader: Reader,
    store: Store,
    rows: u64,
    now: Timestamp,
    shares: Shares,
    chance: StdRng,
}

impl Census {
    /// Opens a census as after a start, with all known names in memory.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut store = store::open(path)?;
        store.wait_for_names();
        let reader = store.reader()?;
        Ok(Self {
            rows: reader.counts()?.hosts,
            reader,
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

    /// Runs this many checks. Before that, the clock is moved until enough hosts are due; this is
    /// not measured.
    pub(crate) async fn round(&mut self, arrival: Arrival, checks: u32) -> Result<Costs> {
        self.wait_for(checks)?;
        let (mut pick, mut settle) = (Sum::default(), Sum::default());
        let mut left = checks;
        while left > 0 {
            let meter = Meter::begin();
            let taken = self.pick(arrival.at_once().min(left)).await?;
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

    pub(crate) fn load(&self) -> Result<Cost> {
        let meter = Meter::begin();
        for _ in 0..LOADS {
            read_load(&self.reader, self.now, Calendar::REAL)?;
        }
        Ok(meter.end(LOADS))
    }

    async fn pick(&mut self, free: u32) -> Result<Vec<Taken>> {
        let jitters = (0..free).map(|_| Jitter(self.chance.random())).collect();
        // As in the daemon: due hosts are counted, and the room is divided among their classes.
        let waiting = self.reader.due_by_class(self.now, free)?;
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

    /// A host that was alive at its last check is alive again; all others are not.
    fn change(&mut self, taken: &Taken) -> Change {
        let record = &taken.record;
        let verdict = match (&record.state, &record.instance.software) {
            (State::Alive | State::Dying { .. }, Some(_)) => Verdict::Alive(Instance {
                private: Private::No,
                ..record.instance.clone()
            }),
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
        for doubling in 0..DOUBLINGS {
            let until = self.now.plus(STEP * 2_u32.pow(doubling));
            let long_ago = Timestamp(i64::MIN);
            if self.reader.due_between(long_ago, until, checks)? == checks {
                self.now = until;
                return Ok(());
            }
        }
        None.context("too few hosts come due")
    }
}
