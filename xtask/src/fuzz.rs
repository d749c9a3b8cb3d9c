//! The `fuzz` chore: every target below `tests/fuzz/targets` is built once and run for a bounded number
//! of executions, its seeds first.
//!
//! Prints one line per target and writes `target/tables/fuzz.md`. Errors are unknown targets, a
//! missing nightly compiler, missing seeds, and a target that executes less than it should. The
//! random seed comes from the commit, so that each commit explores something else. The seed is
//! printed, and reproduces a failure.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context, bail};

use crate::step::{Outcome, output, passes, say, target_folder};

/// Default executions of a target: some seconds each, so that every change runs all targets.
pub(crate) const RUNS: u64 = 10_000;

/// Targets that do much in one execution, and the divisor of their executions.
const SLOW: [(&str, u64); 3] = [("lists", 10), ("peers", 10), ("suffix_list", 20)];

/// Longest input in bytes. Random search does not find longer ones, it only gets slower; limits
/// beyond this length have separate tests.
const INPUT_BYTES_MAX: u32 = 4096;

/// Time limit of one input in seconds: a thousand times what the slowest takes, for busy machines.
const INPUT_SECONDS_MAX: u32 = 20;

/// Memory limit of a target in megabytes: the instrumentation alone takes some 100.
const MEGABYTES_MAX: u32 = 1024;

/// Limit of one allocation in megabytes: no parser needs many times its input.
const ALLOCATION_MEGABYTES_MAX: u32 = 64;

/// Most lines of a failed target's output that are shown.
const LINES_SHOWN: usize = 60;

/// The same flags as `cargo fuzz`, so that both find the same: coverage for libFuzzer, and a check
/// of memory accesses.
const RUSTFLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
--cfg fuzzing -Zsanitizer=address";

/// A small quarantine of freed memory, which catches its use: it takes most of a target's memory.
/// Leak detection uses tracing, which containers forbid, and leaks do no harm in a process that
/// lives for one check.
const ASAN_OPTIONS: &str = "quarantine_size_mb=16:detect_leaks=0";

/// What to run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Executions of each target; slow ones get fewer.
    pub(crate) runs: u64,
    /// The random seed; `None` for the commit's own.
    pub(crate) seed: Option<u32>,
    /// The targets; empty for all.
    pub(crate) targets: Vec<String>,
}

/// Length and seed of a run of all targets.
#[derive(Debug, Clone, Copy)]
struct Chance {
    runs: u64,
    seed: u32,
}

struct Ran {
    target: String,
    seeds: usize,
    executed: u64,
    megabytes: u64,
    seconds: f64,
    failure: Option<String>,
}

impl Plan {
    /// All targets, as CI runs them.
    pub(crate) fn whole() -> Self {
        Self {
            runs: RUNS,
            seed: None,
            targets: Vec::new(),
        }
    }

    /// Parses `[--runs N] [--seed N] [TARGET…]`.
    ///
    /// # Errors
    /// The arguments are different.
    pub(crate) fn parse(arguments: &[&str]) -> anyhow::Result<Self> {
        let mut plan = Self::whole();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match *argument {
                "--runs" => {
                    let runs = rest.next().context("--runs wants a number")?;
                    plan.runs = runs.parse().context("--runs wants a number")?;
                }
                "--seed" => {
                    let seed = rest.next().and_then(|seed| seed.parse().ok());
                    // libFuzzer reads 0 as "choose one".
                    let seed = seed.filter(|seed| *seed > 0);
                    plan.seed = Some(seed.context("--seed wants a number above 0")?);
                }
                flag if flag.starts_with('-') => bail!("cargo xtask fuzz knows no {flag}"),
                target => plan.targets.push(target.to_owned()),
            }
        }
        Ok(plan)
    }
}

