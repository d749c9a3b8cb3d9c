//! `cargo xtask seccomp`: does the profile of a check still match the checker's needs?
//!
//! Runs the release checker, as the image contains it, under strace for every persona of the lab,
//! over real egress sockets. A call that the profile would refuse is an error. Allowed calls that
//! were not made are printed with the profile's own reason, for a person to review. Run it after a
//! change to the checker, one of its dependencies or the toolchain. It covers this machine's
//! architecture only.

mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::step::{output, passes, say};

/// The profile, whose groups contain their reasons.
const PROFILE: &str = "crates/launcher/src/container/seccomp.json";

/// Groups of calls that only other programs make: their reasons begin like this, and it is normal
/// that the checker does not make them.
const OF_OTHERS: [&str; 3] = ["probe", "runtime", "rare"];

/// Traces the checker and compares.
///
/// # Errors
/// The checker made a call that the profile refuses, nothing was traced, or a program is missing.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    output(Command::new("strace").arg("--version"))
        .context("strace is missing (Debian: apt-get install strace)")?;
    let directory = root.join("target/seccomp");
    let traces = directory.join("traces");
    if traces.exists() {
        fs::remove_dir_all(&traces)?;
    }
    fs::create_dir_all(&traces)?;
    let checker = build(root)?;
    let wrapper = directory.join("checker");
    fs::write(
        &wrapper,
        format!(
            "#!/bin/sh\nexec strace -f -qq -X raw -s 0 -o '{}'/$$ '{}' \"$@\"\n",
            traces.display(),
            checker.display()
        ),
    )?;
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    let mut personas = Command::new(env!("CARGO"));
    personas
        .args("test --locked --package tests --test scenarios -- personas".split(' '))
        .env("FEDICENSUS_LAB_CHECKER", &wrapper)
        .env_remove("FEDICENSUS_LAB_ENGINE")
        .current_dir(root);
    passes(&mut personas)?;
    let profile: Value = serde_json::from_slice(&fs::read(root.join(PROFILE))?)?;
    let mut seen = BTreeSet::new();
    let mut refused = BTreeMap::new();
    let mut checks = 0;
    for entry in fs::read_dir(&traces)? {
        checks += 1;
        let text = fs::read(entry?.path())?;
        for line in trace::lines(&String::from_utf8_lossy(&text)) {
            let Some(call) = trace::Call::parse(&line) else {
                continue;
            };
            if trace::is_refused(&profile, &call) {
                refused
                    .entry(call.name.to_owned())
                    .or_insert_with(|| line.to_owned());
            }
            seen.extend(call.stands_for().map(str::to_owned));
        }
    }
    report(&profile, checks, &seen, &refused)
}

/// Builds what the scenario needs, and the checker as `Containerfile.checker` builds it.
fn build(root: &Path) -> anyhow::Result<std::path::PathBuf> {
    let mut parts = Command::new(env!("CARGO"));
    parts.args("build --locked -p orchestrator -p lab -p fedicensus-checker".split(' '));
    passes(parts.current_dir(root))?;
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut checker = Command::new(env!("CARGO"));
    checker
        .args("build --release --locked -p fedicensus-checker --target".split(' '))
        .arg(&target)
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .current_dir(root);
    passes(&mut checker)?;
    let checker = root.join(format!("target/{target}/release/fedicensus-checker"));
    if !checker.exists() {
        bail!("{} was not built", checker.display());
    }
    Ok(checker)
}

fn report(
    profile: &Value,
    checks: usize,
    seen: &BTreeSet<String>,
    refused: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    if checks == 0 || seen.is_empty() {
        bail!("nothing was traced: did the scenario run the wrapper?");
    }
    say(&format!(
        "{checks} checks made {} different calls",
        seen.len()
    ))?;
    for group in trace::groups(profile) {
        let unseen: Vec<_> = trace::names(group)
            .filter(|name| !seen.contains(*name))
            .collect();
        let reason = group["comment"].as_str().unwrap_or_default();
        if unseen.is_empty() {
            continue;
        }
        let of_others = OF_OTHERS.iter().any(|who| reason.starts_with(who));
        let wonder = if of_others {
            ""
        } else {
            "   <== still needed?"
        };
        say(&format!(
            "allowed, not seen: {}\n    {reason}{wonder}",
            unseen.join(" ")
        ))?;
    }
    for (name, line) in refused {
        say(&format!("NEEDED, NOT ALLOWED: {name}\n    {line}"))?;
    }
    if !refused.is_empty() {
        bail!(
            "the checker makes {} calls that {PROFILE} refuses",
            refused.len()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_would_be_refused_and_a_trace_of_nothing_are_failures() {
        let profile =
            serde_json::json!({"syscalls": [{"comment": "checker: x", "names": ["read"]}]});
        let seen: BTreeSet<_> = ["read".to_owned()].into();
        let none = BTreeMap::new();
        assert!(report(&profile, 1, &seen, &none).is_ok());
        assert!(report(&profile, 0, &seen, &none).is_err());
        assert!(report(&profile, 1, &BTreeSet::new(), &none).is_err());
        let refused = [("bpf".to_owned(), "7  bpf(0) = 3".to_owned())].into();
        let error = report(&profile, 1, &seen, &refused).unwrap_err();
        assert!(error.to_string().contains("makes 1 calls that"), "{error}");
    }
}
