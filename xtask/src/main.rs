//! The project's own chores: `cargo xtask ci […]`, `cargo xtask fuzz`, `cargo xtask seccomp`,
//! `cargo xtask bench [--quick|--soak]`.
//!
//! The exit code is 0 if the chore succeeded. Unknown names and arguments are rejected.

mod bench;
mod browser;
mod ci;
mod deny;
mod engine;
mod fuzz;
mod seccomp;
mod step;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

const USAGE: &str = "\
usage: cargo xtask CHORE

  ci [--full] [--no-engine] [--step NAME…] [--list]
                what has to pass before a change is taken; needs a container engine and a compose tool. --full: that and what takes hours;
                --no-engine: without the steps that need an engine; --step: these steps alone; --list: all steps
  fuzz          runs all fuzz targets from their seeds on, some seconds each; needs a nightly compiler
  seccomp       traces the checker over the lab and compares with its seccomp profile; needs strace
  bench [--quick | --soak]
                all benchmarks, one after the other, as bench/RESULTS.md has them: hours; --quick: minutes; --soak: with an hour of a census of
                a million hosts after them
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If stderr is closed, there is nowhere left to report to.
            let _written = writeln!(std::io::stderr(), "xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let root = root()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["ci", rest @ ..] => ci::run(&root, &ci::Plan::parse(rest)?),
        ["seccomp"] => seccomp::run(&root),
        ["fuzz"] => fuzz::run(&root).map(|_| ()),
        ["bench"] => bench::run(&root, bench::Extent::Full),
        ["bench", "--quick"] => bench::run(&root, bench::Extent::Quick),
        ["bench", "--soak"] => bench::run(&root, bench::Extent::Soak),
        ["help" | "--help" | "-h"] => Ok(std::io::stdout().write_all(USAGE.as_bytes())?),
        _ => bail!("no command\n{USAGE}"),
    }
}

fn root() -> anyhow::Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_owned)
        .context("invariant: xtask/ lies below the repository's root")
}