/// Builds and runs the plan's targets.
///
/// # Errors
/// A target fails or can't be built, or there is no nightly compiler.
pub(crate) fn run(root: &Path, plan: &Plan) -> anyhow::Result<Outcome> {
    let known = targets(root)?;
    let mut wanted = Vec::new();
    for target in &plan.targets {
        let folder = known.get(target).with_context(|| {
            let names: Vec<_> = known.keys().map(String::as_str).collect();
            format!(
                "there is no fuzz target {target}; there are {}",
                names.join(", ")
            )
        })?;
        wanted.push((target.clone(), folder.clone()));
    }
    if wanted.is_empty() {
        wanted.extend(known);
    }
    let chance = Chance {
        runs: plan.runs,
        seed: plan.seed.unwrap_or_else(|| seed_of_commit(root)),
    };
    let programs = build(root, &wanted)?;
    say(&format!(
        "fuzz: {} executions from seed {} on",
        chance.runs, chance.seed
    ))?;
    let at_once = thread::available_parallelism().map_or(1, usize::from);
    let at_once = at_once.min(wanted.len());
    let waiting = Mutex::new(wanted);
    let ran = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some((target, folder)) = locked(&waiting).pop() {
                    let one = execute(root, &programs, &target, &folder, chance);
                    locked(&ran).push(one);
                }
            });
        }
    });
    let ran: Vec<Ran> = locked(&ran).drain(..).collect::<anyhow::Result<_>>()?;
    report(root, ran, chance)
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Every target's name, and the folder of its subject.
fn targets(root: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let folder = root.join("tests/fuzz/targets");
    let mut found = BTreeMap::new();
    for subject in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let subject = subject?;
        for program in std::fs::read_dir(subject.path())? {
            let path = program?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let subject = subject.file_name().to_string_lossy().into_owned();
            found.insert(name.into_owned(), subject);
        }
    }
    Ok(found)
}

/// Builds the targets and returns the folder of their programs.
fn build(root: &Path, wanted: &[(String, String)]) -> anyhow::Result<PathBuf> {
    let nightly = std::env::var_os("FEDICENSUS_NIGHTLY").map_or_else(
        || "nightly".to_owned(),
        |named| named.to_string_lossy().into_owned(),
    );
    let version = output(Command::new("rustup").args(["run", &nightly, "rustc", "-vV"]))
        .with_context(|| {
            format!(
                "fuzzing needs a nightly compiler: `rustup toolchain install {nightly} --profile minimal`; \
                 FEDICENSUS_NIGHTLY names another one"
            )
        })?;
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .context("rustc does not say for which machine it builds")?;
    let target_folder = target_folder(root).join("fuzz");
    let mut command = Command::new("rustup");
    command
        .args(["run", &nightly, "cargo", "build", "--release", "--locked"])
        .args(["--manifest-path", "tests/fuzz/Cargo.toml"])
        // Given explicitly, even though it is this machine: build scripts and macros must not be
        // instrumented.
        .args(["--target", host])
        .env("RUSTFLAGS", RUSTFLAGS)
        .env("CARGO_TARGET_DIR", &target_folder)
        .env_remove("CARGO")
        .current_dir(root);
    for (target, _) in wanted {
        command.args(["--bin", target]);
    }
    passes(&mut command)?;
    Ok(target_folder.join(host).join("release"))
}

