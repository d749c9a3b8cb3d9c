//! The attacker misuses its stdout against the whole census (invariants I3, I9): at worst, its own
//! host gets a bad verdict.
//!
//! With an engine, each attacker is a container. Without one, it is a plain process, and the
//! attackers that only a container's limits stop are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use census::time::{Calendar, Jitter};
use store::Stored;
use tests::{Engine, Options, Role, Table, Usage, World, patient, unhurried};

use super::standin::{Image, Program};
use crate::confinement::containers::engine;

pub(super) const SOON: Duration = tests::PATIENCE;

/// Ordinary instances next to the attackers: enough that one of them succeeds between any two
/// faults.
const CROWD: u32 = 10;

/// Checks at once: more than those that last until their deadline. A slow engine makes each wait
/// for all others, until the launcher treats it as not answering; but one check must not wait until
/// another reaches its deadline.
const CHECKS_MAX: u32 = 10;
const CHECKS_AT_LEAST: u32 = 3;

/// A siege: some attackers, and how fast time passes during it.
struct Siege {
    rows: Vec<Row>,
    divisor: u32,
    /// Names listed by these attackers that the census doesn't know yet. They are valid, so they
    /// become candidates, whatever their source.
    candidates: &'static [&'static str],
}

impl Siege {
    /// Two sieges. An attacker that never reports a finding is checked three times, over three
    /// days, before it has a verdict; all others need one day. A day of theirs lasts as long as an
    /// engine takes to start seventy checks, so that the checks don't queue up behind each other.
    fn of(rows: Vec<Row>) -> [Self; 2] {
        let (a_day, three_days) = match Engine::from_environment() {
            Engine::Socket(_) => (unhurried(2000), unhurried(8000)),
            // Processes start at once.
            Engine::Process => (10_000, 20_000),
        };
        let is_thrice = |row: &Row| row.verdict.1 == "faulting";
        let (thrice, once) = rows.into_iter().partition(is_thrice);
        [
            Self {
                rows: once,
                divisor: a_day,
                candidates: &[
                    "before.peers.example",
                    "honest-candidate.peers.example",
                    "xn--bcher-kva.peers.example",
                ],
            },
            Self {
                rows: thrice,
                divisor: three_days,
                candidates: &[],
            },
        ]
    }

    fn calendar(&self) -> Calendar {
        Calendar {
            divisor: self.divisor,
        }
    }
}

/// CPU time of orchestrator, launcher and gateway together, per check of a siege. If the parts read
/// everything, the seven attackers that send 10 GB would each take half a minute until their
/// deadline, several times.
const CPU_A_CHECK_MAX: Duration = Duration::from_millis(500);

/// Memory of any part, in bytes, however much is sent (invariant I9).
const MEMORY_BYTES_MAX: u64 = 256 << 20;

const ROWS: &str = include_str!("../../../fixtures/adversary/wire.toml");

#[derive(Clone)]
struct Row {
    /// First label of its host, which names what to do.
    label: String,
    tried: String,
    /// Verdict and reason of every check of its host.
    verdict: (String, String),
    /// Whether only a container's limits stop it, or a launcher that enforces a container's
    /// deadline.
    contained: bool,
}

fn rows() -> anyhow::Result<Vec<Row>> {
    let table: toml::Table = ROWS.parse()?;
    let rows = table.into_iter().map(|(label, value)| {
        let texts: Vec<String> = value.try_into()?;
        let [tried, verdict, reason, rest @ ..] = &texts[..] else {
            bail!("{label}: three texts were expected");
        };
        Ok(Row {
            tried: tried.clone(),
            verdict: (verdict.clone(), reason.clone()),
            contained: rest.iter().any(|word| word == "contained"),
            label,
        })
    });
    rows.collect()
}

pub(super) fn host(label: &str) -> String {
    format!("{label}.standin.test")
}

pub(super) fn crowd() -> Vec<String> {
    lab::crowd::Crowd::new(CROWD, 1).names().collect()
}

/// A world with a responding crowd, and no other hosts yet.
pub(super) async fn peace(checker: String, divisor: u32) -> anyhow::Result<World> {
    let mut options = Options::new(&[]);
    options.seeds = crowd();
    options.canaries = options.seeds.iter().take(2).cloned().collect();
    options.crowd = CROWD;
    options.checker = Some(checker);
    options.interval_divisor = divisor;
    let checks_max = unhurried(CHECKS_MAX).max(CHECKS_AT_LEAST);
    options.settings = vec![("checks_max", checks_max.to_string())];
    let mut world = World::prepare(options).await?;
    let address = world.lab().address();
    let names = world.path("lab/names");
    let mut lines = std::fs::read_to_string(&names)?;
    let (ip, port) = (address.ip(), address.port());
    lines.push_str(&format!("*.standin.test {ip} {port}\n"));
    std::fs::write(&names, lines)?;
    for role in [Role::Gateway, Role::Launcher, Role::Run] {
        world.begin(role).await?;
    }
    let lives = |world: &World| {
        let counts = world.reader()?.counts()?;
        let alive = |(state, count): &(_, u64)| {
            census::state::StateName::as_str(*state) == "alive" && *count == u64::from(CROWD)
        };
        Ok(counts.by_state.iter().any(alive))
    };
    world.until("the whole crowd lives", SOON, lives).await?;
    Ok(world)
}

