//! Replaces the daemon: carries out the scheduler's commands on the store and the simulated parts.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::RandomState;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use census::state::{Record, Verdict};
use census::time::Timestamp;
use futures_util::future::try_join_all;
use gateway::Paces;
use gateway::pace::Pace;
use orchestrator::check::commit_verdict::commit_verdict;
use orchestrator::daemon::read_demand;
use protocol::Host;
use protocol::egress::Deferral;
use scheduler::command::{CanaryTurn, Command, Release};
use scheduler::event::{CheckNumber, CheckOutcome, SlotHolder, Taken, Trigger, WriteOutcome};
use scheduler::publication::PublishAgain;
use scheduler::slots::SLOT_WAIT_MAX;
use scheduler::slots::concurrency::Bounds;
use scheduler::{Event, LastList, Scheduler, Settings};
use store::DumpRecord;

use super::course::Check;
use super::known::KnownWorld;
use super::machine::Machine;
use super::tally::{Report, Tally};
use super::{FirstDay, STEP};
use crate::plan::START;
use crate::stage::Stage;

/// Hosts opened at once for each container, and checks started a second at least: the defaults.
const OPENS_PER_CHECK: u32 = 4;
const STARTS_PER_SECOND: u32 = 10;

/// The daemon's own intervals.
const COUNT_AGAIN_AFTER: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_secs(1);
const TRY_WAITING_EVERY: Duration = Duration::from_secs(600);

/// How long a list of some ten thousand names takes.
const LIST: Duration = Duration::from_secs(2);

/// Names of a peers list that reach the gate together: a line of the checker's output.
const LINE_NAMES: usize = 500;

/// Invented names of a flood in all, more than a checker passes on of its sources' lists.
const FLOOD_NAMES: u64 = 10_000_000;

const CANARIES: usize = 4;

/// Writes that share a transaction; fewer than the store queues.
const TOGETHER: usize = 128;

#[derive(Debug, Clone, Copy)]
pub(super) enum Happening {
    /// The gateway has an answer from DNS.
    LookedUp(CheckNumber),
    /// The host accepted a connection.
    Accepted(CheckNumber),
    FirstOutput(CheckNumber),
    Ends(CheckNumber),
    Deferred(CheckNumber, Deferral, Duration),
    ListMade,
}

#[derive(Debug)]
pub(super) struct Shell {
    pub(super) plan: FirstDay,
    pub(super) world: KnownWorld,
    pub(super) stage: Stage,
    pub(super) now: Timestamp,
    pub(super) pace: Pace,
    pub(super) machine: Machine,
    pub(super) scheduler: Scheduler,
    pub(super) checks: HashMap<CheckNumber, Check>,
    pub(super) events: VecDeque<Event>,
    pub(super) tally: Tally,
    /// Failed look-ups in a row of names whose DNS fails.
    pub(super) dns_failures: HashMap<usize, u32>,
    /// Peers lists that were read and wait for the gate.
    pub(super) lists: Vec<(Host, usize)>,
    /// Whether the list in progress, or the last one, names a host.
    last_has_names: bool,
    happenings: BTreeMap<(Timestamp, u64), Happening>,
    caused: u64,
    commits: Vec<(Box<Record>, Verdict)>,
    releases: Vec<Release>,
    next_look: Timestamp,
    next_try: Timestamp,
    began: Instant,
}

impl Shell {
    pub(super) async fn open(plan: FirstDay, seed: u64, below: &Path) -> anyhow::Result<Self> {
        let world = KnownWorld::read(&plan.world)?;
        let mut stage = Stage::open(below, seed, START).await?;
        let seeds = world.seeds.clone();
        stage.services.seeds = seeds.as_slice().into();
        stage.services.gate.brought(seeds, START).await?;
        Ok(Self {
            pace: Pace::new(Paces::default(), 1),
            machine: Machine::new(plan.engine, START),
            scheduler: Scheduler::new(settings(&plan, &world, &stage, None), START),
            tally: Tally::new(&plan, START),
            plan,
            world,
            stage,
            now: START,
            checks: HashMap::new(),
            events: VecDeque::new(),
            dns_failures: HashMap::new(),
            lists: Vec::new(),
            last_has_names: false,
            happenings: BTreeMap::new(),
            caused: 0,
            commits: Vec::new(),
            releases: Vec::new(),
            next_look: START,
            next_try: START.plus(TRY_WAITING_EVERY),
            began: Instant::now(),
        })
    }

