//! The parameters of a simulation, and its errors.

use std::path::PathBuf;
use std::time::Duration;

use census::time::Timestamp;
use protocol::HostError;
use store::StoreError;
use thiserror::Error;

use crate::guard::Broken;
use crate::measure::Sample;
use crate::world::World;

pub(crate) const START: Timestamp = Timestamp(1_790_812_800_000);

/// The gateway's default pace of all dials, per second.
const DIALS_A_SECOND: u32 = 20;

#[derive(Debug, Clone)]
pub struct Plan {
    pub world: World,
    pub hosts: u32,
    pub days: u32,
    pub seed: u64,
    /// Containers a second that the engine can start.
    pub capacity: f64,
    /// The directory for the database's folder.
    pub below: PathBuf,
    pub start: Timestamp,
    /// Called with the state whenever the list was read, because a run with ten million hosts takes
    /// an hour.
    pub watched_by: Option<fn(&Sample)>,
    /// What is broken on purpose, for the tests of the invariants.
    pub sabotage: Option<Sabotage>,
}

impl Plan {
    /// An unchanged world, with its database below the folder for temporary files.
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

    /// The gateway's pace of all dials per second: the default, or twice the engine's starts if
    /// that is more, as the operator of a fast engine sets it.
    pub fn dials_a_second(&self) -> u32 {
        DIALS_A_SECOND.max((2.0 * self.capacity).ceil() as u32)
    }

    pub fn end(&self) -> Timestamp {
        self.start
            .plus(Duration::from_secs(24 * 3600).saturating_mul(self.days))
    }
}

/// Breaks an invariant on purpose: a test of an invariant is worthless until it has failed once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    ReleaseEarly,
    /// A host's next time does not move on.
    StayDue,
    DeafToWord,
    /// A host whose robots.txt forbids checks is due again at once.
    DeafToRobots,
    /// The list contains every host that responded within six weeks.
    ListTheOld,
    AllowTheFarm,
    /// The store forgets a host by a rule that our own records do not know.
    ForgetQuietly,
    /// More hosts are taken than there is room for.
    PickTooMany,
}

#[derive(Debug, Error)]
pub enum Failure {
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error("store: {0}")]
    Store(#[from] StoreError),
    #[error("a name of the simulation: {0}")]
    Name(#[from] HostError),
    #[error("{0} is not of this world")]
    Stranger(String),
    #[error("{0:#}")]
    Other(anyhow::Error),
}
