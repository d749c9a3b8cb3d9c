//! The attacker misuses its stdout, and the whole census hears it (invariants I3, I9): its own host's verdict is the worst that comes of it.
//!
//! Over an engine each attacker is a container; without one it is a plain process, and those are left out that only a container's limits stop.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, bail};
use census::time::Calendar;
use tests::{Engine, EngineApi, Found, Options, Role, Table, Usage, World, patient, unhurried};

use super::standin::{Image, Program};
use crate::containers::engine;

/// All of it: three faults of one host, or a deadline met twice, each with its repetitions in between.
const SIEGE_MAX: Duration = Duration::from_secs(480);
const SOON: Duration = Duration::from_secs(120);

/// Ordinary instances beside the attackers.
const CROWD: u32 = 20;

/// Checks at once: more than the ones that last until their deadline. A slow engine makes each wait for all others, up to where the launcher takes it
/// for one that does not answer.
const CHECKS_MAX: u32 = 10;

/// What intervals are divided by: a day in a minute over an engine, in ten seconds over processes, which start at once. The crowd goes on being
/// asked, and a siege of seventy does not queue up behind itself.
fn divisor() -> u32 {
    match Engine::from_environment() {
        Engine::Socket(_) => unhurried(2000),
        Engine::Process => 10_000,
    }
}

/// CPU time that the siege may cost orchestrator, launcher and gateway together, for each attacker, the ordinary checks meanwhile included: in a
/// build without optimisation it took a fifth of a second. The seven that send 10 GB each would take half a minute apiece until their deadline,
/// and be asked several times, if they were listened to.
const CPU_AN_ATTACKER_MAX: Duration = Duration::from_millis(750);

/// Memory of any part, however much is sent (invariant I9).
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// The attackers, as data.
const ROWS: &str = include_str!("../../fixtures/adversary/wire.toml");

