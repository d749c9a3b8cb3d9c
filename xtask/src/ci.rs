//! `cargo xtask ci`: what has to pass before a change is merged, the same on a laptop and in CI.
//!
//! `tiers` has the steps. Each runs as a separate process, so that all of its output is in
//! `target/ci/NAME.log`. After a failed step, only the steps that need it are left out. A complete
//! run fails without a container engine and a compose tool. A step that did not run must not look
//! like one that passed.

mod extent;
mod images;
mod lab;
mod programs;
mod step;
mod stories;
mod tiers;

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail};

use crate::engine::{Belongings, Engine};
use crate::step::{output, passes, say, target_folder};
use extent::{FREE_BYTES_MIN, Tier};
use step::{Context, Course, Step};
use tiers::STEPS;

/// The last step. It runs in this process, because it must know what existed before the first step.
const LEFTOVERS: &str = "leftovers";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    tier: Tier,
    engine: bool,
    list: bool,
    /// Names of the steps; empty for all of the tier.
    steps: Vec<String>,
    only: Option<String>,
}

impl Plan {
    /// Parses `[--full] [--no-engine] [--step NAME]… [--list]`, and `--only NAME` for the process
    /// of one step.
    pub(crate) fn parse(arguments: &[&str]) -> anyhow::Result<Self> {
        let mut plan = Self {
            tier: Tier::Quick,
            engine: true,
            list: false,
            steps: Vec::new(),
            only: None,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match *argument {
                "--full" => plan.tier = Tier::Full,
                "--no-engine" => plan.engine = false,
                "--list" => plan.list = true,
                "--step" | "--only" => {
                    let name = rest.next().copied().unwrap_or_default();
                    let step = STEPS.iter().find(|step| step.name == name);
                    let name = step
                        .with_context(|| format!("no step `{name}`; --list shows them"))?
                        .name;
                    if *argument == "--step" {
                        plan.steps.push(name.to_owned());
                    } else {
                        plan.only = Some(name.to_owned());
                    }
                }
                other => bail!("cargo xtask ci knows no {other}"),
            }
        }
        Ok(plan)
    }

    /// Whether a step is part of the plan; steps named on the command line run in any tier.
    fn has(&self, step: &Step) -> bool {
        let is_wanted = if self.steps.is_empty() {
            step.tier <= self.tier
        } else {
            self.steps.iter().any(|name| name == step.name)
        };
        is_wanted && (self.engine || !step.engine)
    }

    fn is_whole(&self) -> bool {
        self.steps.is_empty()
    }
}

/// Runs the steps, and prints how long each took and which failed.
///
/// # Errors
/// Names the failed steps. Without an engine, packages or disk space, it fails before the first
/// step.
pub(crate) fn run(root: &Path, plan: &Plan) -> anyhow::Result<()> {
    if plan.list {
        return list();
    }
    let context = Context {
        root,
        tier: plan.tier,
    };
    if let Some(only) = &plan.only {
        let step = STEPS.iter().find(|step| step.name == only);
        return step.context("a step")?.run_here(&context);
    }
    let began = Instant::now();
    let steps: Vec<_> = STEPS.iter().filter(|step| plan.has(step)).collect();
    if steps.len() < plan.steps.len() {
        bail!("steps that need an engine can't run with --no-engine; --list says which do");
    }
    let needs_engine = steps.iter().any(|step| step.engine);
    let engine = needs_engine.then(Engine::find).transpose()?;
    disk(plan, root, engine.as_ref())?;
    if plan.is_whole() {
        packages(plan, root)?;
        // Rows of an earlier run would count as this one's.
        let tables = target_folder(root).join("tables");
        if tables.exists() {
            std::fs::remove_dir_all(&tables)?;
        }
    }
    let before = engine.as_ref().map(Engine::belongings).transpose()?;
    let mut course = Course::new(context, target_folder(root).join("ci"))?;
    for step in steps {
        course.step(step)?;
    }
    course.wait()?;
    if let (Some(engine), Some(before)) = (&engine, &before) {
        // Checked after a failure too, because that is when things are left behind.
        course.record(LEFTOVERS, || leftovers(engine, before))?;
    }
    course.conclude(began)
}

