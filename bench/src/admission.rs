//! What admission costs under a flood (`bench/README.md`).
//!
//! In: nothing. Out: a table: decisions a second, memory with many registered domains seen, the longest decision, the turn of a window, a restart.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use admission::{Counters, DomainName, HashKey, KeyHash, Policy, Rules, Suffixes, TestDomain};
use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

/// Lines of each kind in the rules, beside one `public` line.
const LINES: u32 = 1000;

/// Names that ask again and again while decisions are counted.
const NAMES: usize = 200_000;

/// A day, in seconds.
const DAY: u64 = 86_400;

/// Measures how fast admission decides, and how much memory its counters take.
#[derive(Debug, Parser)]
#[command(name = "bench-admission", version)]
struct Arguments {
    /// Decisions whose rate is measured
    #[arg(long, default_value_t = 5_000_000)]
    decisions: u32,
    /// Registered domains, each of which is admitted once
    #[arg(long, default_value_t = 10_000_000)]
    domains: u32,
}

/// Who asks: the key and the domain that were proved.
struct Asker {
    key: Option<KeyHash>,
    text: String,
    domain: DomainName,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let policy = policy()?;
    let mut out = std::io::stdout();
    writeln!(out, "| what | measured |\n|---|---|")?;
    let mut row = |what: &str, measured: String| writeln!(out, "| {what} | {measured} |");

    let askers = askers()?;
    let rate = rate(arguments.decisions, |number, counters| {
        let asker = asker(&askers, number)?;
        policy.decide(counters, asker.key.as_ref(), Some(&asker.domain), 0);
        Ok(())
    })?;
    row("decisions a second, names parsed before", rate)?;
    let rate = self::rate(arguments.decisions, |number, counters| {
        let asker = asker(&askers, number)?;
        let domain = DomainName::parse(&asker.text)?;
        policy.decide(counters, asker.key.as_ref(), Some(&domain), 0);
        Ok(())
    })?;
    row("decisions a second, names parsed for each", rate)?;
    drop(askers);

    let before = resident_megabytes("VmRSS")?;
    let mut counters = counters();
    let start = Instant::now();
    let mut longest = Duration::ZERO;
    for number in 0..arguments.domains {
        let domain = DomainName::parse(&format!("flood-{number}.com"))?;
        let asked = processor_time()?;
        let decision = policy.decide(&mut counters, None, Some(&domain), 0);
        longest = longest.max(processor_time()?.saturating_sub(asked));
        ensure!(decision.is_admitted(), "{domain} was refused");
    }
    let seen = arguments.domains;
    let took = start.elapsed();
    row(
        &format!("{seen} registered domains seen"),
        format!("{:.1} s", took.as_secs_f64()),
    )?;
    let memory = resident_megabytes("VmRSS")? - before;
    row("memory that they take", format!("{memory:.0} MB"))?;
    row(
        "longest decision, processor time",
        format!("{:.2} ms", milliseconds(longest)),
    )?;

    let start = Instant::now();
    let mut again = Counters::resume(HashKey([5; 16]), counters.window_start_s());
    for kept in counters.rows() {
        again.put(kept)?;
    }
    let count = again.rows().count();
    row(
        "a restart: all rows given and taken back",
        format!("{count} in {:.1} s", start.elapsed().as_secs_f64()),
    )?;
    drop(again);

    let domain = DomainName::parse("flood-0.com")?;
    let start = Instant::now();
    policy.decide(&mut counters, None, Some(&domain), DAY);
    row(
        "the turn of the window",
        format!("{:.1} ms", milliseconds(start.elapsed())),
    )?;
    row(
        "most memory at any time, two sets of counters at the restart",
        format!("{:.0} MB", resident_megabytes("VmHWM")?),
    )?;
    Ok(())
}

fn counters() -> Counters {
    Counters::new(HashKey([5; 16]))
}

fn policy() -> Result<Policy> {
    let mut text = "public default 20\n".to_owned();
    for number in 0..LINES {
        text.push_str(&format!("key {number:064x} 100000000\n"));
        text.push_str(&format!("domain line-{number}.org 100000000\n"));
    }
    Ok(Policy {
        rules: Rules::parse(text.as_bytes(), Path::new("bench"))?,
        suffixes: Suffixes::compiled(),
        test_domain: TestDomain::Refuse,
    })
}

/// A tenth with a key that has a line, a tenth below a domain that has one, a tenth that are nobody's, the rest by their registered domain.
fn askers() -> Result<Vec<Asker>> {
    let mut chance = StdRng::seed_from_u64(1);
    (0..NAMES)
        .map(|_| {
            let number = chance.random_range(0..LINES);
            let name = chance.random_range(0..100_000_u32);
            let mut key = None;
            let text = match chance.random_range(0..10_u8) {
                0 => {
                    key = KeyHash::parse(&format!("{number:064x}"));
                    "somebody.social".to_owned()
                }
                1 => format!("a{name}.b.line-{number}.org"),
                2 => format!("a{name}.nobody"),
                3..6 => format!("social.example-{name}.co.uk"),
                _ => format!("mastodon-{name}.social"),
            };
            let domain = DomainName::parse(&text)?;
            Ok(Asker { key, text, domain })
        })
        .collect()
}

fn asker(askers: &[Asker], number: u32) -> Result<&Asker> {
    let place = usize::try_from(number)? % askers.len();
    askers.get(place).context("there are askers")
}

/// How many times a second `decide` was done.
fn rate(times: u32, mut decide: impl FnMut(u32, &mut Counters) -> Result<()>) -> Result<String> {
    let mut counters = counters();
    let start = Instant::now();
    for number in 0..times {
        decide(number, &mut counters)?;
    }
    let rate = f64::from(times) / start.elapsed().as_secs_f64();
    Ok(format!("{rate:.0}"))
}

/// What this thread has had of a processor so far: on a machine that is busy, time goes by while it has none.
fn processor_time() -> Result<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Ok(Duration::new(
        time.tv_sec.try_into()?,
        time.tv_nsec.try_into()?,
    ))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A number of this process's memory (`man 5 proc_pid_status`), in millions of bytes.
fn resident_megabytes(field: &str) -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kibibytes = status
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
        .and_then(|rest| rest.split_whitespace().next())
        .with_context(|| format!("/proc/self/status has no {field}"))?;
    Ok(kibibytes.parse::<f64>()? * 1.024 / 1000.0)
}