/// An attacker.
#[derive(Clone)]
struct Row {
    /// First label of its host, by which it knows what to do.
    label: String,
    tried: String,
    /// Verdict and reason of every check of its host.
    verdict: (String, String),
    /// Only a container's limits stop it, or a launcher that keeps the deadline over one.
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

/// Names that attackers list and that are none's yet: valid ones, so candidates, whoever said so.
const CANDIDATES: [&str; 3] = [
    "before.peers.example",
    "honest-candidate.peers.example",
    "xn--bcher-kva.peers.example",
];

fn host(label: &str) -> String {
    format!("{label}.standin.test")
}

fn crowd() -> Vec<String> {
    lab::crowd::Crowd::new(CROWD, 1).names().collect()
}

/// A living crowd, and nobody else yet.
async fn peace(checker: String) -> anyhow::Result<World> {
    let mut options = Options::new(&[]);
    options.seeds = crowd();
    options.canaries = options.seeds.iter().take(2).cloned().collect();
    options.crowd = CROWD;
    options.checker = Some(checker);
    options.interval_divisor = divisor();
    options.settings = vec![("checks_max", unhurried(CHECKS_MAX).to_string())];
    let mut world = World::prepare(options).await?;
    let address = world.lab().address();
    let names = world.path("lab/names");
    let mut lines = std::fs::read_to_string(&names)?;
    lines.push_str(&format!(
        "*.standin.test {} {}\n",
        address.ip(),
        address.port()
    ));
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

/// Invariant I3, with I4 and I9: floods, half lines, forged verdicts, whatever comes.
#[tokio::test(flavor = "multi_thread")]
async fn a_checker_that_was_taken_over_harms_its_own_host_alone() -> anyhow::Result<()> {
    match engine()? {
        Some(engine) => {
            let image = Image::build(&engine, "misbehaves")?;
            let world = peace(image.name.clone()).await?;
            siege(&world, rows()?).await
        }
        None => {
            let (contained, rows): (Vec<_>, Vec<_>) =
                rows()?.into_iter().partition(|row| row.contained);
            eprintln!(
                "over plain processes now: all attackers but the {} that a container alone stops",
                contained.len()
            );
            let program = Program::build()?;
            let checker = program.beside_the_checker()?;
            let world = peace(checker.display().to_string()).await?;
            siege(&world, rows).await
        }
    }
}

/// The parts whose usage is bounded.
const PARTS: [Role; 3] = [Role::Gateway, Role::Launcher, Role::Run];

async fn siege(world: &World, rows: Vec<Row>) -> anyhow::Result<()> {
    let usage = |world: &World| -> anyhow::Result<BTreeMap<Role, Usage>> {
        let each = PARTS.map(|role| Ok((role, world.usage(role)?)));
        each.into_iter().collect()
    };
    let (before, calm) = (usage(world)?, checks(world)?);
    let lived = alive_counts(world)?;
    let hosts: Vec<String> = rows.iter().map(|row| host(&row.label)).collect();
    let add: Vec<&str> = std::iter::once("add")
        .chain(hosts.iter().map(String::as_str))
        .collect();
    assert!(world.command(&add)?.status.success());
    let (began, mut last) = (tokio::time::Instant::now(), String::new());
    let mut waiting = rows.clone();
    let ended = world
        .until_each(
            Duration::from_millis(500),
            "every attacker has its verdict, and all others lived meanwhile",
            SIEGE_MAX,
            |world| {
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
                let now = alive_counts(world)?;
                let all_lived = now
                    .iter()
                    .all(|(name, count)| lived.get(name) < Some(count));
                Ok(waiting.is_empty() && all_lived)
            },
        )
        .await;
    let without: Vec<_> = waiting.iter().map(|row| row.label.as_str()).collect();
    ended.with_context(|| format!("without a verdict: {without:?}"))?;

    let after = usage(world)?;
    let checks = checks(world)? - calm;
    let answered: u32 = alive_counts(world)?.values().sum::<u32>() - lived.values().sum::<u32>();
    let (heading, part) = match Engine::from_environment() {
        Engine::Socket(_) => ("Misusing stdout, from containers", "2-wire"),
        Engine::Process => (
            "Misusing stdout, from plain processes",
            "3-wire-of-processes",
        ),
    };
    let mut table = Table::new(heading, &["tried", "expected", "happened", "verdicts"]);
    let differences = verdicts(world, &rows, &mut table)?;
    let mut cpu_seconds = 0.0;
    for (role, used) in &after {
        let used = used.since(before.get(role).copied().unwrap_or_default());
        cpu_seconds += used.cpu_seconds;
        table.note(&format!(
            "{role:?}: {:.1} s of CPU, at most {:.0} MB of memory.",
            used.cpu_seconds,
            used.memory_bytes_max as f64 / 1e6
        ));
    }
    let attackers = u32::try_from(rows.len())?;
    let an_attacker = cpu_seconds / f64::from(attackers);
    table.note(&format!(
        "{attackers} attackers, {checks} checks in all, {answered} ordinary ones that came out alive meanwhile; {an_attacker:.2} s of CPU an attacker. The last verdict, on {last}, came after {:.0} s.",
        began.elapsed().as_secs_f64()
    ));
    table.write("adversary", part)?;
    assert!(differences.is_empty(), "{}", differences.join("\n"));

    nobody_else_was_touched(world, &rows)?;
    assert!(
        an_attacker <= patient(CPU_AN_ATTACKER_MAX).as_secs_f64(),
        "{an_attacker:.2} s of CPU an attacker"
    );
    for (role, used) in &after {
        assert!(
            used.memory_bytes_max <= MEMORY_BYTES_MAX,
            "{role:?}: {used:?}"
        );
    }
    Ok(())
}

/// Checks that came to an end, with a verdict or a fault, as the daemon's log tells.
fn checks(world: &World) -> anyhow::Result<u32> {
    let log = std::fs::read_to_string(world.path("run.log"))?;
    let ended = |line: &&str| line.contains(" checked ") || line.contains("failed on our side");
    Ok(u32::try_from(log.lines().filter(ended).count())?)
}

fn alive_counts(world: &World) -> anyhow::Result<BTreeMap<String, u32>> {
    let mut counts = BTreeMap::new();
    for name in crowd() {
        let stored = world.host(&name)?.context("known")?;
        counts.insert(name, stored.record.alive_count);
    }
    Ok(counts)
}

/// Every verdict that an attacker's host ever got is the expected one.
fn verdicts(world: &World, rows: &[Row], table: &mut Table) -> anyhow::Result<Vec<String>> {
    let mut differences = Vec::new();
    let engine = match Engine::from_environment() {
        Engine::Socket(socket) => Some(EngineApi::connect(&socket)?),
        Engine::Process => None,
    };
    let title = engine.as_ref().map_or("", EngineApi::title);
    let mut record = Found::new(title, "Misusing stdout");
    for row in rows {
        let stored = world.host(&host(&row.label))?.context("known")?;
        let found: BTreeSet<(String, String)> = stored
            .history
            .iter()
            .map(|entry| {
                (
                    entry.verdict.clone(),
                    entry.reason.clone().unwrap_or_default(),
                )
            })
            .collect();
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
        table.row(&[&row.tried, &shown(&expected), &happened, &count]);
        record.add(&row.tried, &shown(&expected), &happened);
        if found != expected {
            differences.push(format!("{}: {}", row.label, shown(&found)));
        }
    }
    if let Some(engine) = engine {
        record.write(engine.word(), "2-wire")?;
    }
    Ok(differences)
}

/// The crowd lives as ever, and the only further rows are the candidates that were named validly.
fn nobody_else_was_touched(world: &World, rows: &[Row]) -> anyhow::Result<()> {
    for name in crowd() {
        let stored = world.host(&name)?.context("known")?;
        assert!(
            stored.history.iter().all(|entry| entry.verdict == "alive"),
            "{name}: {:?}",
            stored.history
        );
        assert_eq!(stored.record.state.name().as_str(), "alive", "{name}");
    }
    let mut names = BTreeSet::new();
    let longest = Calendar { divisor: divisor() }.longest();
    world.reader()?.each(|record, _| {
        names.insert(record.host.to_string());
        if let (Some(due), Some(checked)) = (record.due, record.last_checked) {
            assert!(
                due <= checked.plus(longest),
                "{} rests too long",
                record.host
            );
        }
        let software = record.software.as_deref().unwrap_or_default();
        assert!(
            software
                .bytes()
                .all(|byte| byte == b' ' || byte.is_ascii_graphic()),
            "{software:?}"
        );
    })?;
    let mut expected: BTreeSet<String> = crowd().into_iter().collect();
    expected.extend(rows.iter().map(|row| host(&row.label)));
    expected.extend(CANDIDATES.map(str::to_owned));
    assert_eq!(names, expected, "other rows than were named");
    for name in CANDIDATES {
        let stored = world.host(name)?.context("a candidate")?;
        assert!(
            stored.record.last_alive.is_none(),
            "{name}: somebody spoke for it"
        );
    }
    let asked = lab::request_log::asked(&world.path("lab/requests.ndjson"))?;
    assert!(
        asked.keys().all(|name| crowd().contains(name)),
        "another host was reached: {asked:?}"
    );
    let alive: BTreeSet<String> = rows
        .iter()
        .filter(|row| row.verdict.0 == "alive")
        .map(|row| host(&row.label))
        .chain(crowd())
        .collect();
    let listed = world.nodes()?;
    assert!(
        listed.iter().all(|name| alive.contains(name)),
        "listed without having lived: {listed:?}"
    );
    Ok(())
}
