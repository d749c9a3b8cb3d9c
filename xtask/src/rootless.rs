//! The `rootless` chore: the census under an unprivileged user's Podman and systemd, in a virtual
//! machine (tests/rootless).
//!
//! Prints the results of the steps as they come, and writes the table `rootless.md` next to the
//! tests' tables. Unknown steps are rejected; so is a machine that can't create or boot the virtual
//! one.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::fuzz::seed_of_commit;
use crate::step::{output, passes, say, target_folder};

/// Personas of an emulated census: one of each of some two dozen kinds, drawn again for each
/// commit, and a few more.
const SAMPLE: u32 = 30;

/// The steps in CI, with those that they need: from images to the removal of an installation. The
/// others take as long again, and run when their subject changes.
const IN_CI: [&str; 5] = ["suite", "quadlet", "kills", "reboot", "uninstall"];

/// Longest boot in CI, in seconds: on a machine that built and tested at the same time, the first
/// took four fifths of it.
const CI_SECONDS_MAX: u32 = 2400;
/// Longest boot by hand, with every step or all personas, in seconds: under emulation a check takes
/// two seconds, and failures are checked twice.
const SECONDS_MAX: u32 = 9000;

/// Programs that the chore needs, and the Debian packages that contain them.
const PROGRAMS: [(&str, &str); 2] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("mmdebstrap", "mmdebstrap"),
];

/// What to run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Whether to use all personas and not a sample.
    whole: bool,
    boot_seconds_max: u32,
    /// The steps; empty for all.
    steps: Vec<String>,
}

impl Plan {
    pub(crate) fn in_ci() -> Self {
        Self {
            whole: false,
            boot_seconds_max: CI_SECONDS_MAX,
            steps: IN_CI.map(str::to_owned).to_vec(),
        }
    }

    /// Parses `[--whole] [STEP…]`.
    ///
    /// # Errors
    /// An option is unknown.
    pub(crate) fn parse(arguments: &[&str]) -> anyhow::Result<Self> {
        let mut plan = Self {
            whole: false,
            boot_seconds_max: SECONDS_MAX,
            steps: Vec::new(),
        };
        for argument in arguments {
            match *argument {
                "--whole" => plan.whole = true,
                option if option.starts_with('-') => {
                    bail!("unknown option {option}; there is --whole")
                }
                step => plan.steps.push(step.to_owned()),
            }
        }
        Ok(plan)
    }
}

/// Runs the steps.
///
/// # Errors
/// A step found an error, or nothing; or the virtual machine can't be created or doesn't boot.
pub(crate) fn run(root: &Path, plan: &Plan) -> anyhow::Result<()> {
    if let Some(lack) = lack()? {
        bail!("{lack}");
    }
    let state = target_folder(root).join("rootless");
    let mut command = Command::new(root.join("tests/rootless/run"));
    command.current_dir(root).arg("--state").arg(&state);
    if !plan.whole {
        let seed = seed_of_commit(root);
        say(&format!(
            "rootless: {SAMPLE} personas, drawn from seed {seed}; --whole shows all"
        ))?;
        command.env("FEDICENSUS_SAMPLE", format!("{SAMPLE}:{seed}"));
    }
    let outcome = passes(
        command
            .args(["--within", &plan.boot_seconds_max.to_string()])
            .args(&plan.steps),
    );
    let tables = target_folder(root).join("tables");
    std::fs::create_dir_all(&tables)?;
    let table = state.join("results/rootless.md");
    std::fs::copy(&table, tables.join("rootless.md"))
        .with_context(|| format!("{} is not there: no step was run", table.display()))?;
    outcome
}

/// What this machine lacks for the chore, and how to get it.
fn lack() -> anyhow::Result<Option<String>> {
    for (program, package) in PROGRAMS {
        if Command::new(program).arg("--version").output().is_err() {
            return Ok(Some(format!(
                "{program} is missing: install it (Debian: apt-get install {package})"
            )));
        }
    }
    let is_root = output(Command::new("id").arg("-u"))?.trim() == "0";
    let becomes_root = || output(Command::new("sudo").args(["--non-interactive", "true"])).is_ok();
    Ok((!is_root && !becomes_root()).then(|| {
        "the virtual machine's disk is made by root: run this as root, or where sudo asks for no password"
            .to_owned()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_the_one_option_are_told_apart() {
        let plan = Plan::parse(&["kills", "--whole", "reboot"]).unwrap();
        assert!(plan.whole);
        assert_eq!(plan.steps, ["kills", "reboot"]);
        assert!(Plan::parse(&[]).unwrap().steps.is_empty());
        assert!(Plan::parse(&["--all"]).is_err());
    }
}