fn list() -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    for step in STEPS {
        let tier = match step.tier {
            Tier::Quick => "quick",
            Tier::Full => "full",
        };
        let engine = if step.engine { "engine" } else { "" };
        writeln!(
            out,
            "{:<12} {tier:<6} {engine:<7} {}",
            step.name, step.about
        )?;
    }
    Ok(())
}

/// Prints the free space on the disks of the build and of the engine. When a disk becomes full in
/// the middle of an image build, the error looks like many others.
fn disk(plan: &Plan, root: &Path, engine: Option<&Engine>) -> anyhow::Result<()> {
    let mut folders = vec![root.to_owned()];
    folders.extend(engine.and_then(Engine::folder));
    for folder in folders {
        let free = free_bytes(&folder)?;
        let shown = folder.display();
        say(&format!("disk: {:.1} GB free at {shown}", gigabytes(free)))?;
        if plan.is_whole() && free < FREE_BYTES_MIN {
            bail!(
                "{:.1} GB are free at {shown}; CI needs {:.0}: remove target/, or what `docker system df` shows",
                gigabytes(free),
                gigabytes(FREE_BYTES_MIN)
            );
        }
    }
    Ok(())
}

fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

fn free_bytes(folder: &Path) -> anyhow::Result<u64> {
    let mut df = Command::new("df");
    let text = output(df.args(["--output=avail", "--block-size=1"]).arg(folder))?;
    let number = text.lines().nth(1).unwrap_or_default().trim();
    number.parse().with_context(|| format!("df says {text}"))
}

/// Fails with the one command that installs everything missing, instead of failing step by step.
fn packages(plan: &Plan, root: &Path) -> anyhow::Result<()> {
    let mut groups = vec!["test"];
    if plan.engine {
        groups.extend(["lab", "bases"]);
    }
    if plan.tier == Tier::Full {
        groups.push("full");
        if plan.engine {
            groups.push("machine");
        }
    }
    let script = format!(
        ". deploy/engine.sh; . deploy/packages.sh; missing_packages {}; install_missing no",
        groups.join(" ")
    );
    let mut bash = Command::new("bash");
    bash.args(["-euc", &script, "cargo xtask ci"]);
    passes(bash.current_dir(root))
}

fn leftovers(engine: &Engine, before: &Belongings) -> anyhow::Result<()> {
    let left = engine.belongings()?.left_over(before);
    if left.is_empty() {
        return Ok(());
    }
    bail!("left behind: {}", left.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(arguments: &[&str]) -> Vec<&'static str> {
        let plan = Plan::parse(arguments).unwrap();
        let steps = STEPS.iter().filter(|step| plan.has(step));
        steps.map(|step| step.name).collect()
    }

    #[test]
    fn the_full_tier_has_all_steps_and_the_quick_one_those_that_a_change_can_break() {
        let all: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        assert_eq!(names(&["--full"]), all);
        let quick = names(&[]);
        for step in [
            "fmt",
            "clippy",
            "unit",
            "scenarios",
            "images",
            "containers",
            "lab",
        ] {
            assert!(quick.contains(&step), "{step}");
        }
        for step in ["doc", "deny", "fuzz", "rootless", "readers"] {
            assert!(!quick.contains(&step), "{step}");
        }
        assert_eq!(
            names(&["--no-engine"]),
            ["fmt", "scripts", "spelling", "clippy", "unit", "scenarios"]
        );
    }

    #[test]
    fn named_steps_are_run_alone_and_unknown_ones_refused() {
        assert_eq!(names(&["--step", "lab", "--step", "doc"]), ["doc", "lab"]);
        assert!(Plan::parse(&["--step", "nothing"]).is_err());
        assert!(Plan::parse(&["--step"]).is_err());
        assert!(Plan::parse(&["--fast"]).is_err());
    }

    #[test]
    fn free_room_is_read() {
        assert!(free_bytes(Path::new("/")).unwrap() > 0);
        assert!(free_bytes(Path::new("/no/such/folder")).is_err());
    }
}
