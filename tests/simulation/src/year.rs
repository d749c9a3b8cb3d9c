//! Years of a census: what happens to its hosts, its names and its list.
//!
//! Times are whole seconds. At each, owners opt out first.

mod import;
mod round;
mod sabotage;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use census::class::PerClass;
use census::state::{OptedOutBy, Record, State, Verdict};
use census::time::{Jitter, Timestamp};
use census::transition::transition;
use gateway::Paces;
use protocol::Host;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use scheduler::command::{Release, Released};
use scheduler::event::Trigger;
use scheduler::slots::concurrency::Bounds;
use scheduler::{Event, LastList, Settings};

use crate::guard::Guard;
use crate::measure::Measure;
use crate::plan::{Plan, Sabotage};
use crate::report::{Cost, Report};
use crate::shell::machine::Machine;
use crate::shell::story::Story;
use crate::shell::{Parts, Shell};
use crate::stage::Stage;
use crate::world::known::KnownWorld;
use crate::world::network::Network;
use crate::world::truth::Truth;

/// Interval of ticks while failures wait or an outage lasts. The daemon's is a second; the waits
/// involved are minutes.
const LOOK_AROUND_EVERY: Duration = Duration::from_secs(10);

/// Interval for trying waiting names again and grouping new hosts. The daemon does the former every
/// ten minutes and the latter every few seconds.
const ROUND: Duration = Duration::from_secs(3600);

/// New names in a peers list. A new host appears in many lists, and one is enough.
const PEERS_NEW: usize = 8;

/// Runs a simulation from its start to its end.
///
/// # Errors
/// An invariant was broken ([`crate::guard::Broken`]), or the simulation itself failed.
pub fn run(plan: &Plan) -> anyhow::Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(simulate(plan)).with_context(|| {
        let (seed, world, capacity) = (plan.seed, plan.world.name, plan.capacity);
        let (hosts, days) = (plan.hosts, plan.days);
        format!(
            "seed {seed}, world {world}, {hosts} hosts, {days} days, {capacity} containers a second"
        )
    })
}

async fn simulate(plan: &Plan) -> anyhow::Result<Report> {
    let set_up = Instant::now();
    let mut shell = open(plan.clone()).await?;
    let set_up = set_up.elapsed();
    let began = Instant::now();
    let end = plan.end();
    Box::pin(shell.run(end)).await?;
    shell.parts.truth.advance(end)?;
    shell.story.guard.step(end);
    shell.read_the_list()?;
    let took = began.elapsed();
    let Shell { story, parts, .. } = shell;
    let waiting = parts.stage.reader.waiting()?;
    let cost = Cost {
        set_up,
        took,
        bytes: parts.stage.close()?,
        steps: story.guard.steps(),
    };
    Ok(Report {
        plan: plan.clone(),
        counts: story.measure.counts,
        longest: story.measure.longest,
        samples: story.measure.samples,
        containers: shell.containers,
        beings: parts.truth.count(),
        waiting,
        outages: parts.network.count(),
        told: shell.blackouts,
        cost,
    })
}

#[derive(Debug)]
struct Year {
    plan: Plan,
    guard: Guard,
    measure: Measure,
    chance: StdRng,
    /// Named hosts for which the intake had no room.
    waiting: BTreeSet<u32>,
    next_round: Timestamp,
}

