//! What `deploy/packages.sh` finds missing and does about it, over an `apt-get` that only records
//! its arguments. Also, that labs have separate images.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

use super::engine::on_this_machine;
use crate::tree::{none, read, root};

/// Programs that the script itself runs, and that these tests don't replace.
const TOOLS: [&str; 2] = ["bash", "env"];

const ENGINE: (&str, &str) = ("docker", "[[ $1 != compose ]]");
const COMPOSE: (&str, &str) = ("docker-compose", "");

/// What the script prints, and the arguments that `apt-get` got.
fn run(programs: &[(&str, &str)], may_install: &str) -> (String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = folder.path().join("asked");
    for tool in TOOLS {
        symlink(on_this_machine(tool), folder.path().join(tool)).expect("a link");
    }
    let apt = "echo \"$@\" >>\"$ASKED\"";
    // `sudo` of an ordinary user; its options end at the first word that is a program.
    let sudo = "[[ $1 != -n ]] || shift; [[ $1 == true ]] || exec \"$@\"";
    let own = [("apt-get", apt), ("sudo", sudo)];
    for (name, does) in programs.iter().chain(&own) {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/usr/bin/env bash\n{does}\n")).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
    }
    let script =
        ". deploy/engine.sh; . deploy/packages.sh; missing_packages lab; install_missing \"$1\"";
    let output = Command::new(on_this_machine("bash"))
        .args(["-euc", script, "lab/up", may_install])
        .current_dir(root())
        .env_clear()
        .env("PATH", folder.path())
        .env("ASKED", &asked)
        .output()
        .expect("bash runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (said, fs::read_to_string(asked).unwrap_or_default())
}

#[test]
fn all_that_is_missing_is_named_with_one_command_and_nothing_installed() {
    let (said, asked) = run(&[ENGINE], "no");
    assert!(said.contains("missing: curl docker-compose;"), "{said}");
    let command = "apt-get install --no-install-recommends curl docker-compose";
    assert!(said.contains(command), "{said}");
    assert_eq!(asked, "");
}

#[test]
fn what_is_missing_is_announced_and_installed_in_one_go() {
    let (said, asked) = run(&[ENGINE], "yes");
    let announced = "installing from Debian's packages: curl docker-compose";
    assert!(said.contains(announced), "{said}");
    let installed = "-q update\n-q -y install --no-install-recommends curl docker-compose\n";
    assert_eq!(asked, installed);
}

#[test]
fn an_engine_is_named_and_never_installed() {
    let (said, asked) = run(&[COMPOSE], "yes");
    assert!(said.contains("missing: curl docker.io;"), "{said}");
    assert_eq!(asked, "");
}

#[test]
fn where_nothing_is_missing_nothing_is_said_or_done() {
    let (said, asked) = run(&[ENGINE, COMPOSE, ("curl", "")], "no");
    assert_eq!((said.as_str(), asked.as_str()), ("", ""));
}

/// The lab of another branch would become the checker of a census on the same engine.
#[test]
fn a_lab_builds_and_runs_no_image_of_a_census() {
    let script = ". deploy/engine.sh; lab_instance; echo \"$FEDICENSUS_TAG\"";
    let output = Command::new("bash")
        .args(["-euc", script])
        .current_dir(root())
        .env_remove("FEDICENSUS_LAB_NAME")
        .output()
        .expect("bash runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "fedicensus-lab\n");
    let mut breaches = Vec::new();
    for file in [
        "compose.yaml",
        "deploy/compose.intake.yaml",
        "deploy/compose.console.yaml",
        "deploy/compose.lab.yaml",
        "lab/up",
    ] {
        for line in read(file).lines() {
            let image = line.split("localhost/fedicensus-").nth(1);
            let is_tagged = |image: &str| {
                image.contains(":${FEDICENSUS_TAG:-latest}") || image.contains(":$instance")
            };
            if image.is_some_and(|image| !is_tagged(image)) {
                breaches.push(format!("{file}: {line}"));
            }
        }
    }
    none("images under a census's own names", &breaches);
}
