//! Invariant I5: our own failure never counts against a host.
//!
//! Each test exposes a responding crowd to a failure of ours until `status` and the log report it.
//! It asserts that no host is wronged, ends the failure, and waits until all hosts are found alive
//! again automatically. The results are written to `target/tables/faults.md`.

mod hostile;
mod names;
mod network;
mod tls;
mod ways;

use std::collections::BTreeMap;
use std::time::Duration;

use lab::crowd::Crowd;
use tests::world::WITH_METRICS;
use tests::{Heard, Options, Watch, World};

const SOON: Duration = tests::PATIENCE;

const CROWD: u32 = 36;

/// A day in thirty seconds: each host is checked several times during the test, but not all at
/// once.
const DIVISOR: u32 = 3500;

/// How the log's messages begin, when the blackout begins and when it ends.
const BEGINS: &str = "ERROR NO CHECK SUCCEEDS";
const ENDS: &str = "ended: NO CHECK SUCCEEDS";

fn crowd() -> impl Iterator<Item = String> {
    Crowd::new(CROWD, 1).names()
}

fn options() -> Options {
    let mut options = Options::new(&[]);
    options.seeds = crowd().collect();
    options.canaries = options.seeds.iter().take(2).cloned().collect();
    options.crowd = CROWD;
    options.interval_divisor = DIVISOR;
    // Enough slots for slow failures to accumulate.
    let (key, value) = WITH_METRICS;
    options.settings = vec![("checks_max", "12".to_owned()), (key, value.to_owned())];
    options
}

async fn a_living_crowd() -> anyhow::Result<World> {
    let world = World::start(options()).await?;
    until_all_live(&world).await?;
    Ok(world)
}

async fn until_all_live(world: &World) -> anyhow::Result<()> {
    world
        .until("the whole crowd lives", SOON, |world| {
            let seeds = world.setting("seeds").split(',').count();
            Ok(states(world)?.get("alive") >= Some(&u64::try_from(seeds)?))
        })
        .await
}

fn states(world: &World) -> anyhow::Result<BTreeMap<String, u64>> {
    let counts = world.reader()?.counts()?;
    Ok(counts
        .by_state
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(state, count)| (state.as_str().to_owned(), count))
        .collect())
}

fn told(world: &World, words: &str) -> anyhow::Result<Vec<String>> {
    let mut told = Vec::new();
    for log in LOGS {
        let log = std::fs::read_to_string(world.path(log))?;
        let lines = log.lines().filter(|line| line.contains(words));
        told.extend(lines.map(str::to_owned));
    }
    Ok(told)
}

fn status_text(world: &World) -> anyhow::Result<String> {
    Ok(String::from_utf8(world.command(&["status"])?.stdout)?)
}

/// Least number of hosts that a failure must hit before it ends. A failure that stops everything at
/// once hits few.
const MET_MIN: usize = 6;

/// Number of hosts in the crowd that wait for a witness, or were deferred or released, since their
/// last verdict.
fn met(world: &World) -> anyhow::Result<usize> {
    let mut met = 0;
    for name in crowd() {
        let noted = |stored: store::Stored| stored.in_flight || stored.last_note.is_some();
        met += usize::from(world.host(&name)?.is_some_and(noted));
    }
    Ok(met)
}

struct Trouble {
    fault: &'static str,
    says: &'static [&'static str],
    /// What the log reports once at its start, and once at its end.
    logs: [&'static str; 2],
    met_min: usize,
}

const LOGS: [&str; 2] = ["run.log", "gateway.log"];

impl Trouble {
    fn blackout(fault: &'static str, says: &'static [&'static str]) -> Self {
        Self {
            fault,
            says,
            logs: [BEGINS, ENDS],
            met_min: MET_MIN,
        }
    }

    async fn strikes(
        &self,
        world: &World,
        begin: impl FnOnce() -> anyhow::Result<()>,
        end: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let [begins, ends] = self.logs;
        let (before, ended_before) = (told(world, begins)?, told(world, ends)?);
        let mut watch = Watch::begin(world, self.fault, crowd())?;
        let mut heard = Heard::begin(world);
        begin()?;
        let what = format!("status tells of it: {}", self.fault);
        let says = world
            .until(&what, SOON, |world| {
                heard.look(world)?;
                let text = status_text(world)?;
                let says = self.says.iter().all(|words| text.contains(words));
                let logged = told(world, begins)?.len() > before.len();
                Ok(says && logged && met(world)? >= self.met_min)
            })
            .await;
        let text = status_text(world)?;
        assert!(says.is_ok(), "{text}\n{says:?}");
        let is_ill = [
            BEGINS.trim_start_matches("ERROR "),
            "NO FAILURE IS",
            "OUTAGE ",
        ];
        if is_ill.iter().any(|label| text.contains(label)) {
            let all = |world: &World| heard.look(world);
            world.until("all places say it", SOON, all).await?;
            heard.write(world, self.fault)?;
        } else {
            assert!(world.command(&["health"])?.status.success(), "{text}");
        }
        assert_eq!(
            watch.wronged(world)?,
            Vec::<String>::new(),
            "{}",
            self.fault
        );
        watch.over(world)?;
        end()?;
        watch.recovers(world, SOON).await?;
        for (words, before) in [(begins, before), (ends, ended_before)] {
            let told = told(world, words)?;
            assert_eq!(told.len(), before.len() + 1, "{}: {told:#?}", self.fault);
        }
        let text = status_text(world)?;
        assert!(!text.contains("NO CHECK SUCCEEDS"), "it is over: {text}");
        Ok(())
    }
}

fn replace(world: &World, file: &str, text: &str) -> anyhow::Result<()> {
    let temporary = world.path(&format!("{file}.new"));
    std::fs::write(&temporary, text)?;
    Ok(std::fs::rename(&temporary, world.path(file))?)
}
