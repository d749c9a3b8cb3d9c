//! The `deny` step: licences, sources and bans always; advisories if their database can be reached,
//! and a message if not.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

use crate::step::{Outcome, passes, say};

/// The version of cargo-deny for which `deny.toml` is written.
const VERSION: &str = "0.20.2";

/// Checks the dependencies by `deny.toml`.
pub(crate) fn check(root: &Path) -> anyhow::Result<Outcome> {
    let program = tool(root)?;
    passes(
        Command::new(&program)
            .args([
                "--all-features",
                "check",
                "--hide-inclusion-graph",
                "bans",
                "licenses",
                "sources",
            ])
            .current_dir(root),
    )?;
    // If the database can't be fetched, the check would fail as if there were an advisory, so fetch
    // it first.
    let fetched = Command::new(&program)
        .args(["fetch", "db"])
        .current_dir(root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !fetched.is_ok_and(|status| status.success()) {
        return Ok(Outcome::Partly(
            "ADVISORIES NOT CHECKED: their database can't be reached from here".to_owned(),
        ));
    }
    passes(
        Command::new(&program)
            .args(["--all-features", "check", "advisories"])
            .current_dir(root),
    )?;
    Ok(Outcome::Passed)
}

/// cargo-deny from the PATH, or one that is built once into the cache directory, which outlives
/// target folders.
fn tool(root: &Path) -> anyhow::Result<PathBuf> {
    let cache = cache_folder()?;
    let own = cache.join("bin/cargo-deny");
    for program in [PathBuf::from("cargo-deny"), own.clone()] {
        let answered = Command::new(&program)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if answered.is_ok_and(|status| status.success()) {
            return Ok(program);
        }
    }
    say(&format!(
        "building cargo-deny {VERSION} into {}, once; some minutes",
        cache.display()
    ))?;
    let mut install = Command::new(env!("CARGO"));
    install
        .args([
            "install",
            "--locked",
            "cargo-deny",
            "--version",
            VERSION,
            "--root",
        ])
        .arg(&cache);
    passes(install.current_dir(root))?;
    Ok(own)
}

fn cache_folder() -> anyhow::Result<PathBuf> {
    let cache = match std::env::var_os("XDG_CACHE_HOME").filter(|set| !set.is_empty()) {
        Some(cache) => PathBuf::from(cache),
        None => {
            let home = std::env::var_os("HOME").context("HOME is not set")?;
            PathBuf::from(home).join(".cache")
        }
    };
    Ok(cache.join(format!("fedicensus/cargo-deny-{VERSION}")))
}
