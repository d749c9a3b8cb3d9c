//! Invariant I6, and with it I4 and I5: any part is killed, at any moment. No shown verdict is
//! lost, no host is wronged, the list is whole, and nothing is left behind.
//!
//! The moments are random. `FEDICENSUS_CRASH_SEED` repeats a run, and `FEDICENSUS_CRASH_KILLS` sets
//! the number of kills.

pub(crate) mod chance;
mod commands;
mod list;
mod published;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use tests::world::EGRESS;
use tests::{Engine, EngineApi, Options, Role, Row, World};
use tokio::time::Instant;

use crate::confinement::containers::{checks_of, containers_of};
use chance::Chance;
use list::Visitor;
use published::{Published, is_kept};

const SOON: Duration = tests::PATIENCE;

/// Interval between looks at what should happen within milliseconds.
const CLOSELY: Duration = Duration::from_millis(2);

/// Kills of the daemon over plain processes; containers start so slowly that a life in which
/// something happens takes seconds.
const KILLS: u32 = 200;
const KILLS_WITH_CONTAINERS: u32 = 36;

/// One in this many kills of the daemon also kills the gateway or the launcher. It has no common
/// divisor with ten, or it would always meet the same kind of moment.
const GATEWAY_TOO: u32 = 9;
const LAUNCHER_TOO: u32 = 13;

/// Longest wait for a dump to kill in the middle: one is made at every start, and every two seconds
/// after.
const DUMP_WITHIN: Duration = Duration::from_secs(5);

/// Longest time for which a story goes on after its planned kills, until enough has happened. On a
/// busy machine many kills meet a daemon that is idle.
pub(crate) const ENOUGH_WITHIN: Duration = Duration::from_mins(5);

/// Verdicts as `explain` shows them, a list for each host.
type Told = BTreeMap<String, Vec<String>>;

#[derive(Debug, Clone, Copy)]
enum Moment {
    /// While it starts: arguments, lock, migrations, recovery, seeds, first dump.
    Starting,
    /// While a list is being written: the first of its life, or one that was ordered.
    Publishing { asked_for: bool },
    /// While checks run and verdicts come in.
    Checking,
}

#[derive(Debug, Default)]
struct Left {
    egress: BTreeSet<String>,
    containers: BTreeSet<String>,
    half_written: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Tally {
    kills: u32,
    kills_starting: u32,
    kills_with_checks: u32,
    kills_in_a_dump: u32,
    kills_of_gateway: u32,
    kills_of_launcher: u32,
    starts: u32,
    starting: Duration,
}

struct Story {
    world: World,
    names: Vec<String>,
    chance: Chance,
    shown: Published,
    left: Left,
    tally: Tally,
    /// Longest life that is ended while checks run.
    life_max: Duration,
}

#[tokio::test(flavor = "multi_thread")] // S60
async fn no_kill_at_any_moment_loses_a_verdict_or_wrongs_anybody() -> anyhow::Result<()> {
    let began = Instant::now();
    let engine = Engine::from_environment();
    let (kills, crowd, what) = match engine {
        Engine::Process => (KILLS, 40, "all parts killed at random, over processes"),
        Engine::Socket(_) => (
            KILLS_WITH_CONTAINERS,
            8,
            "all parts killed at random, over containers",
        ),
    };
    let kills = number_from_environment("FEDICENSUS_CRASH_KILLS").unwrap_or(kills);
    let mut story = Story::begin(crowd).await?;
    let seed = story.chance.seed;
    let visitor = Visitor::of(story.world.path("public"));
    let mut outcome = Ok(());
    let mut until = None;
    for number in 1.. {
        let mut is_over = || {
            Instant::now() > *until.get_or_insert(Instant::now() + tests::patient(ENOUGH_WITHIN))
        };
        if number > kills && (story.has_seen_enough(kills) || is_over()) {
            break;
        }
        outcome = story
            .life(number)
            .await
            .with_context(|| format!("kill {number} of seed {seed}"));
        if outcome.is_err() {
            break;
        }
    }
    let visits = visitor.leaves().await;
    let outcome = match outcome {
        Ok(()) => story
            .recovers()
            .await
            .with_context(|| format!("seed {seed}")),
        Err(error) => Err(error),
    };
    write_figures(&story, seed, began.elapsed())?;
    let row = Row {
        fault: what.to_owned(),
        lasted: began.elapsed(),
        states_changed_wrongly: story.shown.wronged.len(),
        verdicts_lost: story.shown.lost.len(),
        recovered: outcome.is_ok(),
    };
    let settled = row.settle();
    outcome?;
    settled?;
    assert!(visits? > 0, "nobody looked at the list");
    assert!(story.has_seen_enough(kills), "{:?}", story.tally);
    Ok(())
}

impl Story {
    async fn begin(crowd: u32) -> anyhow::Result<Self> {
        let names: Vec<String> = lab::crowd::Crowd::new(crowd, 1).names().collect();
        let mut options = Options::new(&[]);
        options.seeds = names.clone();
        options.crowd = crowd;
        // A day in ten seconds and a dump every two.
        options.interval_divisor = 10_000;
        let life_max = match &options.engine {
            Engine::Process => Duration::from_millis(900),
            Engine::Socket(_) => Duration::from_millis(4000),
        };
        let mut world = World::prepare(options).await?;
        world.begin(Role::Gateway).await?;
        world.begin(Role::Launcher).await?;
        Ok(Self {
            world,
            names,
            chance: Chance::new(),
            shown: Published::default(),
            left: Left::default(),
            tally: Tally::default(),
            life_max,
        })
    }

