//! `cargo xtask fuzz`: builds every target below `tests/fuzz/targets` and runs each for a bounded
//! number of executions, its seeds first. cargo-fuzz is for longer runs.
//!
//! The random seed comes from the commit: each commit explores something else, and a failure
//! repeats.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Context, bail, ensure};

use crate::step::{Outcome, output, passes, say, target_folder};

const FOLDER: &str = "tests/fuzz";

/// Executions of a target: some seconds each.
const RUNS: u64 = 10_000;

/// Targets that do much in one execution, and the divisor of their executions.
const SLOW: [(&str, u64); 3] = [("lists", 10), ("peers", 10), ("suffix_list", 20)];

/// libFuzzer's options. Random search does not find longer inputs, it only gets slower. The timeout
/// of an input is a thousand times what the slowest takes, for busy machines. The instrumentation
/// alone takes some 100 MB. No parser needs many times its input.
const OPTIONS: [&str; 5] = [
    "-max_len=4096",
    "-timeout=20",
    "-rss_limit_mb=1024",
    "-malloc_limit_mb=64",
    "-print_final_stats=1",
];

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

/// Builds and runs all targets.
pub(crate) fn run(root: &Path) -> anyhow::Result<Outcome> {
    let (targets, programs) = (targets(root)?, build(root)?);
    let seed = seed_of_commit(root);
    say(&format!("fuzz: {RUNS} executions from seed {seed} on"))?;
    let at_once = thread::available_parallelism().map_or(1, usize::from);
    let work = |first: usize| {
        let own = targets.iter().skip(first).step_by(at_once);
        let failed = own.filter_map(|(subject, target)| {
            let ran = execute(root, &programs, subject, target, seed);
            ran.err().map(|error| format!("{target}: {error:#}"))
        });
        failed.collect::<Vec<_>>()
    };
    let failed: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once)
            .map(|first| scope.spawn(move || work(first)))
            .collect();
        let ended = workers.into_iter().map(thread::ScopedJoinHandle::join);
        ended
            .flat_map(|failed| failed.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    if failed.is_empty() {
        return Ok(Outcome::Passed);
    }
    bail!(
        "{}\nthe inputs are below {FOLDER}/artifacts; after the fix, put them below {FOLDER}/seeds and write tests next to the code",
        failed.join("\n")
    )
}

fn targets(root: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for subject in std::fs::read_dir(root.join(FOLDER).join("targets"))? {
        let subject = subject?;
        for program in std::fs::read_dir(subject.path())? {
            let path = program?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let subject = subject.file_name().to_string_lossy().into_owned();
            found.push((subject, name.into_owned()));
        }
    }
    found.sort();
    Ok(found)
}

fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let nightly = std::env::var_os("FEDICENSUS_NIGHTLY").unwrap_or_else(|| "nightly".into());
    let nightly = nightly.to_string_lossy();
    let version = output(Command::new("rustup").args(["run", &*nightly, "rustc", "-vV"]))
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
        .args(["run", &*nightly, "cargo", "build", "--release", "--locked"])
        .args(["--manifest-path", &format!("{FOLDER}/Cargo.toml")])
        // Given explicitly, even though it is this machine: build scripts and macros must not be
        // instrumented.
        .args(["--target", host])
        .env("RUSTFLAGS", RUSTFLAGS)
        .env("CARGO_TARGET_DIR", &target_folder)
        .env_remove("CARGO")
        .current_dir(root);
    passes(&mut command)?;
    Ok(target_folder.join(host).join("release"))
}