/// Invariant I3, with I4 and I9: floods, half lines, forged verdicts.
#[tokio::test(flavor = "multi_thread")] // S5 I3
async fn hostile_checker_harms_its_own_host_only() -> anyhow::Result<()> {
    let (heading, part, attacker, rows) = match engine()? {
        Some(engine) => {
            let image = Image::build(&engine, "misbehaves")?;
            let heading = "Misusing stdout, from containers";
            (heading, "2-wire", Attacker::Image(image), rows()?)
        }
        None => {
            let (contained, rows): (Vec<_>, Vec<_>) =
                rows()?.into_iter().partition(|row| row.contained);
            eprintln!(
                "over plain processes now: all attackers but the {} that a container alone stops",
                contained.len()
            );
            let program = Program::build()?;
            let heading = "Misusing stdout, from plain processes";
            let attacker = Attacker::Program(program.beside_the_checker()?, program);
            (heading, "3-wire-of-processes", attacker, rows)
        }
    };
    let mut outcome = Outcome::new(heading);
    for siege in Siege::of(rows) {
        let world = peace(attacker.checker(), siege.divisor).await?;
        besiege(&world, &siege, &mut outcome).await?;
    }
    outcome.table.write("adversary", part)?;
    let differences = outcome.differences;
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    Ok(())
}

/// The program in place of the checker, kept until it is not needed.
pub(super) enum Attacker {
    Image(Image),
    Program(
        PathBuf,
        #[expect(dead_code, reason = "its folder goes with it")] Program,
    ),
}

impl Attacker {
    /// The setting that makes a census start it.
    pub(super) fn checker(&self) -> String {
        match self {
            Self::Image(image) => image.name.clone(),
            Self::Program(path, _) => path.display().to_string(),
        }
    }
}

const PARTS: [Role; 3] = [Role::Gateway, Role::Launcher, Role::Run];

struct Outcome {
    table: Table,
    differences: Vec<String>,
}

impl Outcome {
    fn new(heading: &str) -> Self {
        Self {
            table: Table::new(heading, &["tried", "expected", "happened", "verdicts"]),
            differences: Vec::new(),
        }
    }

    /// Asserts that every verdict of this attacker's host is the expected one.
    fn add(&mut self, row: &Row, stored: &Stored) {
        let entries = stored.history.iter().cloned();
        let verdicts = entries.map(|entry| (entry.verdict, entry.reason.unwrap_or_default()));
        let found: BTreeSet<(String, String)> = verdicts.collect();
        let expected = BTreeSet::from([row.verdict.clone()]);
        let shown = |set: &BTreeSet<(String, String)>| {
            let texts = set
                .iter()
                .map(|(verdict, reason)| format!("{verdict} {reason}").trim_end().to_owned());
            texts.collect::<Vec<_>>().join(", ")
        };
        let happened = match found == expected {
            true => shown(&found),
            false => format!("**{}**", shown(&found)),
        };
        let count = stored.history.len().to_string();
        let expected_text = shown(&expected);
        self.table
            .row(&[&row.tried, &expected_text, &happened, &count]);
        if found != expected {
            self.differences
                .push(format!("{}: {}", row.label, shown(&found)));
        }
    }
}