    /// Whether enough kills met the daemon at work: far fewer than expected, but a run without any
    /// proves nothing.
    fn has_seen_enough(&self, kills: u32) -> bool {
        let tally = &self.tally;
        tally.kills_with_checks > kills / 20
            && tally.kills_in_a_dump > kills / 50
            && tally.kills_of_gateway > 0
            && tally.kills_of_launcher > 0
            && self.shown.verdicts() > self.names.len() as u64
    }

    /// One life of the daemon, from its start to its kill.
    async fn life(&mut self, number: u32) -> anyhow::Result<()> {
        // In turn, so that each kind occurs often enough; within its kind, the moment is random.
        let moment = match number % 10 {
            0..3 => Moment::Starting,
            3 => Moment::Publishing { asked_for: false },
            4 => Moment::Publishing { asked_for: true },
            _ => Moment::Checking,
        };
        self.world.begin(Role::Run).await?;
        let mut told = None;
        let mut command = None;
        match moment {
            Moment::Starting => {
                let most = self.mean_start() * 2;
                tokio::time::sleep(self.chance.moment(most)).await;
                self.tally.kills_starting += 1;
            }
            Moment::Publishing { asked_for } => {
                if asked_for {
                    self.is_up().await?;
                    command = Some(self.world.begin_command(&["dump"])?);
                }
                self.a_list_is_being_written().await?;
            }
            Moment::Checking => {
                self.is_up().await?;
                self.shown.look(&self.world, &self.names)?;
                // On a busy machine a check takes longer, and so does a start.
                let most = self.life_max.max(self.mean_start() * 10);
                tokio::time::sleep(self.chance.moment(most)).await;
                if self.chance.one_in(4) {
                    told = Some(explained(&self.world, &self.names)?);
                }
                // This is what `explain` shows; running `explain` would take longer than many a
                // life.
                self.shown.look(&self.world, &self.names)?;
            }
        }
        self.kill(number)?;
        if let Some(mut command) = command {
            command.wait()?;
        }
        self.looks_back(told).await
    }

