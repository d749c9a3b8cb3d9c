//! The scenarios, over plain processes, over containers, and with other people's programs; and the
//! tables that they write.

use std::process::Command;

use anyhow::{Context as _, bail};

use super::extent::{
    FIREWALL_TABLE, FULL_PROGRAMS, IMAGE_TAG, KILLS_OVER_CONTAINERS, KILLS_OVER_PROCESSES,
    PROCESSES_SUFFICE, READERS, SAMPLE_OVER_CONTAINERS, SCENARIOS_AT_ONCE, TABLES,
};
use super::programs::{is_root, passed, require_privileges};
use super::step::Context;
use crate::step::{Outcome, passes, say, target_folder};

/// For the whole workspace: a single package has other features, so half of the workspace would be
/// compiled again.
const SCENARIOS: &str = "test --workspace --locked --test scenarios";

/// Tests of the packages whose programs the scenarios start: cargo builds a package's programs for
/// its integration tests.
const PROGRAMS: &str = "--no-run --test program --test check --test binary --example hold_lock";

pub(super) fn over_processes(context: &Context<'_>) -> anyhow::Result<Outcome> {
    let mut test = scenarios(context)?;
    require_privileges(&mut test)?;
    if context.is_full() {
        skip(&mut test, &READERS);
        test.env("FEDICENSUS_WAYS_HOSTS", "300");
    } else {
        test.env("FEDICENSUS_CRASH_KILLS", KILLS_OVER_PROCESSES);
        skip(&mut test, &FULL_PROGRAMS);
    }
    passed(test.env("RUST_TEST_THREADS", SCENARIOS_AT_ONCE))
}

/// Nothing is skipped: the programs must be installed.
pub(super) fn readers(context: &Context<'_>) -> anyhow::Result<Outcome> {
    let mut test = scenarios(context)?;
    passed(test.args(READERS).env("FEDICENSUS_E2E", "required"))
}

pub(super) fn over_containers(context: &Context<'_>) -> anyhow::Result<Outcome> {
    let socket = context.engine()?.socket;
    let mut launcher = context.cargo("test --workspace --locked --test engine");
    passes(launcher.env("FEDICENSUS_TEST_ENGINE", &socket))?;
    let mut test = scenarios(context)?;
    if context.is_full() {
        skip(&mut test, &PROCESSES_SUFFICE);
    } else {
        test.args(SAMPLE_OVER_CONTAINERS)
            .env("FEDICENSUS_CRASH_KILLS", KILLS_OVER_CONTAINERS);
    }
    passed(
        test.env("FEDICENSUS_E2E", "required")
            .env("FEDICENSUS_LAB_ENGINE", &socket)
            .env(
                "FEDICENSUS_LAB_CHECKER",
                format!("localhost/fedicensus-checker:{IMAGE_TAG}"),
            ),
    )
}

/// Prints the tests' measurements and attempts, table by table: figures that no one reads are not
/// worth making.
pub(super) fn tables(context: &Context<'_>) -> anyhow::Result<Outcome> {
    let folder = target_folder(context.root).join("tables");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
    let is_root = is_root()?;
    for wanted in TABLES {
        let is_written = is_root || wanted != FIREWALL_TABLE;
        if is_written && !folder.join(wanted).exists() {
            bail!("no {wanted}: the tests that write it were skipped, or lost it");
        }
    }
    files.sort();
    for path in files {
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        say(&format!("{}\n{text}", path.display()))?;
    }
    Ok(if is_root {
        Outcome::Passed
    } else {
        Outcome::Partly(format!("{FIREWALL_TABLE} is written by root only"))
    })
}

/// The scenarios' program, with the programs that it starts built, and without environment
/// variables that change how it runs. The arguments go to the program itself.
fn scenarios(context: &Context<'_>) -> anyhow::Result<Command> {
    passes(&mut context.cargo(&format!("{SCENARIOS} {PROGRAMS}")))?;
    let mut test = context.cargo(&format!("{SCENARIOS} --"));
    test.env_remove("FEDICENSUS_E2E")
        .env_remove("FEDICENSUS_LAB_ENGINE")
        .env_remove("FEDICENSUS_LAB_CHECKER")
        .env_remove("FEDICENSUS_CRASH_KILLS");
    Ok(test)
}

fn skip(test: &mut Command, filters: &[&str]) {
    for filter in filters {
        test.args(["--skip", filter]);
    }
}
