//! The `bench` chore: all benchmarks, one after the other, in Markdown for `bench/RESULTS.md`.
//!
//! It prints the machine, the versions, and each benchmark's command and tables with the load
//! before and after it. A benchmark without its engine is left out. If one fails, the others still
//! run.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::bail;

use crate::engine::Engine;
use crate::step::{passes, say, target_folder};

/// What is built: the benchmarks, and the programs next to them that some of them start.
const BUILD: &str = "build --release --locked -p orchestrator -p lab -p bench";

/// Small sizes, which show little more than that everything runs.
const QUICK: [&str; 4] = [
    "bench-scale --rows 10000,100000 --rounds 3 --dumped 100000 --junk 500000",
    "bench-scale names --rows 100000 --known 200000 --new 20000",
    "bench-push --idle 2000 --messages 5000",
    "bench-path --checks 20 --runs 2 --in-flight 1,4,16",
];

const FULL: [&str; 4] = [
    "bench-scale",
    "bench-scale names",
    "bench-push",
    "bench-path --in-flight 1,2,4,8,16",
];

/// A census of a million hosts for half an hour at each distance.
const SOAK: &str = "bench-soak --world living";

const NEED_AN_ENGINE: [&str; 2] = ["bench-path", "bench-soak"];

/// Prints what the figures depend on. A missing program is no reason not to measure.
const MACHINE: &str = r#"
echo "- date: $(date -u '+%F %H:%M UTC')"
echo "- commit: $(git describe --always --dirty)"
echo "- processors: $(nproc) × $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
echo "- memory: $(sed -n 's/^MemTotal: *//p' /proc/meminfo)"
echo "- kernel: $(uname -r)"
echo "- compiler: $(rustc --version)"
echo "- engine: $("$ENGINE" version --format '{{.Server.Version}} (API {{.Server.APIVersion}})' || echo none)"
echo "- sqlite3 to compare with: $(sqlite3 --version || echo none)"
"#;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Extent {
    Quick,
    Full,
    Soak,
}

impl Extent {
    fn lines(self) -> Vec<&'static str> {
        match self {
            Self::Quick => QUICK.to_vec(),
            Self::Full => FULL.to_vec(),
            Self::Soak => [&FULL[..], &[SOAK]].concat(),
        }
    }
}

/// Runs the benchmarks.
///
/// # Errors
/// They can't be built, or at least one of them failed; the others have run.
pub(crate) fn run(root: &Path, extent: Extent) -> anyhow::Result<()> {
    let mut build = Command::new(env!("CARGO"));
    passes(build.args(BUILD.split(' ')).current_dir(root))?;
    let engine = Engine::find();
    let mut machine = Command::new("sh");
    if let Ok(engine) = &engine {
        machine.env("ENGINE", engine.command().get_program());
    }
    passes(machine.args(["-c", MACHINE]).current_dir(root))?;
    let mut failed = Vec::new();
    for line in extent.lines() {
        let (program, arguments) = line.split_once(' ').unwrap_or((line, ""));
        if let Err(error) = &engine
            && NEED_AN_ENGINE.contains(&program)
        {
            print(&format!("\n`{line}` is left out: {error:#}"))?;
            continue;
        }
        say(&format!("==> {line}"))?;
        print(&format!("\n## `{line}`\n\nLoad before it: {}\n", load()?))?;
        let began = Instant::now();
        let mut command = Command::new(target_folder(root).join("release").join(program));
        command.args(arguments.split_whitespace()).current_dir(root);
        if let Err(error) = passes(&mut command) {
            print(&format!("\n**It failed**: {error:#}"))?;
            failed.push(line);
        }
        let seconds = began.elapsed().as_secs();
        print(&format!(
            "\nIt took {seconds} s. Load after it: {}",
            load()?
        ))?;
    }
    if !failed.is_empty() {
        bail!("{} failed", failed.join(", "));
    }
    Ok(())
}

/// Processes that ran or were ready to run, averaged over one, five and fifteen minutes.
fn load() -> anyhow::Result<String> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').take(3).collect::<Vec<_>>().join(", "))
}

/// Prints a line of the results, before what the next benchmark prints.
fn print(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A benchmark that was renamed or forgotten would be missing from a full run.
    #[test]
    fn each_program_of_the_benchmarks_is_there() {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).unwrap();
        let names = manifest.split("[[bin]]\nname = \"").skip(1);
        let mut programs: Vec<_> = names.filter_map(|rest| rest.split('"').next()).collect();
        programs.sort_unstable();
        let lines = Extent::Soak.lines();
        let mut there: Vec<_> = lines
            .iter()
            .filter_map(|line| line.split(' ').next())
            .collect();
        there.sort_unstable();
        // Some programs are two benchmarks.
        there.dedup();
        assert_eq!(there, programs);
    }
}
