//! The first day of a census: how soon it has checked and listed what the known Fediverse holds.
//!
//! It takes a world file, an engine, floods and restarts. It returns a table of the hours, with
//! what bound in each, and the goals that were missed.

mod engine;
mod tally;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use census::state::{Record, Verdict};
use census::time::Timestamp;
use gateway::Paces;
use protocol::Host;
use scheduler::command::Release;
use scheduler::event::Trigger;
use scheduler::slots::concurrency::Bounds;
use scheduler::{Event, LastList, Settings};
use store::DumpRecord;

pub use engine::Engine;
pub use tally::Report;

use crate::plan::START;
use crate::shell::machine::Machine;
use crate::shell::story::Story;
use crate::shell::{Parts, Shell};
use crate::stage::Stage;
use crate::world::World;
use crate::world::known::KnownWorld;
use crate::world::network::Network;
use crate::world::truth::Truth;
use tally::Tally;

/// Hosts opened at once for each container: the default.
const OPENS_PER_CHECK: u32 = 4;

const PROCESSORS: usize = 2;

/// The daemon's own intervals.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const TRY_WAITING_EVERY: Duration = Duration::from_secs(600);

/// Names of a peers list that reach the gate together: a line of the checker's output.
const LINE_NAMES: usize = 500;

/// Invented names of a flood in all, more than a checker passes on of its sources' lists.
const FLOOD_NAMES: u64 = 10_000_000;

/// A first day to be simulated.
#[derive(Debug, Clone, clap::Args)]
pub struct FirstDay {
    /// World: one host a line of JSON
    #[arg(long)]
    pub world: PathBuf,
    #[arg(long, value_enum, default_value = "docker28")]
    pub engine: Engine,
    /// Most containers at once
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub containers: u32,
    /// Hours; without it those in which the engine should have listed the living
    #[arg(long)]
    pub hours: Option<u32>,
    /// Sources that share ten million invented names
    #[arg(long, default_value_t = 0)]
    pub flood: u32,
    /// Minutes after which the daemon is killed and started again
    #[arg(long)]
    pub kill: Vec<u32>,
    /// File for the minutes, as CSV
    #[arg(long)]
    pub minutes: Option<PathBuf>,
}

impl FirstDay {
    fn span(&self) -> Duration {
        Duration::from_secs(3600) * self.hours.unwrap_or_else(|| self.engine.hours())
    }

    fn settings(&self, parts: &Parts) -> Settings {
        let containers = Bounds {
            least: 2,
            most: self.containers,
        };
        parts.settings(containers, self.containers * OPENS_PER_CHECK)
    }
}

/// Simulates a first day, with its database below `below`.
///
/// # Errors
/// The world can't be read, the store failed, or a host was asked too often.
pub fn first_day(plan: &FirstDay, seed: u64, below: &Path) -> anyhow::Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let mut shell = open(plan.clone(), seed, below).await?;
        Box::pin(shell.run(START.plus(plan.span()))).await?;
        shell.look_at_list()?;
        let Shell { story, parts, .. } = shell;
        let waiting = parts.stage.reader.waiting()?;
        let held = parts.stage.reader.held()?;
        let bytes = parts.stage.close()?;
        let Day { plan, tally, .. } = story;
        Ok(tally.report(&plan, &parts.truth.hosts, waiting, held.hosts, bytes))
    })
}

async fn open(plan: FirstDay, seed: u64, below: &Path) -> anyhow::Result<Shell<Day>> {
    let world = KnownWorld::read(&plan.world)?;
    let mut stage = Stage::open(below, seed, START).await?;
    let seeds = world.seeds.clone();
    stage.services.seeds = seeds.as_slice().into();
    stage.services.gate.brought(seeds, START).await?;
    let parts = Parts {
        stage,
        truth: Truth::new(world, World::still(), seed, START)?,
        network: Network::default(),
        has_second_way: false,
        machine: Machine::new(PROCESSORS, plan.engine.cost(), START),
        paces: Paces::default(),
    };
    let settings = plan.settings(&parts);
    let mut kills = plan.kill.clone();
    kills.sort_unstable_by(|one, other| other.cmp(one));
    let day = Day {
        tally: Tally::new(START),
        plan,
        kills,
        next_look: START,
        next_try: START.plus(TRY_WAITING_EVERY),
    };
    Ok(Shell::new(day, parts, settings, START))
}

#[derive(Debug)]
struct Day {
    plan: FirstDay,
    tally: Tally,
    /// Minutes of kills, the next one last.
    kills: Vec<u32>,
    next_look: Timestamp,
    next_try: Timestamp,
}

impl Story for Day {
    const STEP: Duration = Duration::from_millis(20);
    const LOOK_UP: Duration = Duration::from_millis(40);