/// A census that knows the hosts of its world.
async fn open(plan: Plan) -> anyhow::Result<Shell<Year>> {
    let (seed, start, world) = (plan.seed, plan.start, plan.world.clone());
    let mut chance = StdRng::seed_from_u64(seed);
    let hosts = match &plan.file {
        Some(file) => KnownWorld::read(file)?,
        None => KnownWorld::made(plan.hosts, world.living, world.accepting, &mut chance)?,
    };
    let parts = Parts {
        stage: Stage::open(&plan.below, seed, start).await?,
        network: Network::new(world.outages, seed, start, plan.end()),
        has_second_way: world.has_second_way,
        truth: Truth::new(hosts, world, seed, start)?,
        machine: Machine::new(1, Duration::from_secs_f64(1.0 / plan.capacity), start),
        paces: Paces {
            dial: plan.dial_pace(),
            ..Paces::default()
        },
    };
    let mut measure = Measure::new(start);
    import::import(&parts.stage, &parts.truth, &mut measure, seed, start).await?;
    sabotage::sabotage_the_start(&plan, &parts.stage).await?;
    let (least, most) = (plan.opens_max(), plan.opens_max());
    let settings = Settings {
        published: Some(LastList {
            first: Some(Timestamp(0)),
            at: Timestamp(0),
        }),
        // The simulation reports each row that becomes due sooner.
        count_again_after: ROUND,
        look_around_every: LOOK_AROUND_EVERY,
        ..parts.settings(Bounds { least, most }, most)
    };
    let year = Year {
        guard: Guard::new(start),
        measure,
        chance,
        waiting: BTreeSet::new(),
        next_round: start,
        plan,
    };
    Ok(Shell::new(year, parts, settings, start))
}

impl Story for Year {
    const STEP: Duration = Duration::from_secs(1);
    /// Look-ups take no time, so that a check needs few moments.
    const LOOK_UP: Duration = Duration::ZERO;

    async fn work(shell: &mut Shell<Self>) -> anyhow::Result<()> {
        let now = shell.now;
        let Self { guard, plan, .. } = &mut shell.story;
        guard.step(now);
        guard.started(shell.containers, plan.capacity)?;
        for number in shell.parts.truth.advance(now)? {
            shell.opt_out(number).await?;
        }
        if now >= shell.story.next_round {
            shell.round().await?;
            shell.story.next_round = now.plus(ROUND);
        }
        Ok(())
    }

    fn works_at(&self) -> Timestamp {
        self.next_round
    }

    fn takes(&self, wanted: PerClass<u32>) -> PerClass<u32> {
        if self.plan.does(Sabotage::PickTooMany) {
            PerClass::each(|class| *wanted.of(class) + 5)
        } else {
            wanted
        }
    }

    async fn taken(
        shell: &mut Shell<Self>,
        taken: &mut [store::Taken],
        room: u32,
        trigger: Trigger,
    ) -> anyhow::Result<()> {
        let (now, Parts { stage, truth, .. }) = (shell.now, &shell.parts);
        let year = &mut shell.story;
        year.guard.picked(taken.len(), room)?;
        if let Some(first) = taken.first() {
            let row = stage.reader.record(&first.record.host)?;
            year.guard.row(&first.record.host, row.as_ref())?;
        }
        for taken in taken {
            let host = &taken.record.host;
            if year.plan.does(Sabotage::ReleaseEarly) {
                stage.services.writer.release(host, now, None).await?;
            }
            if year.plan.does(Sabotage::StayDue) {
                taken.record.due = Some(now);
            }
            year.guard.taken(taken)?;
            year.measure.counts.checks += 1;
            year.measure.counts.canaries += u64::from(matches!(trigger, Trigger::Canary(_)));
            let Some(number) = truth.hosts.id(taken.record.host.as_str()) else {
                continue;
            };
            if truth.farm().contains(&number) {
                year.measure.counts.invented += 1;
            } else {
                year.measure.knows(number, now);
                year.waiting.remove(&number);
                year.measure.taken(number, &taken.record, truth);
            }
        }
        Ok(())
    }

    fn released(&mut self, release: &Release, _now: Timestamp) {
        let counts = &mut self.measure.counts;
        match &release.why {
            Released::FailedOnce(_) => counts.asked_again += 1,
            Released::Unconfirmed(_) => counts.unconfirmed += 1,
            Released::Deferred(_) => counts.put_off += 1,
            Released::Offline | Released::Fault(_) => counts.ours += 1,
            Released::CountedFault(_)
            | Released::HitOthers(_)
            | Released::OptedOut
            | Released::StoreFailed
            | Released::NotAdmitted(_) => {}
        }
        self.guard.ended(&release.host);
    }

