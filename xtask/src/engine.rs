//! The container engine as CI sees it: which one, its API socket, and which of our objects it has.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};

use crate::step::output;

/// Label of all our objects; its value is the installation's name.
const LABEL: &str = "org.fedicensus";

/// Longest time for an answer that needs no work, on a machine that is busy with tests.
const ANSWER_SECONDS_MAX: &str = "60";

pub(crate) struct Engine {
    program: String,
    pub(crate) socket: PathBuf,
}

/// Containers, networks and volumes with our label: what each is, and its installation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Belongings(BTreeSet<(String, String)>);

impl Engine {
    /// Docker, or Podman without Docker; `ENGINE` and `ENGINE_SOCKET` override this.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let candidates = match text("ENGINE") {
            Some(program) => vec![program],
            None => vec!["docker".to_owned(), "podman".to_owned()],
        };
        let mut troubles = Vec::new();
        for program in candidates {
            match output(asking(&program).args(["ps", "--quiet"])) {
                Ok(_) => {
                    let socket = socket(&program)?;
                    return Ok(Self { program, socket });
                }
                Err(error) => troubles.push(format!("{error:#}")),
            }
        }
        bail!(
            "no container engine answers: start Docker or Podman, or see that this user may use it; `cargo xtask ci --no-engine` does without. {}",
            troubles.join("; ")
        )
    }

    pub(crate) fn command(&self) -> Command {
        Command::new(&self.program)
    }

    /// The folder of its images and containers, if it is on this machine.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let format = if self.program.ends_with("podman") {
            "{{.Store.GraphRoot}}"
        } else {
            "{{.DockerRootDir}}"
        };
        let answer = output(self.command().args(["info", "--format", format])).ok()?;
        Some(PathBuf::from(answer.trim())).filter(|folder| folder.is_dir())
    }

    /// All of our objects that exist now.
    pub(crate) fn belongings(&self) -> anyhow::Result<Belongings> {
        let mut found = BTreeSet::new();
        let format = format!("{{{{.Label \"{LABEL}\"}}}}");
        for (what, list, name) in [
            ("container", &["ps", "--all"][..], "{{.Names}}"),
            ("network", &["network", "ls"], "{{.Name}}"),
            ("volume", &["volume", "ls"], "{{.Name}}"),
        ] {
            let mut command = asking(&self.program);
            command.args(list).args([
                "--filter",
                &format!("label={LABEL}"),
                "--format",
                &format!("{name} {format}"),
            ]);
            for line in output(&mut command)?.lines() {
                let (name, instance) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
                found.insert((format!("{what} {name}"), instance.to_owned()));
            }
        }
        Ok(Belongings(found))
    }
}

impl Belongings {
    /// Objects that did not exist `before`, except those of installations that existed then and
    /// still run.
    pub(crate) fn left_over(&self, before: &Self) -> Vec<String> {
        let others: BTreeSet<&String> = before.0.iter().map(|(_, instance)| instance).collect();
        self.0
            .iter()
            .filter(|(_, instance)| !others.contains(instance))
            .map(|(what, instance)| format!("{what} ({instance})"))
            .collect()
    }
}

/// A question to the engine. One whose locks are stuck never answers.
fn asking(program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args([ANSWER_SECONDS_MAX, program]);
    command
}

fn socket(program: &str) -> anyhow::Result<PathBuf> {
    if let Some(path) = text("ENGINE_SOCKET") {
        return Ok(path.into());
    }
    if let Some(path) =
        text("DOCKER_HOST").and_then(|address| address.strip_prefix("unix://").map(str::to_owned))
    {
        return Ok(path.into());
    }
    if program.ends_with("podman") {
        let directory =
            text("XDG_RUNTIME_DIR").context("where is Podman's socket? Set ENGINE_SOCKET")?;
        return Ok(PathBuf::from(directory).join("podman/podman.sock"));
    }
    Ok("/var/run/docker.sock".into())
}

fn text(name: &str) -> Option<String> {
    std::env::var_os(name)
        .and_then(|value| value.into_string().ok())
        .filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn belongings(pairs: &[(&str, &str)]) -> Belongings {
        Belongings(
            pairs
                .iter()
                .map(|(what, instance)| ((*what).to_owned(), (*instance).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn what_another_installation_starts_meanwhile_is_not_ours() {
        let before = belongings(&[("volume fedicensus_data", "fedicensus")]);
        let after = belongings(&[
            ("volume fedicensus_data", "fedicensus"),
            ("container check-1", "fedicensus"),
            ("network ci", "ci"),
        ]);
        assert_eq!(after.left_over(&before), ["network ci (ci)"]);
        assert_eq!(before.left_over(&before), [""; 0]);
    }
}