fn execute(
    root: &Path,
    programs: &Path,
    target: &str,
    folder: &str,
    chance: Chance,
) -> anyhow::Result<Ran> {
    let seeds = root.join("tests/fuzz/seeds").join(folder).join(target);
    let count = std::fs::read_dir(&seeds).map_or(0, Iterator::count);
    if count == 0 {
        bail!("{}: no seeds", seeds.display());
    }
    let part = SLOW
        .iter()
        .find(|(slow, _)| *slow == target)
        .map_or(1, |(_, part)| *part);
    let runs = chance.runs.div_ceil(part);
    let artifacts = root.join("tests/fuzz/artifacts").join(target);
    std::fs::create_dir_all(&artifacts)?;
    // libFuzzer writes inputs worth keeping into the first folder: empty at each start, so that
    // every run is the same.
    let finds = target_folder(root).join("fuzz/finds").join(target);
    if finds.exists() {
        std::fs::remove_dir_all(&finds)?;
    }
    std::fs::create_dir_all(&finds)?;
    let begin = Instant::now();
    let run = Command::new(programs.join(target))
        .args([&finds, &seeds])
        .args([
            format!("-runs={runs}"),
            format!("-seed={}", chance.seed),
            format!("-max_len={INPUT_BYTES_MAX}"),
            format!("-timeout={INPUT_SECONDS_MAX}"),
            format!("-rss_limit_mb={MEGABYTES_MAX}"),
            format!("-malloc_limit_mb={ALLOCATION_MEGABYTES_MAX}"),
            format!("-artifact_prefix={}/", artifacts.display()),
            "-print_final_stats=1".to_owned(),
        ])
        .env("ASAN_OPTIONS", ASAN_OPTIONS)
        .current_dir(root)
        .output()
        .with_context(|| format!("the fuzz target {target} can't be started"))?;
    let said = String::from_utf8_lossy(&run.stderr);
    let executed = stat(&said, "number_of_executed_units");
    let failure = failure(run.status.success(), executed, runs, &said);
    Ok(Ran {
        target: target.to_owned(),
        seeds: count,
        executed,
        megabytes: stat(&said, "peak_rss_mb"),
        seconds: begin.elapsed().as_secs_f64(),
        failure,
    })
}

/// Why a target failed, if it did: a run that ends successfully but too early has shown nothing.
fn failure(is_success: bool, executed: u64, runs: u64, said: &str) -> Option<String> {
    if is_success && executed >= runs {
        return None;
    }
    let lines: Vec<_> = said.lines().collect();
    let shown = lines.len().saturating_sub(LINES_SHOWN);
    let end = lines.get(shown..).unwrap_or_default().join("\n");
    Some(if is_success {
        format!("{end}\nof {runs} executions it did {executed}")
    } else {
        end
    })
}

/// The random seed of the commit that is checked out; 1 if there is none, as in an archive.
pub(crate) fn seed_of_commit(root: &Path) -> u32 {
    let commit = output(
        Command::new("git")
            .args(["rev-parse", "HEAD"])
            .current_dir(root),
    );
    commit.map_or(1, |commit| seed_of(commit.trim()))
}

/// The start of a commit's name as a number above 0, which libFuzzer reads as "choose one".
fn seed_of(commit: &str) -> u32 {
    let digits = commit.get(..8).unwrap_or_default();
    u32::from_str_radix(digits, 16).map_or(1, |seed| seed.max(1))
}

/// A number of libFuzzer's final statistics.
fn stat(said: &str, name: &str) -> u64 {
    let number = said.lines().find_map(|line| {
        let rest = line.strip_prefix("stat::")?.strip_prefix(name)?;
        rest.strip_prefix(':')?.trim().parse().ok()
    });
    number.unwrap_or(0)
}

