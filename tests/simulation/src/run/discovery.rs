//! How many weeks a census takes to learn the servers of a simulated Fediverse: from peers lists,
//! from walks, and from both.
//!
//! The gate, the store with its choice of the next walk, and the records of a walk are the
//! product's. The conversations (`world::talk`) and the checks, which find every server responding,
//! are simulated.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use census::time::Timestamp;
use orchestrator::check::commit_verdict::commit_verdict;
use orchestrator::discover::walks::visit;
use protocol::{Host, PeersOutcome, WalkOutcome};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use report::walk::Walk;
use store::WalkTimes;

use crate::plan::START;
use crate::stage::Stage;
use crate::world::names::Name;
use crate::world::talk::Talk;

/// Length of a round, in which every known server shows its peers list and is walked at most once.
const ROUND: Duration = Duration::from_secs(7 * 24 * 3600);

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Rounds after which a run ends without an answer.
const ROUNDS_MAX: u32 = 40;

/// The fraction of the reachable servers that should become known.
const ENOUGH: f64 = 0.99;

/// The fraction of servers that show no feed without a login.
const CLOSED_FEEDS: f64 = 0.2;

/// Servers known at the start, of medium size.
const SEEDS: std::ops::Range<u32> = 100..103;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Ways {
    label: &'static str,
    /// The fraction of servers that show their peers list.
    lists: f64,
    walks: bool,
}

const WAYS: [Ways; 5] = [
    ways("all lists", 1.0, false),
    ways("all lists, and walks", 1.0, true),
    ways("half of the lists", 0.5, false),
    ways("half of the lists, and walks", 0.5, true),
    ways("walks alone", 0.0, true),
];

const fn ways(label: &'static str, lists: f64, walks: bool) -> Ways {
    Ways {
        label,
        lists,
        walks,
    }
}

#[derive(Debug)]
pub struct Course {
    /// Its ways to learn names.
    pub label: &'static str,
    /// The fraction of reachable servers that it knew at its start and after each round.
    pub known: Vec<f64>,
    pub walks: u64,
}

impl Course {
    /// Rounds until 99 % of the reachable servers were known. `None` if that did not happen.
    pub fn rounds(&self) -> Option<usize> {
        self.known.iter().position(|share| *share >= ENOUGH)
    }
}

/// Runs each kind of census on the same Fediverse of `servers`, with databases below `below`.
pub fn discover(servers: u32, seed: u64, below: &Path) -> anyhow::Result<Vec<Course>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let talk = Talk::new(servers, &mut StdRng::seed_from_u64(seed))?;
    let courses = WAYS.iter().map(|ways| {
        let census = Discovery::open(&talk, *ways, seed, below);
        runtime.block_on(async { census.await?.run().await })
    });
    courses.collect()
}

pub fn table(courses: &[Course]) -> String {
    let mut text = String::from(
        "| names come from | rounds until 99 % | known after 1 round | 2 | 4 | in the end | walks |\n|---|---|---|---|---|---|---|\n",
    );
    for course in courses {
        let after = |round: usize| {
            let last = course.known.len().saturating_sub(1);
            course.known.get(round.min(last)).copied().unwrap_or(0.0) * 100.0
        };
        let rounds = course
            .rounds()
            .map_or_else(|| "never".to_owned(), |rounds| rounds.to_string());
        writeln!(
            text,
            "| {} | {rounds} | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {} |",
            course.label,
            after(1),
            after(2),
            after(4),
            after(usize::MAX),
            course.walks
        )
        .unwrap_or(());
    }
    text
}

struct Discovery<'talk> {
    talk: &'talk Talk,
    ways: Ways,
    stage: Stage,
    chance: StdRng,
    reachable: BTreeSet<u32>,
    responding: BTreeSet<u32>,
    shows_list: Vec<bool>,
    shows_feed: Vec<bool>,
    walks: u64,
}