    pub(super) async fn run(&mut self) -> anyhow::Result<()> {
        let end = START.plus(self.plan.span());
        let mut kills = self.plan.kill.clone();
        kills.sort_unstable();
        let mut kills = kills.into_iter().peekable();
        while self.now < end {
            self.stage.set(self.now);
            if let Some(minute) = kills.peek()
                && self.now >= START.plus(Duration::from_secs(60) * *minute)
            {
                kills.next();
                self.kill().await?;
            }
            self.regular_work().await?;
            while let Some(first) = self.happenings.first_entry()
                && first.key().0 <= self.now
            {
                let happening = first.remove();
                self.happen(happening)?;
            }
            self.events.push_back(Event::Tick);
            self.settle().await?;
            self.now = self.next_moment().min(end);
        }
        self.stage.set(end);
        self.look_at_list()
    }

    pub(super) fn close(self) -> anyhow::Result<Report> {
        let Self {
            stage,
            tally,
            world,
            ..
        } = self;
        let waiting = stage.reader.waiting()?;
        let held = stage.reader.held()?;
        let bytes = stage.close()?;
        Ok(tally.report(&world, waiting, held.hosts, bytes))
    }

    pub(super) fn instant(&self) -> Instant {
        self.began + self.now.since(START)
    }

    pub(super) fn at(&mut self, at: Timestamp, happening: Happening) {
        self.caused += 1;
        self.happenings.insert((at, self.caused), happening);
    }

    /// The daemon and the gateway are killed and started again.
    async fn kill(&mut self) -> anyhow::Result<()> {
        let services = &self.stage.services;
        let seed = services.random.seed();
        let recovered = services
            .writer
            .recover(self.now, seed, services.calendar)
            .await?;
        let in_flight = self.scheduler.in_flight().count() as u64;
        anyhow::ensure!(
            recovered <= in_flight,
            "{recovered} hosts were in flight on disk and {in_flight} in memory"
        );
        self.tally.killed(recovered);
        let first = self.stage.reader.first_dump(1)?;
        let last = self.stage.reader.last_dump()?;
        let last = last.map(|DumpRecord { at, .. }| LastList { first, at });
        let settings = settings(&self.plan, &self.world, &self.stage, last);
        self.scheduler = Scheduler::new(settings, self.now);
        self.pace = Pace::new(Paces::default(), 1);
        self.checks.clear();
        self.events.clear();
        self.happenings.clear();
        self.commits.clear();
        self.releases.clear();
        self.lists.clear();
        Ok(())
    }

    async fn regular_work(&mut self) -> anyhow::Result<()> {
        if self.now >= self.next_look {
            self.next_look = self.now.plus(TICK);
            let pressure = self.machine.look(self.now);
            self.events.push_back(Event::Pressure(pressure));
            let snapshot = self.scheduler.snapshot();
            if self.tally.look(&snapshot, self.machine.idle(), self.now) {
                self.look_at_list()?;
            }
        }
        if self.now >= self.next_try {
            self.next_try = self.now.plus(TRY_WAITING_EVERY);
            self.stage.services.gate.refresh_held().await?;
            let admitted = self.stage.services.gate.try_waiting(self.now).await?;
            if admitted > 0 {
                self.events.push_back(Event::RowsChanged);
            }
        }
        Ok(())
    }

    /// What would be listed now.
    fn look_at_list(&mut self) -> anyhow::Result<()> {
        let calendar = self.stage.services.calendar;
        let mut listed = Vec::new();
        self.stage.reader.listed(self.now, calendar, |row| {
            listed.push(row.host.to_owned());
            anyhow::Ok(())
        })?;
        let counts = self.stage.reader.counts()?;
        self.tally.minute(&listed, counts.hosts, self.now);
        Ok(())
    }

