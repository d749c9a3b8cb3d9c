//! Steps that run a program over the tree: the compiler's tools, shellcheck, cargo-deny, the
//! fuzzer.

use std::process::Command;

use anyhow::Context as _;

use super::extent::TESTS_AT_ONCE;
use super::step::{Context, PROFILE};
use crate::fuzz::seed_of_commit;
use crate::step::{Outcome, output, passes, target_folder};
use crate::{browser, deny, fuzz};

/// What a line of each of our shell scripts begins with.
const IS_SCRIPT: &str = "^(#!/usr/bin/env bash|# shellcheck shell=bash)";

/// Tests the filter and the jails of `deploy/fail2ban`.
const FAIL2BAN: &str = "tests/fixtures/fail2ban/check";

/// Files with text of ours. Seeds and pages that servers sent have mistakes on purpose.
const SPELLED: [&str; 10] = [
    "*.rs",
    "*.md",
    "*.js",
    "*.mjs",
    "*.yml",
    "*.yaml",
    "*.toml",
    "*.sh",
    "*.conf",
    "*.container",
];

/// Words that codespell takes for mistakes and that are none, in lower case.
const NO_MISTAKES: &str =
    "bu,crate,crates,befores,iif,inflight,inout,keypair,nd,nin,optin,passt,softwares,te,tyes";

const ROOTLESS: &str = "tests/rootless";

/// Steps of [`ROOTLESS`], from images to the removal of an installation. They need others. The rest
/// takes as long again, and runs when its subject changes.
const ROOTLESS_STEPS: [&str; 6] = ["suite", "docker", "quadlet", "kills", "reboot", "uninstall"];

/// Personas of the census in the virtual machine: one of each of some two dozen kinds, drawn again
/// for each commit, and a few more.
const ROOTLESS_PERSONAS: u32 = 30;

/// Longest boot of the virtual machine in seconds. The first takes half of it on a machine that
/// does nothing else, and other steps run at the same time.
const BOOT_SECONDS_MAX: &str = "3600";

pub(super) fn fmt(context: &Context<'_>) -> anyhow::Result<Outcome> {
    passed(&mut context.cargo("fmt --all --check"))
}

pub(super) fn clippy(context: &Context<'_>) -> anyhow::Result<Outcome> {
    // The fuzz targets have a lock file of their own, which nothing else here reads.
    let lock = "tree --locked --depth 0 --manifest-path tests/fuzz/Cargo.toml";
    passes(&mut context.cargo(lock))?;
    // `--all-targets` leaves out what `cargo test` leaves out.
    let targets = "clippy --workspace --all-targets --test scenarios --locked -- -D warnings";
    passed(&mut context.cargo(targets))
}

pub(super) fn doc(context: &Context<'_>) -> anyhow::Result<Outcome> {
    let mut doc = context.cargo("doc --workspace --no-deps --locked");
    passed(doc.env("RUSTDOCFLAGS", "-D warnings"))
}

/// All tests except the scenarios and those that need an engine.
pub(super) fn unit(context: &Context<'_>) -> anyhow::Result<Outcome> {
    let mut test = context.cargo("test --workspace --locked");
    require_privileges(&mut test)?;
    passed(
        test.env("RUST_TEST_THREADS", TESTS_AT_ONCE)
            .env_remove("FEDICENSUS_TEST_ENGINE"),
    )
}

pub(super) fn deny(context: &Context<'_>) -> anyhow::Result<Outcome> {
    deny::check(context.root)
}

pub(super) fn fuzz(context: &Context<'_>) -> anyhow::Result<Outcome> {
    fuzz::run(context.root)
}

pub(super) fn axe(context: &Context<'_>) -> anyhow::Result<Outcome> {
    browser::fetch_axe(context.root)
}

pub(super) fn rootless(context: &Context<'_>) -> anyhow::Result<Outcome> {
    let target = target_folder(context.root);
    let state = target.join("rootless");
    let personas = format!("{ROOTLESS_PERSONAS}:{}", seed_of_commit(context.root));
    let mut run = Command::new(context.root.join(ROOTLESS).join("run"));
    run.args(["--within", BOOT_SECONDS_MAX])
        .arg("--state")
        .arg(&state)
        .args(ROOTLESS_STEPS)
        .env("FEDICENSUS_SAMPLE", personas)
        .env(PROFILE, context.profile())
        .current_dir(context.root);
    let outcome = passed(&mut run);
    let tables = target.join("tables");
    std::fs::create_dir_all(&tables)?;
    let table = state.join("results/rootless.md");
    std::fs::copy(&table, tables.join("rootless.md"))
        .with_context(|| format!("{} is not there: no step was run", table.display()))?;
    outcome
}

/// Compares words of sources and documents with a list of frequent mistakes.
pub(super) fn spelling(context: &Context<'_>) -> anyhow::Result<Outcome> {
    let files = output(
        Command::new("git")
            .args(["ls-files", "-z", "--"])
            .args(SPELLED)
            .current_dir(context.root),
    )?;
    let files: Vec<_> = files.split('\0').filter(|file| !file.is_empty()).collect();
    passed(
        Command::new("codespell")
            .args(["--ignore-words-list", NO_MISTAKES])
            .args(files)
            .current_dir(context.root),
    )
}

pub(super) fn scripts(context: &Context<'_>) -> anyhow::Result<Outcome> {
    let mut git = Command::new("git");
    git.args(["grep", "--untracked", "-lE", IS_SCRIPT]);
    let scripts = output(git.current_dir(context.root))?;
    let mut shellcheck = Command::new("shellcheck");
    shellcheck
        .args(["--shell=bash", "-x"])
        .args(scripts.lines());
    passes(shellcheck.current_dir(context.root))?;
    script(context, FAIL2BAN)
}

pub(super) fn script(context: &Context<'_>, path: &str) -> anyhow::Result<Outcome> {
    let mut script = Command::new(context.root.join(path));
    script.env(PROFILE, context.profile());
    passed(script.current_dir(context.root))
}

/// Forbids skipping the tests that only root can run, if this is root; returns whether it is.
pub(super) fn require_privileges(test: &mut Command) -> anyhow::Result<bool> {
    let is_root = is_root()?;
    if is_root {
        test.env("FEDICENSUS_PRIVILEGES", "required");
    }
    Ok(is_root)
}

pub(super) fn is_root() -> anyhow::Result<bool> {
    Ok(output(Command::new("id").arg("-u"))?.trim() == "0")
}

pub(super) fn passed(command: &mut Command) -> anyhow::Result<Outcome> {
    passes(command)?;
    Ok(Outcome::Passed)
}
