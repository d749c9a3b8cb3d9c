//! The `deny` step: licences, sources and bans always; advisories where their database can be reached, and it is said when it can't.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::step::{Outcome, passes, say};

/// The version that `deny.toml` is written for.
const VERSION: &str = "0.20.2";

/// Checks the dependencies by `deny.toml`.
///
/// # Errors
/// When a check fails, or cargo-deny can be neither found nor built.
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
    // A database that can't be fetched would fail the check itself in the same way as an advisory does: ask for it first.
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

/// cargo-deny from the PATH, else one that is built once into `target/tools`.
fn tool(root: &Path) -> anyhow::Result<PathBuf> {
    let own = root.join("target/tools/bin/cargo-deny");
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
        "building cargo-deny {VERSION} into target/tools, once; some minutes"
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
        .arg(root.join("target/tools"));
    passes(install.current_dir(root))?;
    Ok(own)
}