impl<'talk> Discovery<'talk> {
    async fn open(
        talk: &'talk Talk,
        ways: Ways,
        seed: u64,
        below: &Path,
    ) -> anyhow::Result<Discovery<'talk>> {
        let mut chance = StdRng::seed_from_u64(seed);
        // An operator begins with servers that show their lists and feeds.
        let mut drawn = |share: f64| {
            (0..talk.count())
                .map(|number| SEEDS.contains(&number) || chance.random_bool(share))
                .collect()
        };
        let (shows_list, shows_feed) = (drawn(ways.lists), drawn(1.0 - CLOSED_FEEDS));
        Ok(Self {
            talk,
            ways,
            stage: Stage::open(below, seed, START).await?,
            reachable: talk.reachable(SEEDS),
            responding: BTreeSet::new(),
            shows_list,
            shows_feed,
            chance,
            walks: 0,
        })
    }

    async fn run(mut self) -> anyhow::Result<Course> {
        let first = Name::Host(SEEDS.start).host()?;
        let seeds = SEEDS.map(|number| Name::Host(number).host());
        let seeds = seeds.collect::<Result<Vec<_>, _>>()?;
        self.stage.services.learn(seeds, &first).await?;
        self.check_new().await?;
        let mut known = vec![self.known()];
        for round in 0..ROUNDS_MAX {
            let begin = START.plus(ROUND.saturating_mul(round)).plus(DAY);
            self.stage.set(begin);
            self.read_lists().await?;
            if self.ways.walks {
                self.walk().await?;
            }
            for day in 1..7 {
                self.stage.set(begin.plus(DAY.saturating_mul(day)));
                self.try_waiting().await?;
            }
            self.check_new().await?;
            known.push(self.known());
            if self.known() >= 1.0 {
                break;
            }
        }
        let Self {
            stage, ways, walks, ..
        } = self;
        stage.close()?;
        Ok(Course {
            label: ways.label,
            known,
            walks,
        })
    }

    fn known(&self) -> f64 {
        let known = self.reachable.intersection(&self.responding).count();
        known as f64 / self.reachable.len() as f64
    }

    async fn read_lists(&mut self) -> anyhow::Result<()> {
        if self.ways.lists <= 0.0 {
            return Ok(());
        }
        let services = &self.stage.services;
        for number in &self.responding {
            let host = Name::Host(*number).host()?;
            let outcome = match flag(&self.shows_list, *number) {
                true => {
                    let names = hosts(self.talk.peers(*number))?;
                    services.learn(names, &host).await?;
                    PeersOutcome::Complete
                }
                false => PeersOutcome::Refused,
            };
            services.writer.remember_peers(&host, outcome).await?;
        }
        Ok(())
    }

    async fn walk(&mut self) -> anyhow::Result<()> {
        let services = self.stage.services.clone();
        let times = WalkTimes {
            // Checks are simulated, so none is overdue.
            late_before: Timestamp(0),
            ..visit::times(&services)
        };
        while let Some(host) = services
            .writer
            .next_walk(services.random.jitter(), times)
            .await?
        {
            let Some(Name::Host(number)) = Name::of(host.as_str()) else {
                anyhow::bail!("{host} is not of this world");
            };
            let walk = match flag(&self.shows_feed, number) {
                true => Walk {
                    outcome: WalkOutcome::Complete,
                    hosts: hosts(&self.talk.walk(number, &mut self.chance))?
                        .into_iter()
                        .collect(),
                    ..Walk::failed()
                },
                false => Walk {
                    outcome: WalkOutcome::AccessControlled,
                    ..Walk::failed()
                },
            };
            visit::settle(&host, &walk, &services).await?;
            self.walks += 1;
        }
        Ok(())
    }

    async fn try_waiting(&self) -> anyhow::Result<()> {
        let services = &self.stage.services;
        let now = services.now();
        services.gate.try_waiting(now).await?;
        Ok(())
    }

    async fn check_new(&mut self) -> anyhow::Result<()> {
        let verdict = kit::alive();
        for number in 0..self.talk.count() {
            if self.responding.contains(&number) {
                continue;
            }
            let host = Name::Host(number).host()?;
            if let Some(stored) = self.stage.reader.record(&host)? {
                commit_verdict(&stored.record, &verdict, &self.stage.services).await?;
                self.responding.insert(number);
            }
        }
        Ok(())
    }
}

fn hosts<'numbers>(numbers: impl IntoIterator<Item = &'numbers u32>) -> anyhow::Result<Vec<Host>> {
    let named = numbers.into_iter().map(|number| Name::Host(*number).host());
    named
        .collect::<Result<_, _>>()
        .context("a name of the simulation")
}

fn flag(flags: &[bool], number: u32) -> bool {
    usize::try_from(number)
        .ok()
        .and_then(|place| flags.get(place))
        .copied()
        .unwrap_or(false)
}