    /// Examines what a killed daemon left, while no daemon runs.
    async fn looks_back(&mut self, told: Option<Told>) -> anyhow::Result<()> {
        let world = &self.world;
        self.left.egress.extend(names_in(&world.path(EGRESS))?);
        self.left.containers.extend(containers(world)?);
        let half_written = list::half_written(&world.path("public"))?;
        self.tally.kills_in_a_dump += u32::from(!half_written.is_empty());
        self.left.half_written.extend(half_written);
        list::whole(&world.path("public"))?;
        // Killed in its very first life, before it had created one.
        if world.path("data/census.db").exists() && self.tally.starts > 0 {
            let in_flight = world.reader()?.counts()?.in_flight;
            self.tally.kills_with_checks += u32::from(in_flight > 0);
            self.shown.look(world, &self.names)?;
        }
        if let Some(told) = told {
            for (name, tells) in explained(world, &self.names)? {
                let told = told.get(&name).context("told before")?;
                ensure!(is_kept(told, &tells), "{name}: {told:#?} became {tells:#?}");
            }
        }
        for role in [Role::Gateway, Role::Launcher] {
            if !self.world.runs(role)? {
                self.world.begin(role).await?;
            }
        }
        Ok(())
    }

    /// Sometimes another part is killed as well, before or after.
    fn kill(&mut self, number: u32) -> anyhow::Result<()> {
        let gateway = number.is_multiple_of(GATEWAY_TOO);
        let launcher = number.is_multiple_of(LAUNCHER_TOO);
        let mut roles = vec![Role::Run];
        if gateway {
            roles.insert(0, Role::Gateway);
            self.tally.kills_of_gateway += 1;
        }
        if launcher {
            roles.push(Role::Launcher);
            self.tally.kills_of_launcher += 1;
        }
        if self.chance.one_in(2) {
            roles.reverse();
        }
        for role in roles {
            self.world.kill(role)?;
        }
        self.tally.kills += 1;
        Ok(())
    }

    /// Waits until the daemon has recovered: its gate is open, the database sound, and what the
    /// last lives left is gone.
    async fn is_up(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        self.world
            .until_each(CLOSELY, "the daemon is up", SOON, |world| {
                Ok(UnixStream::connect(world.path("data/control.sock")).is_ok())
            })
            .await?;
        self.tally.starts += 1;
        self.tally.starting += began.elapsed();
        let left = std::mem::take(&mut self.left);
        let stale: Vec<_> = list::half_written(&self.world.path("public"))?
            .intersection(&left.half_written)
            .cloned()
            .collect();
        ensure!(
            stale.is_empty(),
            "half-written lists are still there: {stale:?}"
        );
        self.shown.look(&self.world, &self.names)?;
        self.world
            .until_each(
                CLOSELY,
                "egress and containers of former lives are gone",
                SOON,
                |world| {
                    Ok(names_in(&world.path(EGRESS))?.is_disjoint(&left.egress)
                        && containers(world)?.is_disjoint(&left.containers))
                },
            )
            .await
    }

    fn mean_start(&self) -> Duration {
        self.tally
            .starting
            .checked_div(self.tally.starts)
            .unwrap_or(Duration::from_millis(100))
    }

    async fn a_list_is_being_written(&mut self) -> anyhow::Result<()> {
        let public = self.world.path("public");
        let stale = self.left.half_written.clone();
        let deadline = Instant::now() + DUMP_WITHIN;
        // Without a pause: a dump lasts some milliseconds. On a busy machine it may still pass
        // unseen; then this is an ordinary kill.
        while list::half_written(&public)?.is_subset(&stale) && Instant::now() < deadline {
            tokio::task::yield_now().await;
        }
        // Mostly at once: by the timer's next tick it may be over.
        if self.chance.one_in(3) {
            tokio::time::sleep(self.chance.moment(Duration::from_millis(3))).await;
        }
        Ok(())
    }