    fn next_moment(&self) -> Timestamp {
        let mut next = self.next_look.min(self.scheduler.wakes_at(self.now));
        if let Some(((at, _), _)) = self.happenings.first_key_value() {
            next = next.min(*at);
        }
        let step = i64::try_from(STEP.as_millis()).unwrap_or(1);
        let whole = next.0.div_euclid(step) + i64::from(next.0.rem_euclid(step) > 0);
        Timestamp(whole.saturating_mul(step)).max(self.now.plus(STEP))
    }

    async fn settle(&mut self) -> anyhow::Result<()> {
        loop {
            while let Some(event) = self.events.pop_front() {
                for command in self.scheduler.on(event, self.now) {
                    self.carry_out(command).await?;
                }
            }
            let is_done =
                self.commits.is_empty() && self.releases.is_empty() && self.lists.is_empty();
            if is_done {
                return Ok(());
            }
            self.write_all().await?;
        }
    }

    async fn carry_out(&mut self, command: Command) -> anyhow::Result<()> {
        match command {
            Command::CountDue { most, with_load } => {
                let calendar = self.stage.services.calendar;
                let reader = &self.stage.reader;
                let demand = read_demand(reader, self.now, most, with_load, calendar)?;
                self.events.push_back(demand);
            }
            Command::Take { wanted } => {
                let services = &self.stage.services;
                let jitters = services.random.jitters(wanted.sum());
                let taken = services
                    .writer
                    .take_due(self.now, wanted, jitters, services.calendar)
                    .await?;
                self.events.push_back(Event::Taken {
                    hosts: taken.into_iter().map(of_store).collect(),
                    not_admitted: Vec::new(),
                });
            }
            Command::TakeCanary(turn) => self.take_canary(turn).await,
            Command::Start(start) => self.open_host(start)?,
            Command::GrantSlot(SlotHolder::Check(check)) => {
                let first_output = self.machine.start(self.now);
                self.at(first_output, Happening::FirstOutput(check));
            }
            Command::TurnAway(SlotHolder::Check(check)) => {
                self.defer(check, Deferral::Full, SLOT_WAIT_MAX, Duration::ZERO);
            }
            Command::CommitVerdict { record, verdict } => self.commits.push((record, verdict)),
            Command::Release(release) => {
                self.tally.released(&release, self.now);
                self.releases.push(release);
            }
            Command::AskParts => self.events.push_back(Event::PartStatus(Ok(()))),
            Command::Publish { .. } => self.publish().await?,
            Command::Abort { check } => {
                self.checks.remove(&check);
            }
            Command::GrantSlot(SlotHolder::Reading(_))
            | Command::TurnAway(SlotHolder::Reading(_))
            | Command::Report(_) => {}
        }
        Ok(())
    }

    async fn take_canary(&mut self, turn: CanaryTurn) {
        let services = &self.stage.services;
        let jitter = services.random.jitter();
        let taken = services
            .writer
            .take_one(&turn.host, self.now, jitter, services.calendar);
        self.events.push_back(match taken.await {
            Ok(Some(taken)) => {
                self.tally.canary(&turn.host);
                Event::TakenOne {
                    taken: of_store(taken),
                    trigger: Trigger::Canary(turn.wish),
                }
            }
            Ok(None) | Err(_) => Event::CanaryRefused {
                wish: turn.wish,
                left: turn.left,
            },
        });
    }

    async fn publish(&mut self) -> anyhow::Result<()> {
        let mut names = 0;
        let calendar = self.stage.services.calendar;
        self.stage.reader.listed(self.now, calendar, |_| {
            names += 1;
            anyhow::Ok(())
        })?;
        let writer = &self.stage.services.writer;
        let dump = DumpRecord {
            at: self.now,
            names,
            is_full: false,
        };
        writer.record_dump(dump).await?;
        self.last_has_names = names > 0;
        self.tally.published(names, self.now);
        self.at(self.now.plus(LIST), Happening::ListMade);
        Ok(())
    }