async fn besiege(world: &World, siege: &Siege, outcome: &mut Outcome) -> anyhow::Result<()> {
    let rows = &siege.rows;
    let usage = |world: &World| -> anyhow::Result<BTreeMap<Role, Usage>> {
        let each = PARTS.map(|role| Ok((role, world.usage(role)?)));
        each.into_iter().collect()
    };
    let (before, calm) = (usage(world)?, checks(world)?);
    let lived = alive_counts(world)?;
    let hosts: Vec<String> = rows.iter().map(|row| host(&row.label)).collect();
    let names = hosts.iter().map(String::as_str);
    let add: Vec<&str> = std::iter::once("add").chain(names).collect();
    assert!(world.command(&add)?.status.success());
    let (began, mut last) = (tokio::time::Instant::now(), String::new());
    let mut waiting = rows.clone();
    let every = Duration::from_millis(500);
    let what = "every attacker has its verdict, and all others lived meanwhile";
    let all_judged = |world: &World| {
        let mut still = Vec::new();
        for row in &waiting {
            if world.verdict(&host(&row.label))?.is_none() {
                still.push(row.clone());
            }
        }
        waiting = still;
        if let Some(row) = waiting.last() {
            last.clone_from(&row.label);
        }
        let mut now = alive_counts(world)?.into_iter();
        let all_lived = now.all(|(name, count)| lived.get(&name) < Some(&count));
        Ok(waiting.is_empty() && all_lived)
    };
    let ended = world.until_each(every, what, SOON, all_judged).await;
    let without: Vec<_> = waiting.iter().map(|row| row.label.as_str()).collect();
    ended.with_context(|| format!("without a verdict: {without:?}"))?;

    let after = usage(world)?;
    let checks = checks(world)? - calm;
    let answered: u32 = alive_counts(world)?.values().sum::<u32>() - lived.values().sum::<u32>();
    for row in rows {
        let stored = world.host(&host(&row.label))?.context("known")?;
        outcome.add(row, &stored);
    }
    let attackers = u32::try_from(rows.len())?;
    outcome.table.note(&format!(
        "{attackers} attackers, a day in {} s: {checks} checks in all, {answered} ordinary ones that came out alive meanwhile. The last verdict, on {last}, came after {:.0} s.",
        siege.calendar().day(Jitter(u32::MAX / 2)).as_secs(),
        began.elapsed().as_secs_f64()
    ));
    let mut cpu_seconds = 0.0;
    for (role, used) in &after {
        let fits = used.memory_bytes_max <= MEMORY_BYTES_MAX;
        assert!(fits, "{role:?}: {used:?}");
        let used = used.since(before.get(role).copied().unwrap_or_default());
        cpu_seconds += used.cpu_seconds;
        outcome.table.note(&format!(
            "{role:?}: {:.1} s of CPU, at most {:.0} MB of memory.",
            used.cpu_seconds,
            used.memory_bytes_max as f64 / 1e6
        ));
    }
    nobody_else_was_touched(world, siege)?;
    anyhow::ensure!(checks > 0, "no check has ended");
    let a_check = cpu_seconds / checks as f64;
    let max = patient(CPU_A_CHECK_MAX).as_secs_f64();
    assert!(a_check <= max, "{a_check:.2} s of CPU a check");
    Ok(())
}

/// Checks that have ended, in whatever way.
fn checks(world: &World) -> anyhow::Result<u64> {
    let status = world.status()?;
    let ended = status["daemon"]["ended"].as_object().context("counts")?;
    Ok(ended.values().filter_map(serde_json::Value::as_u64).sum())
}

fn alive_counts(world: &World) -> anyhow::Result<BTreeMap<String, u32>> {
    let mut counts = BTreeMap::new();
    for name in crowd() {
        let stored = world.host(&name)?.context("known")?;
        counts.insert(name, stored.record.alive_count);
    }
    Ok(counts)
}

/// Asserts that the crowd is alive as before, and that the only further rows are the valid
/// candidates.
fn nobody_else_was_touched(world: &World, siege: &Siege) -> anyhow::Result<()> {
    for name in crowd() {
        let stored = world.host(&name)?.context("known")?;
        let mut verdicts = stored.history.iter();
        let all_alive = verdicts.all(|entry| entry.verdict == "alive");
        assert!(all_alive, "{name}: {:?}", stored.history);
        assert_eq!(stored.record.state.name().as_str(), "alive", "{name}");
    }
    let mut names = BTreeSet::new();
    let longest = siege.calendar().longest();
    world.reader()?.each(|record, _| {
        names.insert(record.host.to_string());
        if let (Some(due), Some(checked)) = (record.due, record.last_checked) {
            let latest = checked.plus(longest);
            assert!(due <= latest, "{} rests too long", record.host);
        }
        let software = record.instance.software.as_deref().unwrap_or_default();
        let is_text = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        assert!(software.bytes().all(is_text), "{software:?}");
    })?;
    let mut expected: BTreeSet<String> = crowd().into_iter().collect();
    expected.extend(siege.rows.iter().map(|row| host(&row.label)));
    expected.extend(siege.candidates.iter().map(|&name| name.to_owned()));
    assert_eq!(names, expected, "other rows than were named");
    for name in siege.candidates {
        let stored = world.host(name)?.context("a candidate")?;
        let last_alive = stored.record.last_alive;
        assert_eq!(last_alive, None, "{name}: somebody spoke for it");
    }
    let asked = lab::request_log::asked(&world.path("lab/requests.ndjson"))?;
    let all_ours = asked.keys().all(|name| crowd().contains(name));
    assert!(all_ours, "another host was reached: {asked:?}");
    let alive = siege.rows.iter().filter(|row| row.verdict.0 == "alive");
    let alive = alive.map(|row| host(&row.label)).chain(crowd());
    let alive: BTreeSet<String> = alive.collect();
    let listed = world.nodes()?;
    let all_alive = listed.iter().all(|name| alive.contains(name));
    assert!(all_alive, "listed without having lived: {listed:?}");
    Ok(())
}
