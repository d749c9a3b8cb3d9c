//! The parameters of a year's simulation.

use std::path::{Path, PathBuf};
use std::time::Duration;

use census::time::Timestamp;

use crate::measure::Sample;
use crate::world::World;
use crate::world::known::{Known, KnownWorld, Outcome};

pub(crate) const START: Timestamp = Timestamp(1_790_812_800_000);

/// The gateway's default pace of all dials, per second.
const DIALS_A_SECOND: f64 = 20.0;

#[derive(Debug, Clone)]
pub struct Plan {
    pub world: World,
    /// Hosts to be made, unless there is a file with them.
    pub hosts: u32,
    /// A world file, whose hosts take the place of those of the world.
    pub file: Option<PathBuf>,
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
            file: None,
            days,
            seed,
            below: std::env::temp_dir(),
            start: START,
            watched_by: None,
            sabotage: None,
        }
    }

    /// The hosts of a file, to which the same happens as in the default world.
    ///
    /// # Errors
    /// The file can't be read.
    pub fn of_file(file: &Path, days: u32, seed: u64) -> anyhow::Result<Self> {
        let known = KnownWorld::read(file)?;
        let count = |is: fn(&Known) -> bool| known.hosts.iter().filter(|host| is(host)).count();
        let living = known.living().count() as f64;
        let accepting = count(|host| host.outcome.accepts() && host.outcome != Outcome::Alive);
        let dead = count(|host| host.outcome != Outcome::Alive).max(1);
        let world = World {
            name: "file",
            about: "the hosts of a file",
            living: living / f64::from(known.count().max(1)),
            accepting: accepting as f64 / dead as f64,
            ..World::ordinary()
        };
        Ok(Self {
            file: Some(file.to_owned()),
            ..Self::new(world, known.count(), days, seed)
        })
    }

    /// The gateway's pace of all dials: the default, or twice the engine's starts if that is more,
    /// as the operator of a fast engine sets it.
    pub(crate) fn dial_pace(&self) -> Duration {
        Duration::from_secs_f64(1.0 / DIALS_A_SECOND.max(2.0 * self.capacity))
    }

    /// Hosts that may be resolved, dialled or checked at once: the engine's starts in twenty
    /// seconds, so that dead hosts that wait for timeouts leave room for others. At least two.
    pub(crate) fn opens_max(&self) -> u32 {
        (self.capacity * 20.0).ceil().clamp(2.0, 256.0) as u32
    }

    pub fn end(&self) -> Timestamp {
        self.start
            .plus(Duration::from_secs(24 * 3600).saturating_mul(self.days))
    }

    pub(crate) fn does(&self, what: Sabotage) -> bool {
        self.sabotage == Some(what)
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