fn report(root: &Path, mut ran: Vec<Ran>, chance: Chance) -> anyhow::Result<Outcome> {
    ran.sort_by(|a, b| a.target.cmp(&b.target));
    let mut table = "| target | seeds | executions | memory, MB | seconds | outcome |\n|---|---|---|---|---|---|\n".to_owned();
    let mut failed = Vec::new();
    for one in &ran {
        let word = if one.failure.is_some() {
            "FAILED"
        } else {
            "held"
        };
        table.push_str(&format!(
            "| {} | {} | {} | {} | {:.1} | {word} |\n",
            one.target, one.seeds, one.executed, one.megabytes, one.seconds
        ));
        if let Some(said) = &one.failure {
            say(&format!("fuzz target {}:\n{said}", one.target))?;
            failed.push(one.target.as_str());
        }
    }
    say(table.trim_end())?;
    let folder = target_folder(root).join("tables");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("fuzz.md"), &table)?;
    if failed.is_empty() {
        return Ok(Outcome::Passed);
    }
    bail!(
        "{} failed; again: cargo xtask fuzz --runs {} --seed {} {}\nthe input lies below tests/fuzz/artifacts; once it is mended, put it below tests/fuzz/seeds and write a test next to the code",
        failed.join(", "),
        chance.runs,
        chance.seed,
        failed.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn root() -> PathBuf {
        crate::root().unwrap()
    }

    #[test]
    fn arguments_are_runs_and_targets() {
        let plan = Plan::parse(&["--runs", "7", "peers", "--seed", "9", "host"]).unwrap();
        assert_eq!((plan.runs, plan.seed, plan.targets.len()), (7, Some(9), 2));
        assert_eq!(Plan::parse(&[]).unwrap(), Plan::whole());
        for wrong in [
            &["--runs"][..],
            &["--runs", "many"],
            &["--seed"],
            &["--seed", "0"],
            &["--fast"],
        ] {
            assert!(Plan::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_run_that_executes_less_than_it_should_does_not_hold() {
        assert_eq!(failure(true, 10, 10, ""), None);
        assert!(failure(true, 9, 10, "").unwrap().contains("it did 9"));
        assert!(failure(true, 0, 10, "").is_some());
        assert_eq!(failure(false, 10, 10, "why"), Some("why".to_owned()));
    }

    #[test]
    fn every_commit_explores_from_a_seed_of_its_own() {
        assert_eq!(seed_of("c2b9087f00"), 0xc2b9_087f);
        assert_ne!(seed_of("c2b9087e00"), seed_of("c2b9087f00"));
        for odd in ["", "HEAD", "0000000000"] {
            assert_eq!(seed_of(odd), 1, "{odd}");
        }
    }

    #[test]
    fn every_target_is_built_and_has_seeds() {
        let manifest = std::fs::read_to_string(root().join("tests/fuzz/Cargo.toml")).unwrap();
        let targets = targets(&root()).unwrap();
        assert!(targets.len() > 10, "the search found only {targets:?}");
        for (target, folder) in &targets {
            let program = format!("targets/{folder}/{target}.rs");
            let section = format!("[[bin]]\nname = \"{target}\"\npath = \"{program}\"\n");
            assert!(manifest.contains(&section), "tests/fuzz/Cargo.toml: {section}");
            let text = std::fs::read_to_string(root().join("tests/fuzz").join(&program)).unwrap();
            let call = format!("fuzz_targets::{folder}::{target}::check(data)");
            assert!(text.contains(&call), "{program} does not call {call}");
            let seeds = root().join("tests/fuzz/seeds").join(folder).join(target);
            let count = std::fs::read_dir(&seeds).map_or(0, Iterator::count);
            assert!((1..=30).contains(&count), "{target} has {count} seeds");
        }
        for (slow, _) in SLOW {
            assert!(targets.contains_key(slow), "{slow}");
        }
    }

    fn locked_versions(lock: &str) -> BTreeMap<String, BTreeSet<String>> {
        let text = std::fs::read_to_string(root().join(lock)).unwrap();
        let mut found = BTreeMap::<String, BTreeSet<String>>::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(name) = line.strip_prefix("name = ") {
                let version = lines.next().unwrap_or_default();
                found
                    .entry(name.to_owned())
                    .or_default()
                    .insert(version.to_owned());
            }
        }
        found
    }

    #[test]
    fn what_is_fuzzed_has_the_versions_that_are_shipped() {
        let shipped = locked_versions("Cargo.lock");
        let fuzzed = locked_versions("tests/fuzz/Cargo.lock");
        assert!(fuzzed.contains_key("\"libfuzzer-sys\""));
        for (name, versions) in fuzzed {
            if let Some(shipped) = shipped.get(&name) {
                assert!(
                    versions.is_subset(shipped),
                    "{name}: {versions:?} instead of {shipped:?}: cp Cargo.lock tests/fuzz/Cargo.lock && cargo metadata --manifest-path tests/fuzz/Cargo.toml >/dev/null"
                );
            }
        }
    }

    #[test]
    fn statistics_are_read() {
        let said =
            "Done\nstat::number_of_executed_units: 20000\nstat::peak_rss_mb:              64\n";
        assert_eq!(stat(said, "number_of_executed_units"), 20_000);
        assert_eq!(stat(said, "peak_rss_mb"), 64);
        assert_eq!(stat(said, "average_exec_per_sec"), 0);
    }
}