    pub(super) fn list_made(&mut self) {
        let services = &self.stage.services;
        let interval = services.calendar.dump_interval(services.random.jitter());
        self.events.push_back(Event::Published {
            again: PublishAgain::Nothing,
            has_pages: true,
            has_names: self.last_has_names,
            interval,
        });
    }

    pub(super) fn ended(&mut self, check: CheckNumber, outcome: CheckOutcome) {
        self.checks.remove(&check);
        self.events.push_back(Event::CheckEnded { check, outcome });
    }

    async fn write_all(&mut self) -> anyhow::Result<()> {
        let services = self.stage.services.clone();
        let commits = std::mem::take(&mut self.commits);
        for chunk in commits.chunks(TOGETHER) {
            let writes = chunk
                .iter()
                .map(|(record, verdict)| commit_verdict(record, verdict, &services));
            try_join_all(writes).await?;
        }
        for (record, verdict) in commits {
            self.tally.committed(&record, &verdict, self.now)?;
            self.events.push_back(Event::Written {
                host: record.host,
                outcome: WriteOutcome::Verdict,
            });
        }
        let releases = std::mem::take(&mut self.releases);
        for chunk in releases.chunks(TOGETHER) {
            let writes = chunk.iter().map(|Release { host, wait, why }| {
                let due = wait.due(self.now, services.random.jitter(), services.calendar);
                services.writer.release(host, due, Some(why.to_string()))
            });
            try_join_all(writes).await?;
        }
        for Release { host, .. } in releases {
            let outcome = WriteOutcome::Released;
            self.events.push_back(Event::Written { host, outcome });
            self.events.push_back(Event::RowsChanged);
        }
        for (by, knows) in std::mem::take(&mut self.lists) {
            self.read_list(&by, knows).await?;
        }
        Ok(())
    }

    async fn read_list(&mut self, by: &Host, knows: usize) -> anyhow::Result<()> {
        let services = self.stage.services.clone();
        let names = self.world.hosts.get(..knows).unwrap_or(&self.world.hosts);
        for line in names.chunks(LINE_NAMES) {
            let hosts = line.iter().map(|known| known.host.clone()).collect();
            services.learn(hosts, by).await?;
        }
        self.tally.lists += 1;
        if !self.world.seeds.contains(by)
            && let Some(part) = self.tally.flood_part(by)
        {
            let each = FLOOD_NAMES / u64::from(self.plan.flood.max(1));
            let numbers: Vec<_> = (part * each..(part + 1) * each).collect();
            for line in numbers.chunks(LINE_NAMES) {
                let invented = line
                    .iter()
                    .map(|n| Host::parse(&format!("invented{n}.net")));
                let hosts = invented
                    .collect::<Result<_, _>>()
                    .context("an invented name")?;
                services.learn(hosts, by).await?;
            }
        }
        self.events.push_back(Event::RowsChanged);
        Ok(())
    }
}

fn settings(
    plan: &FirstDay,
    world: &KnownWorld,
    stage: &Stage,
    published: Option<LastList>,
) -> Settings {
    let services = &stage.services;
    Settings {
        containers: Bounds {
            least: 2,
            most: plan.containers,
        },
        opens_max: plan.containers * OPENS_PER_CHECK,
        starts_per_second: STARTS_PER_SECOND,
        canaries: world.seeds.iter().take(CANARIES).cloned().collect(),
        peers_every: services.peers_every,
        calendar: services.calendar,
        published,
        publish_interval: services.calendar.dump_interval(services.random.jitter()),
        count_again_after: COUNT_AGAIN_AFTER,
        look_around_every: TICK,
        name_key: RandomState::new(),
    }
}

fn of_store(taken: store::Taken) -> Taken {
    Taken {
        record: Box::new(taken.record),
        class: taken.class,
        faults: taken.faults,
    }
}
