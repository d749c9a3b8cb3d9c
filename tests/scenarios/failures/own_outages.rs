//! Invariant I5, its second half. A fault of ours, of any kind and length, changes no host's state
//! and loses no verdict. It is reported in helpful words, uses no CPU and floods no log, and the
//! census recovers automatically when it ends.

mod clock;
mod disk;
mod engine;
mod parts;
mod real_engine;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use tests::world::WITH_METRICS;
use tests::{Heard, Need, Options, Role, Watch, World};
use tokio::time::Instant;

const SOON: Duration = tests::PATIENCE;

/// Responding hosts: more than it takes to see that failing checks are no coincidence.
const CROWD: u32 = 25;

/// A day passes in ten seconds, and every host is checked within it.
const DIVISOR: u32 = 10_000;

/// How long a fault continues after it was reported: long enough for several looks whether it is
/// over.
const HOLD: Duration = Duration::from_secs(8);

/// Most warnings and errors of a part during a fault: those of the checks that met it, and a few
/// more.
const COMPLAINTS_MAX: usize = 60;

/// Share of a processor that the daemon may use while nothing can be checked.
const IDLE_SHARE_MAX: f64 = 0.25;

fn crowd() -> impl Iterator<Item = String> {
    lab::crowd::Crowd::new(CROWD, 1).names()
}

fn options() -> Options {
    let mut options = Options::new(&[]);
    options.seeds = crowd().collect();
    options.crowd = CROWD;
    options.interval_divisor = DIVISOR;
    let (key, value) = WITH_METRICS;
    options.settings.push((key, value.to_owned()));
    options
}

async fn living(options: Options) -> anyhow::Result<World> {
    let world = World::start(options).await?;
    all_live(&world).await?;
    Ok(world)
}

async fn all_live(world: &World) -> anyhow::Result<()> {
    world
        .until("the whole crowd lives and is published", SOON, |world| {
            let counts = world.reader()?.counts()?;
            let alive = counts
                .by_state
                .iter()
                .any(|(state, count)| state.as_str() == "alive" && *count == u64::from(CROWD));
            Ok(alive && world.nodes()?.len() == usize::try_from(CROWD)?)
        })
        .await
}

fn status(world: &World) -> anyhow::Result<String> {
    let output = world.command(&["status"])?;
    Ok(format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// A fault in progress, and everything that must hold during it and afterwards.
struct Fault {
    watch: Watch,
    heard: Heard,
    name: String,
    complained: [usize; 3],
    began: Instant,
}

impl Fault {
    fn begin(world: &World, name: &str) -> anyhow::Result<Self> {
        Ok(Self {
            watch: Watch::begin(world, name, crowd())?,
            heard: Heard::begin(world),
            name: name.to_owned(),
            complained: PARTS.map(|part| complaints(world, part).len()),
            began: Instant::now(),
        })
    }

    /// Waits until `status` shows every one of these phrases, and the daemon's log at least one.
    async fn is_said(&self, world: &World, phrases: &[&str]) -> anyhow::Result<()> {
        let (mut last, mut heard) = (String::new(), self.heard.clone());
        let shown = world
            .until("all places say what is wrong", SOON, |world| {
                let all = heard.look(world)?;
                last = status(world)?;
                Ok(all && phrases.iter().all(|phrase| last.contains(phrase)))
            })
            .await;
        shown.with_context(|| format!("{phrases:?} are not all in:\n{last}, {heard:?}"))?;
        heard.write(world, &self.name)?;
        world
            .until("the log says so", SOON, |world| {
                let log = complaints(world, Role::Run);
                let mut new = log.iter().skip(self.complained[0]);
                Ok(new.any(|line| phrases.iter().any(|phrase| line.contains(phrase))))
            })
            .await
    }

    /// Continues for a while: no host is wronged, nothing spins, no log is flooded.
    async fn lasts(&self, world: &World) -> anyhow::Result<()> {
        let (since, before) = (Instant::now(), world.usage(Role::Run));
        world
            .until("it has lasted", SOON, |_| Ok(since.elapsed() > HOLD))
            .await?;
        if let (Ok(before), Ok(after)) = (before, world.usage(Role::Run)) {
            let share = after.since(before).cpu_seconds / since.elapsed().as_secs_f64();
            anyhow::ensure!(share < IDLE_SHARE_MAX, "the daemon spins: {share:.2}");
        }
        self.is_borne(world)
    }

    fn is_borne(&self, world: &World) -> anyhow::Result<()> {
        let wronged = self.watch.wronged(world)?;
        anyhow::ensure!(wronged.is_empty(), "wronged: {wronged:#?}");
        for (part, before) in PARTS.into_iter().zip(self.complained) {
            let said = complaints(world, part);
            let new = said.get(before..).unwrap_or_default();
            anyhow::ensure!(
                new.len() <= COMPLAINTS_MAX,
                "{part:?} floods its log in {:?}: {new:#?}",
                self.began.elapsed()
            );
        }
        Ok(())
    }

    /// Ends the fault: work continues automatically, nothing is reported as wrong any more, and the
    /// list is whole.
    async fn ends_well(mut self, world: &World) -> anyhow::Result<()> {
        self.watch.over(world)?;
        self.watch.recovers(world, SOON).await?;
        world
            .until("nothing is wrong any more", SOON, |world| {
                let status = status(world)?;
                Ok(!["OUTAGE", "DUMP ", "CLOCK", "UNREACHABLE", "TROUBLE"]
                    .iter()
                    .any(|word| status.contains(word)))
            })
            .await?;
        let listed: BTreeSet<_> = world.nodes()?.into_iter().collect();
        let missing: Vec<_> = crowd().filter(|name| !listed.contains(name)).collect();
        anyhow::ensure!(missing.is_empty(), "not on the list: {missing:?}");
        Ok(())
    }
}

const PARTS: [Role; 3] = [Role::Run, Role::Gateway, Role::Launcher];

fn complaints(world: &World, part: Role) -> Vec<String> {
    world
        .log(part)
        .lines()
        .filter(|line| line.contains(" WARN ") || line.contains(" ERROR "))
        .map(str::to_owned)
        .collect()
}