fn execute(
    root: &Path,
    programs: &Path,
    subject: &str,
    target: &str,
    seed: u32,
) -> anyhow::Result<()> {
    let slow = SLOW.iter().find(|(slow, _)| *slow == target);
    let runs = RUNS / slow.map_or(1, |(_, divisor)| *divisor);
    let seeds = root.join(FOLDER).join("seeds").join(subject).join(target);
    let artifacts = root.join(FOLDER).join("artifacts").join(target);
    // libFuzzer writes inputs worth keeping into the first folder: empty at each start, so that
    // every run is the same.
    let finds = target_folder(root).join("fuzz/finds").join(target);
    if finds.exists() {
        std::fs::remove_dir_all(&finds)?;
    }
    std::fs::create_dir_all(&finds)?;
    std::fs::create_dir_all(&artifacts)?;
    let begin = Instant::now();
    let run = Command::new(programs.join(target))
        .args([&finds, &seeds])
        .args(OPTIONS)
        .args([format!("-runs={runs}"), format!("-seed={seed}")])
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .env("ASAN_OPTIONS", ASAN_OPTIONS)
        .current_dir(root)
        .output()?;
    let said = String::from_utf8_lossy(&run.stderr);
    let lines: Vec<_> = said.lines().collect();
    let end = lines.get(lines.len().saturating_sub(LINES_SHOWN)..);
    let end = end.unwrap_or_default().join("\n");
    ensure!(run.status.success(), "{}\n{end}", run.status);
    // A run that ends too early has shown nothing.
    let executed = lines.iter().find_map(|line| {
        let number = line.strip_prefix("stat::number_of_executed_units:")?;
        number.trim().parse::<u64>().ok()
    });
    ensure!(executed >= Some(runs), "not {runs} executions\n{end}");
    let seconds = begin.elapsed().as_secs_f64();
    say(&format!("{target}: {runs} executions, {seconds:.1} s"))
}

/// The start of the checked-out commit's name as a number above 0, which libFuzzer reads as "choose
/// one"; 1 if there is no commit, as in an archive.
pub(crate) fn seed_of_commit(root: &Path) -> u32 {
    let mut git = Command::new("git");
    let commit = output(git.args(["rev-parse", "HEAD"]).current_dir(root)).unwrap_or_default();
    let digits = commit.get(..8).unwrap_or_default();
    u32::from_str_radix(digits, 16).map_or(1, |seed| seed.max(1))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn read(path: &str) -> String {
        std::fs::read_to_string(crate::root().unwrap().join(path)).unwrap()
    }

    #[test]
    fn every_target_is_built_and_checks_its_own_parser() {
        let manifest = read("tests/fuzz/Cargo.toml");
        let targets = targets(&crate::root().unwrap()).unwrap();
        for (subject, target) in &targets {
            let program = format!("targets/{subject}/{target}.rs");
            let section = format!("[[bin]]\nname = \"{target}\"\npath = \"{program}\"\n");
            assert!(manifest.contains(&section), "{section}");
            let call = format!("fuzz_targets::{subject}::{target}::check(data)");
            assert!(read(&format!("{FOLDER}/{program}")).contains(&call));
        }
        for (slow, _) in SLOW {
            assert!(targets.iter().any(|(_, target)| target == slow), "{slow}");
        }
    }

    fn locked_versions(lock: &str) -> BTreeMap<String, BTreeSet<String>> {
        let mut found = BTreeMap::<String, BTreeSet<String>>::new();
        let text = read(lock);
        let packages = text.split("[[package]]\nname = ").skip(1);
        for mut lines in packages.map(str::lines) {
            let name = lines.next().unwrap().to_owned();
            let version = lines.next().unwrap().to_owned();
            found.entry(name).or_default().insert(version);
        }
        found
    }

    #[test]
    fn what_is_fuzzed_has_the_versions_that_are_shipped() {
        let shipped = locked_versions("Cargo.lock");
        let fuzzed = locked_versions("tests/fuzz/Cargo.lock");
        assert!(fuzzed.contains_key("\"libfuzzer-sys\""));
        for (name, versions) in fuzzed {
            assert!(
                shipped
                    .get(&name)
                    .is_none_or(|shipped| versions.is_subset(shipped)),
                "{name}: {versions:?}: cp Cargo.lock tests/fuzz/Cargo.lock && cargo metadata --manifest-path tests/fuzz/Cargo.toml >/dev/null"
            );
        }
    }
}
