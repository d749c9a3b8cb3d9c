//! The program as a shell meets it: exit codes, and errors of one line. Scenarios over a whole census stand in `tests/`.
#![expect(
    clippy::unwrap_used,
    reason = "a test that can't start the program fails"
)]

use std::process::{Command, Output};

fn fedicensus(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fedicensus"))
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

fn check(arguments: &[&str], environment: &[(&str, &str)], code: i32, says: &str) {
    let output = fedicensus(arguments, environment);
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    assert!(
        stdout.contains(says) || stderr.contains(says),
        "{arguments:?}: {stdout}{stderr}"
    );
}

#[test]
fn exit_codes_are_as_documented() {
    let nowhere = [("FEDICENSUS_DATA_DIR", "/nonexistent")];
    check(&["--version"], &[], 0, "fedicensus 0.1.0");
    check(&["completions", "bash"], &[], 0, "complete");
    check(&["settings"], &[], 0, "checks_max = \"4\"");
    check(&["fly"], &[], 2, "unrecognized subcommand");
    check(&["run"], &[], 2, "setting `contact` is missing");
    check(
        &["add", "a.example.org"],
        &nowhere,
        1,
        "/nonexistent/census.db",
    );
    check(
        &["status"],
        &nowhere,
        1,
        "there is no database at /nonexistent/census.db",
    );
    check(&["health"], &nowhere, 3, "no daemon runs here");
}

#[test]
fn a_mistyped_log_level_is_refused_and_does_not_silence() {
    check(
        &["status", "--log", "warning"],
        &[],
        2,
        "setting `log` (flag): `warning` must be",
    );
}
