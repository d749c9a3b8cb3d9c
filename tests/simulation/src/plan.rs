//! What is to be simulated, and how that can fail.

use std::path::PathBuf;
use std::time::Duration;

use census::time::Timestamp;
use protocol::HostError;
use store::StoreError;
use thiserror::Error;

use crate::guard::Broken;
use crate::measure::Sample;
use crate::world::World;

/// Begins at some moment.
pub(crate) const START: Timestamp = Timestamp(1_790_812_800_000);

/// The gateway's ordinary pace over all: dials a second.
const DIALS_A_SECOND: u32 = 20;

/// What is to be simulated.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The world.
    pub world: World,
    /// Hosts known at the start.
    pub hosts: u32,
    /// For how long.
    pub days: u32,
    /// Chance, all of it.
    pub seed: u64,
    /// Containers a second that the engine can start.
    pub capacity: f64,
    /// Where the database's folder is made.
    pub below: PathBuf,
    /// The first moment.
    pub start: Timestamp,
    /// Told how it stands whenever the list was read: ten million hosts take an hour.
    pub watched_by: Option<fn(&Sample)>,
    /// What is broken on purpose, for the tests of the invariants.
    pub sabotage: Option<Sabotage>,
}

impl Plan {
    /// A run of a world as it is, below the folder for temporary files.
    pub fn new(world: World, hosts: u32, days: u32, seed: u64) -> Self {
        Self {
            capacity: world.capacity(hosts),
            world,
            hosts,
            days,
            seed,
            below: std::env::temp_dir(),
            start: START,
            watched_by: None,
            sabotage: None,
        }
    }

    /// The gateway's pace over all: the ordinary one, or twice what the engine starts where that is
    /// more, as whoever has an engine that fast sets it.
    pub fn dials_a_second(&self) -> u32 {
        DIALS_A_SECOND.max((2.0 * self.capacity).ceil() as u32)
    }

    /// The last moment.
    pub fn end(&self) -> Timestamp {
        self.start
            .plus(Duration::from_secs(24 * 3600).saturating_mul(self.days))
    }
}

/// What breaks an invariant on purpose: a test of an invariant is worth nothing that has never
/// failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// Hosts are given back while they are checked.
    ReleaseEarly,
    /// A host's next time does not move on.
    StayDue,
    /// Owners' words are not written.
    DeafToWord,
    /// Whoever refuses by robots.txt is due again at once.
    DeafToRobots,
    /// The list has whoever lived within six weeks.
    ListTheOld,
    /// A group of thousands is allowed.
    AllowTheFarm,
    /// The store forgets a host, and our own book does not know that rule.
    ForgetQuietly,
    /// More is picked than there is room for.
    PickTooMany,
}

/// Why a run came to nothing.
#[derive(Debug, Error)]
pub enum Failure {
    /// An invariant does not hold.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The store failed.
    #[error("store: {0}")]
    Store(#[from] StoreError),
    /// The simulation made a name that is none.
    #[error("a name of the simulation: {0}")]
    Name(#[from] HostError),
    /// The store named a host that is not of this world.
    #[error("{0} is not of this world")]
    Stranger(String),
    /// A part could not be set up or taken down.
    #[error("{0:#}")]
    Other(anyhow::Error),
}