    async fn work(shell: &mut Shell<Self>) -> anyhow::Result<()> {
        if let Some(minute) = shell.story.kills.last()
            && shell.now >= START.plus(Duration::from_secs(60) * *minute)
        {
            shell.story.kills.pop();
            shell.kill().await?;
        }
        if shell.now >= shell.story.next_look {
            shell.story.next_look = shell.now.plus(LOOK_EVERY);
            let machine = &mut shell.parts.machine;
            let pressure = machine.look(shell.now);
            let idle = machine.idle();
            shell.events.push_back(Event::Pressure(pressure));
            let snapshot = shell.scheduler.snapshot();
            if shell.story.tally.look(&snapshot, idle, shell.now) {
                shell.look_at_list()?;
            }
        }
        if shell.now >= shell.story.next_try {
            shell.story.next_try = shell.now.plus(TRY_WAITING_EVERY);
            let gate = &shell.parts.stage.services.gate;
            gate.refresh_held().await?;
            let admitted = gate.try_waiting(shell.now).await?;
            if admitted > 0 {
                shell.events.push_back(Event::RowsChanged);
            }
        }
        Ok(())
    }

    fn works_at(&self) -> Timestamp {
        self.next_look
    }

    async fn taken(
        shell: &mut Shell<Self>,
        taken: &mut [store::Taken],
        _room: u32,
        trigger: Trigger,
    ) -> anyhow::Result<()> {
        if matches!(trigger, Trigger::Canary(_)) {
            for taken in taken {
                shell.story.tally.canary(&taken.record.host, shell.now);
            }
        }
        Ok(())
    }

    fn released(&mut self, release: &Release, now: Timestamp) {
        self.tally.released(release, now);
    }

    async fn committed(
        shell: &mut Shell<Self>,
        record: &Record,
        _verdict: &Verdict,
    ) -> anyhow::Result<()> {
        shell.story.tally.committed(record, shell.now)
    }

    async fn read_peers(shell: &mut Shell<Self>, by: Host, id: u32) -> anyhow::Result<()> {
        let (services, world) = (&shell.parts.stage.services, &shell.parts.truth.hosts);
        let knows = world.host(id).map_or(0, |known| known.knows);
        let names = world.hosts.get(..knows).unwrap_or(&world.hosts);
        for line in names.chunks(LINE_NAMES) {
            let hosts = line.iter().map(|known| known.host.clone()).collect();
            services.learn(hosts, &by).await?;
        }
        let Self { tally, plan, .. } = &mut shell.story;
        tally.lists += 1;
        if !world.seeds.contains(&by)
            && let Some(part) = tally.flood_part(&by, plan.flood)
        {
            let each = FLOOD_NAMES / u64::from(plan.flood.max(1));
            let numbers: Vec<_> = (part * each..(part + 1) * each).collect();
            for line in numbers.chunks(LINE_NAMES) {
                let invented = line
                    .iter()
                    .map(|n| Host::parse(&format!("invented{n}.net")));
                let hosts = invented
                    .collect::<Result<_, _>>()
                    .context("an invented name")?;
                services.learn(hosts, &by).await?;
            }
        }
        shell.events.push_back(Event::RowsChanged);
        Ok(())
    }

    async fn publish(shell: &mut Shell<Self>) -> anyhow::Result<u64> {
        let names = shell.listed()?.len() as u64;
        shell.story.tally.published(names, shell.now);
        Ok(names)
    }
}

impl Shell<Day> {
    /// The daemon and the gateway are killed and started again.
    async fn kill(&mut self) -> anyhow::Result<()> {
        let Parts { stage, .. } = &self.parts;
        let services = &stage.services;
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
        self.story.tally.killed(recovered);
        let first = stage.reader.first_dump(1)?;
        let last = stage.reader.last_dump()?;
        let published = last.map(|DumpRecord { at, .. }| LastList { first, at });
        let settings = self.story.plan.settings(&self.parts);
        self.restart(Settings {
            published,
            ..settings
        });
        Ok(())
    }

    /// What would be listed now.
    fn listed(&self) -> anyhow::Result<Vec<String>> {
        let calendar = self.parts.stage.services.calendar;
        let mut listed = Vec::new();
        self.parts.stage.reader.listed(self.now, calendar, |row| {
            listed.push(row.host.to_owned());
            anyhow::Ok(())
        })?;
        Ok(listed)
    }

    fn look_at_list(&mut self) -> anyhow::Result<()> {
        let listed = self.listed()?;
        let counts = self.parts.stage.reader.counts()?;
        self.story.tally.minute(listed, counts.hosts);
        Ok(())
    }
}
