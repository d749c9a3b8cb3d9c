//! The census on a virtual clock: the product's scheduler and store, with a small shell in place of
//! the daemon's.
//!
//! It advances from one event to the next, in whole seconds. At each time, in this order: owners
//! opt out, containers start, checks end, the scheduler's commands are carried out, and rows are
//! written.

mod commands;
mod courses;
mod round;
mod sabotage;
mod writes;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::RandomState;
use std::time::Duration;

use census::state::OptedOutBy;
use census::time::Timestamp;
use protocol::Host;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use scheduler::command::Release;
use scheduler::event::CheckNumber;
use scheduler::slots::concurrency::Bounds;
use scheduler::{Event, LastList, Scheduler, Settings};

use crate::course::Check;
use crate::engine::Engine;
use crate::guard::Guard;
use crate::measure::Measure;
use crate::plan::{Failure, Plan, Sabotage};
use crate::stage::Stage;
use crate::world::names::Name;
use crate::world::network::Network;
use crate::world::truth::{CANARIES, Truth};

use writes::Commit;

const SECOND: Duration = Duration::from_secs(1);

/// Interval of ticks while failures wait or an outage lasts. The daemon's is a second; the waits
/// involved are minutes.
const LOOK_AROUND_EVERY: Duration = Duration::from_secs(10);

/// Interval for trying waiting names again and grouping new hosts. The daemon does the former every
/// ten minutes and the latter every few seconds.
const ROUND: Duration = Duration::from_secs(3600);

const STARTS_PER_SECOND: u32 = 10;

#[derive(Debug)]
pub(crate) struct Census {
    pub(crate) plan: Plan,
    pub(crate) stage: Stage,
    pub(crate) truth: Truth,
    pub(crate) network: Network,
    pub(crate) engine: Engine,
    pub(crate) guard: Guard,
    pub(crate) measure: Measure,
    pub(crate) told: u64,
    chance: StdRng,
    scheduler: Scheduler,
    events: VecDeque<Event>,
    checks: HashMap<CheckNumber, Check>,
    ends: BTreeSet<(Timestamp, CheckNumber)>,
    /// Checks that have a slot and wait for the engine.
    starting: VecDeque<CheckNumber>,
    commits: Vec<Commit>,
    releases: Vec<Release>,
    named: Vec<(Host, Vec<u32>)>,
    /// Named hosts for which the intake had no room.
    waiting: BTreeSet<u32>,
    dials: (Timestamp, u32),
    next_round: Timestamp,
}

impl Census {
    /// A census that knows the hosts of its world.
    pub(crate) async fn new(plan: Plan) -> anyhow::Result<Self> {
        let (seed, start, end) = (plan.seed, plan.start, plan.end());
        let truth = Truth::new(plan.world.clone(), plan.hosts, seed, start);
        let stage = Stage::open(&plan.below, seed, start).await?;
        let mut measure = Measure::new(start);
        stage.import(&truth, &mut measure, seed, start).await?;
        let engine = Engine::new(plan.capacity, start);
        let services = &stage.services;
        let containers = engine.opens_max();
        let canaries = (0..CANARIES).map(|number| Name::Host(number).host());
        let settings = Settings {
            containers: Bounds {
                least: containers,
                most: containers,
            },
            opens_max: containers,
            starts_per_second: STARTS_PER_SECOND,
            canaries: canaries.collect::<Result<_, _>>()?,
            peers_every: services.peers_every,
            calendar: services.calendar,
            published: Some(LastList {
                first: Some(Timestamp(0)),
                at: Timestamp(0),
            }),
            publish_interval: services.calendar.dump_interval(services.random.jitter()),
            // The simulation reports each row that becomes due sooner.
            count_again_after: ROUND,
            look_around_every: LOOK_AROUND_EVERY,
            name_key: RandomState::new(),
        };
        let census = Self {
            network: Network::new(plan.world.outages, seed, start, end),
            engine,
            guard: Guard::new(start),
            chance: StdRng::seed_from_u64(seed),
            scheduler: Scheduler::new(settings, start),
            events: VecDeque::new(),
            checks: HashMap::new(),
            ends: BTreeSet::new(),
            starting: VecDeque::new(),
            commits: Vec::new(),
            releases: Vec::new(),
            named: Vec::new(),
            waiting: BTreeSet::new(),
            told: 0,
            dials: (start, 0),
            next_round: start,
            plan,
            stage,
            truth,
            measure,
        };
        census.sabotage_the_start().await?;
        Ok(census)
    }

    /// Runs until the end.
    pub(crate) async fn run(&mut self) -> Result<(), Failure> {
        let (mut now, end) = (self.plan.start, self.plan.end());
        while now < end {
            self.step(now).await?;
            now = self.next_moment(now);
        }
        self.stage.set(end);
        self.truth.advance(end);
        self.guard.step(end);
        self.read_the_list(end)
    }

    async fn step(&mut self, now: Timestamp) -> Result<(), Failure> {
        self.stage.set(now);
        self.guard.step(now);
        for number in self.truth.advance(now) {
            self.opt_out(number, now).await?;
        }
        self.start_containers(now)?;
        while let Some((at, check)) = self.ends.first().copied()
            && at <= now
        {
            self.ends.pop_first();
            self.conclude(check, now)?;
        }
        if now >= self.next_round {
            self.round(now).await?;
            self.next_round = now.plus(ROUND);
        }
        self.events.push_back(Event::Tick);
        self.settle(now).await
    }

    /// Passes events to the scheduler and carries out its commands, until nothing more follows at
    /// this time.
    async fn settle(&mut self, now: Timestamp) -> Result<(), Failure> {
        loop {
            while let Some(event) = self.events.pop_front() {
                for command in self.scheduler.on(event, now) {
                    self.carry_out(command, now).await?;
                }
            }
            if self.commits.is_empty() && self.releases.is_empty() && self.named.is_empty() {
                return Ok(());
            }
            self.write_all(now).await?;
        }
    }

    /// The time of the next event, at least a second from now.
    fn next_moment(&self, now: Timestamp) -> Timestamp {
        let mut next = self.next_round.min(self.scheduler.wakes_at(now));
        if let Some((ends, _)) = self.ends.first() {
            next = next.min(*ends);
        }
        if !self.starting.is_empty() {
            next = next.min(self.engine.next());
        }
        let second = i64::try_from(SECOND.as_millis()).unwrap_or(1000);
        let whole = next.0.div_euclid(second) + i64::from(next.0.rem_euclid(second) > 0);
        Timestamp(whole.saturating_mul(second)).max(now.plus(SECOND))
    }

    /// An owner opts a host out through the operator: a check of it ends at once.
    async fn opt_out(&mut self, number: u32, now: Timestamp) -> Result<(), Failure> {
        let host = Name::Host(number).host()?;
        self.measure.counts.words += 1;
        if !self.does(Sabotage::DeafToWord) {
            let writer = &self.stage.services.writer;
            writer.opt_out(&host, OptedOutBy::Owner, now).await?;
        }
        self.measure.knows(number, now);
        self.guard.word(host.clone());
        self.events.push_back(Event::OptedOut { host });
        Ok(())
    }

    pub(crate) fn does(&self, what: Sabotage) -> bool {
        self.plan.sabotage == Some(what)
    }
}
