//! Replaces the daemon: passes events to the product's scheduler, and carries out its commands on
//! the product's store and the simulated parts, on a virtual clock.
//!
//! It advances from one moment to the next. At each, the story's own work comes first, then checks
//! go on, the scheduler's commands are carried out, and rows are written.

mod checks;
mod commands;
mod course;
pub(crate) mod machine;
pub(crate) mod story;
mod visits;
mod writes;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::RandomState;
use std::time::{Duration, Instant};

use census::state::{Record, Verdict};
use census::time::Timestamp;
use gateway::Paces;
use gateway::pace::Pace;
use protocol::Host;
use scheduler::command::Release;
use scheduler::event::CheckNumber;
use scheduler::slots::concurrency::Bounds;
use scheduler::{Event, Scheduler, Settings};

use crate::stage::Stage;
use crate::world::network::Network;
use crate::world::truth::Truth;
use checks::{Check, Happening};
use machine::Machine;
use story::Story;
use visits::Visits;

/// Checks started a second at least: the default.
const STARTS_PER_SECOND: u32 = 10;

/// Most canaries among the world's seeds.
const CANARIES: usize = 4;

/// The daemon's own intervals.
const COUNT_AGAIN_AFTER: Duration = Duration::from_secs(5);
const LOOK_AROUND_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Shell<S> {
    pub(crate) story: S,
    pub(crate) parts: Parts,
    pub(crate) now: Timestamp,
    pub(crate) scheduler: Scheduler,
    pub(crate) events: VecDeque<Event>,
    /// Containers that gave output, and reported blackouts.
    pub(crate) containers: u64,
    pub(crate) blackouts: u64,
    pace: Pace,
    visits: Visits,
    checks: HashMap<CheckNumber, Check>,
    /// Failed look-ups in a row of names whose DNS fails.
    dns_failures: HashMap<u32, u32>,
    /// Peers lists that were read and wait for the gate.
    lists: Vec<(Host, u32)>,
    /// Whether the list in progress, or the last one, names a host.
    has_names: bool,
    happenings: BTreeMap<(Timestamp, u64), Happening>,
    caused: u64,
    commits: Vec<(Box<Record>, Verdict)>,
    releases: Vec<Release>,
    start: Timestamp,
    began: Instant,
}

/// What a simulation consists of, apart from the scheduler.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) stage: Stage,
    pub(crate) truth: Truth,
    pub(crate) network: Network,
    pub(crate) has_second_way: bool,
    pub(crate) machine: Machine,
    pub(crate) paces: Paces,
}

impl Parts {
    /// The daemon's settings for this number of containers, in a census that has no list yet.
    pub(crate) fn settings(&self, containers: Bounds, opens_max: u32) -> Settings {
        let services = &self.stage.services;
        let seeds = self.truth.hosts.seeds.iter();
        Settings {
            containers,
            opens_max,
            has_second_way: self.has_second_way,
            starts_per_second: STARTS_PER_SECOND,
            canaries: seeds.take(CANARIES).cloned().collect(),
            peers_every: services.peers_every,
            calendar: services.calendar,
            published: None,
            publish_interval: services.calendar.dump_interval(services.random.jitter()),
            count_again_after: COUNT_AGAIN_AFTER,
            look_around_every: LOOK_AROUND_EVERY,
            name_key: RandomState::new(),
        }
    }
}

impl<S: Story> Shell<S> {
    pub(crate) fn new(story: S, parts: Parts, settings: Settings, start: Timestamp) -> Self {
        Self {
            story,
            now: start,
            scheduler: Scheduler::new(settings, start),
            events: VecDeque::new(),
            containers: 0,
            blackouts: 0,
            pace: Pace::new(parts.paces, 1),
            parts,
            visits: Visits::default(),
            checks: HashMap::new(),
            dns_failures: HashMap::new(),
            lists: Vec::new(),
            has_names: false,
            happenings: BTreeMap::new(),
            caused: 0,
            commits: Vec::new(),
            releases: Vec::new(),
            start,
            began: Instant::now(),
        }
    }

    /// Runs until `end`, which is the present then.
    pub(crate) async fn run(&mut self, end: Timestamp) -> anyhow::Result<()> {
        while self.now < end {
            self.parts.stage.set(self.now);
            S::work(self).await?;
            while self.go_on()? {}
            self.events.push_back(Event::Tick);
            self.settle().await?;
            self.now = self.next_moment().min(end);
        }
        self.parts.stage.set(end);
        Ok(())
    }

    /// The daemon and the gateway were killed, and start again with these settings.
    pub(crate) fn restart(&mut self, settings: Settings) {
        self.scheduler = Scheduler::new(settings, self.now);
        self.pace = Pace::new(self.parts.paces, 1);
        self.visits = Visits::default();
        self.checks.clear();
        self.events.clear();
        self.happenings.clear();
        self.commits.clear();
        self.releases.clear();
        self.lists.clear();
    }

    /// The time of the next event, at least a step from now.
    fn next_moment(&self) -> Timestamp {
        let mut next = self.story.works_at().min(self.scheduler.wakes_at(self.now));
        if let Some(((at, _), _)) = self.happenings.first_key_value() {
            next = next.min(*at);
        }
        let step = i64::try_from(S::STEP.as_millis()).unwrap_or(1);
        let whole = next.0.div_euclid(step) + i64::from(next.0.rem_euclid(step) > 0);
        Timestamp(whole.saturating_mul(step)).max(self.now.plus(S::STEP))
    }

    /// Passes events to the scheduler and carries out its commands, until nothing more follows at
    /// this time.
    async fn settle(&mut self) -> anyhow::Result<()> {
        loop {
            while let Some(event) = self.events.pop_front() {
                for command in self.scheduler.on(event, self.now) {
                    self.carry_out(command).await?;
                }
            }
            if self.go_on()? {
                continue;
            }
            let is_done =
                self.commits.is_empty() && self.releases.is_empty() && self.lists.is_empty();
            if is_done {
                return Ok(());
            }
            self.write_all().await?;
        }
    }

    /// Lets what is next happen, if its time has come.
    fn go_on(&mut self) -> anyhow::Result<bool> {
        let Some(first) = self.happenings.first_entry() else {
            return Ok(false);
        };
        if first.key().0 > self.now {
            return Ok(false);
        }
        let happening = first.remove();
        self.happen(happening)?;
        Ok(true)
    }

    fn at(&mut self, at: Timestamp, happening: Happening) {
        self.caused += 1;
        self.happenings.insert((at, self.caused), happening);
    }

    fn instant(&self) -> Instant {
        self.began + self.now.since(self.start)
    }
}