    /// Work continues automatically, nothing stays in flight, and nothing is left.
    async fn recovers(&mut self) -> anyhow::Result<()> {
        self.world.begin(Role::Run).await?;
        self.is_up().await?;
        let then = self.shown.alive_counts();
        self.world
            .until("everybody has lived again", SOON, |world| {
                let reader = world.reader()?;
                then.iter().try_fold(true, |all, (name, count)| {
                    let stored = reader.record(&protocol::Host::parse(name)?)?;
                    let lived = stored.is_some_and(|stored| stored.record.alive_count > *count);
                    Ok(all && lived)
                })
            })
            .await?;
        let published = self.world.command(&["dump"])?;
        ensure!(published.status.success(), "{published:?}");
        let (plain, unpacked) =
            list::whole(&self.world.path("public"))?.context("nothing was published")?;
        let mut all = self.names.clone();
        all.sort();
        ensure!(
            plain == all && unpacked == all,
            "not all are listed: {plain:?}"
        );
        self.world.stop(Role::Run).await?;
        self.shown.look(&self.world, &self.names)?;
        ensure!(
            self.world.reader()?.counts()?.in_flight == 0,
            "in flight for ever"
        );
        self.world
            .until("nothing is left", SOON, |world| {
                Ok(names_in(&world.path(EGRESS))?.is_empty()
                    && containers(world)?.is_empty()
                    && list::half_written(&world.path("public"))?.is_empty())
            })
            .await?;
        let Engine::Socket(socket) = Engine::from_environment() else {
            return Ok(());
        };
        self.world.stop(Role::Launcher).await?;
        let left = containers_of(&self.world, &EngineApi::connect(&socket)?)?;
        ensure!(left.is_empty(), "containers are left: {left:?}");
        Ok(())
    }
}

/// The past of each host in `fedicensus explain --json`, newest first.
fn explained(world: &World, names: &[String]) -> anyhow::Result<Told> {
    let mut arguments = vec!["explain", "--json"];
    arguments.extend(names.iter().map(String::as_str));
    let output = world.command(&arguments)?;
    ensure!(output.status.success(), "explain: {output:?}");
    let told: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout)?;
    ensure!(told.len() == names.len(), "not all are explained");
    told.iter()
        .map(|host| {
            let history = host["history"].as_array().context("a history")?;
            let verdicts = history.iter().map(ToString::to_string).collect();
            Ok((host["host"].to_string(), verdicts))
        })
        .collect()
}

/// Containers of this world's checks, or the processes that replace them: they outlive a launcher,
/// as containers do.
fn containers(world: &World) -> anyhow::Result<BTreeSet<String>> {
    if let Engine::Socket(socket) = Engine::from_environment() {
        let engine = EngineApi::connect(&socket)?;
        return Ok(checks_of(world, &engine)?.into_iter().collect());
    }
    let egress = world.path(EGRESS).display().to_string();
    let mut found = BTreeSet::new();
    for process in names_in(Path::new("/proc"))? {
        // Most entries are not processes, and any process may end during the look.
        let Ok(line) = std::fs::read(format!("/proc/{process}/cmdline")) else {
            continue;
        };
        let line = String::from_utf8_lossy(&line);
        if line.contains("fedicensus-checker")
            && !line.contains("process-launcher")
            && line.contains(&egress)
        {
            found.insert(line.into_owned());
        }
    }
    Ok(found)
}

fn names_in(folder: &Path) -> anyhow::Result<BTreeSet<String>> {
    std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

pub(crate) fn number_from_environment(variable: &str) -> Option<u32> {
    std::env::var_os(variable)?.to_str()?.parse().ok()
}

fn write_figures(story: &Story, seed: u64, lasted: Duration) -> anyhow::Result<()> {
    let tables = tests::tables::directory()?;
    std::fs::create_dir_all(&tables)?;
    let tally = &story.tally;
    let text = format!(
        "| figure | value |\n|---|---|\n| kills of the daemon | {} |\n| of these while it started | {} |\n| with checks in flight | {} |\n\
         | while a list was being written | {} |\n| of the gateway | {} |\n| of the launcher | {} |\n| mean start until recovered | {} ms |\n\
         | verdicts in all | {} |\n| lasted | {:.0} s |\n| seed | {seed} |\n",
        tally.kills,
        tally.kills_starting,
        tally.kills_with_checks,
        tally.kills_in_a_dump,
        tally.kills_of_gateway,
        tally.kills_of_launcher,
        story.mean_start().as_millis(),
        story.shown.verdicts(),
        lasted.as_secs_f64(),
    );
    let over = match Engine::from_environment() {
        Engine::Process => "processes",
        Engine::Socket(_) => "containers",
    };
    eprint!("{text}");
    Ok(std::fs::write(
        tables.join(format!("kills-over-{over}.md")),
        text,
    )?)
}