    /// Our own records follow the same rules, without their randomness.
    async fn committed(
        shell: &mut Shell<Self>,
        record: &Record,
        verdict: &Verdict,
    ) -> anyhow::Result<()> {
        let (now, Parts { stage, truth, .. }) = (shell.now, &shell.parts);
        let (year, host) = (&mut shell.story, &record.host);
        let change = transition(record, verdict, now, Jitter(0), stage.services.calendar);
        year.guard.ended(host);
        if change.forget && !year.plan.does(Sabotage::ForgetQuietly) {
            year.measure.counts.forgotten += 1;
        }
        let is_refusal = *verdict == Verdict::OptedOut;
        year.guard.settled(host, &change.record.state, is_refusal);
        let being = truth.hosts.id(host.as_str()).and_then(|id| truth.being(id));
        year.guard.judged(host, verdict, being)?;
        let by_robots = State::OptedOut {
            by: OptedOutBy::Robots,
        };
        if year.plan.does(Sabotage::DeafToRobots) && change.record.state == by_robots {
            let writer = &stage.services.writer;
            writer.opt_in(host, OptedOutBy::Robots, now).await?;
            shell.events.push_back(Event::RowsChanged);
        }
        if let Some(number) = truth.hosts.id(host.as_str())
            && !truth.farm().contains(&number)
        {
            year.measure.settled(number, &change.record, truth, now);
            if let Verdict::Moved { to } = verdict {
                shell.look_for(to)?;
            }
        }
        Ok(())
    }

    /// Names in a responding host's peers list arrive at the gate.
    async fn read_peers(shell: &mut Shell<Self>, by: Host, _id: u32) -> anyhow::Result<()> {
        let Parts { stage, truth, .. } = &shell.parts;
        let numbers = truth.speaks_of(PEERS_NEW, &mut shell.story.chance);
        let named = numbers
            .iter()
            .filter_map(|number| truth.hosts.host(*number));
        let hosts: Vec<Host> = named.map(|known| known.host.clone()).collect();
        if hosts.is_empty() {
            return Ok(());
        }
        stage.services.learn(hosts.clone(), &by).await?;
        for host in &hosts {
            shell.look_for(host)?;
        }
        Ok(())
    }

    async fn publish(shell: &mut Shell<Self>) -> anyhow::Result<u64> {
        shell.read_the_list()
    }
}

impl Shell<Year> {
    /// An owner opts a host out through the operator: a check of it ends at once.
    async fn opt_out(&mut self, number: u32) -> anyhow::Result<()> {
        let Parts { stage, truth, .. } = &self.parts;
        let Some(known) = truth.hosts.host(number) else {
            return Ok(());
        };
        let (year, host) = (&mut self.story, known.host.clone());
        year.measure.counts.words += 1;
        if !year.plan.does(Sabotage::DeafToWord) {
            let writer = &stage.services.writer;
            writer.opt_out(&host, OptedOutBy::Owner, self.now).await?;
        }
        year.measure.knows(number, self.now);
        year.guard.word(host.clone());
        self.events.push_back(Event::OptedOut { host });
        Ok(())
    }

    /// Checks whether a named host was admitted. If not, it may wait.
    fn look_for(&mut self, host: &Host) -> anyhow::Result<()> {
        let Parts { stage, truth, .. } = &self.parts;
        let year = &mut self.story;
        let Some(number) = truth.hosts.id(host.as_str()) else {
            return Ok(());
        };
        if year.measure.is_known(number) {
            return Ok(());
        }
        if stage.reader.record(host)?.is_some() {
            year.measure.knows(number, self.now);
            year.waiting.remove(&number);
            self.events.push_back(Event::RowsChanged);
        } else {
            year.waiting.insert(number);
        }
        Ok(())
    }
}
