//! The project's own chores: `cargo xtask ci [--fast]`, `cargo xtask fuzz […]`, `cargo xtask rootless […]`, `cargo xtask seccomp`,
//! `cargo xtask confinement […]`, `cargo xtask bench […]`.
//!
//! In: a chore's name and its arguments. Out: the chore's own output, and exit code 0 when all went well. Refused: unknown names and arguments.

mod browser;
mod ci;
mod confinement;
mod deny;
mod engine;
mod fuzz;
mod rootless;
mod seccomp;
mod step;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

const USAGE: &str = "\
usage: cargo xtask CHORE

  ci            everything that CI runs; needs a container engine and a compose tool
  ci --fast     the part that needs neither: fmt, clippy, doc, test, scripts, deny, fuzz
  fuzz [--runs N] [--seed N] [TARGET…]
                runs the fuzz targets from their seeds on; needs a nightly compiler (fuzz/)
  rootless [--whole] [STEP…]
                the census on rootless Podman under systemd, in a virtual machine (tests/rootless); --whole: with all personas
  seccomp       traces the checker over the lab and compares with its seccomp profile; needs strace
  confinement [--update]
                compares what the adversaries' scenarios found on each engine with docs/confinement.md, or takes it over
  bench [ARG…]  checks a second and CPU seconds a check, against a bare engine client (bench/README.md)
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to report to when stderr is gone.
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
        ["ci"] => ci::run(&root, ci::Extent::Whole),
        ["confinement"] => {
            confinement::run(&root, confinement::Use::Compare { machine: true }).map(|_| ())
        }
        ["confinement", "--update"] => {
            confinement::run(&root, confinement::Use::Update).map(|_| ())
        }
        ["seccomp"] => seccomp::run(&root),
        ["ci", "--fast"] => ci::run(&root, ci::Extent::Fast),
        ["fuzz", rest @ ..] => fuzz::run(&root, &fuzz::Plan::parse(rest)?).map(|_| ()),
        ["rootless", rest @ ..] => rootless::run(&root, &rootless::Plan::parse(rest)?),
        ["bench", rest @ ..] => {
            // The benchmark starts the census and the lab as processes from beside itself.
            let mut build = Command::new(env!("CARGO"));
            build.args("build --release --locked -p orchestrator -p lab -p bench".split(' '));
            step::passes(build.current_dir(&root))?;
            let mut bench = Command::new(env!("CARGO"));
            bench.args("run --release --locked -p bench --bin bench-path --".split(' '));
            step::passes(bench.args(rest).current_dir(&root))
        }
        ["help" | "--help" | "-h"] => Ok(std::io::stdout().write_all(USAGE.as_bytes())?),
        _ => bail!("what shall be done?\n{USAGE}"),
    }
}

/// The repository's root: this package lies directly below it.
fn root() -> anyhow::Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_owned)
        .context("invariant: xtask/ lies below the repository's root")
}
