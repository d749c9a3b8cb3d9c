//! The program as a shell meets it: exit codes, and errors of one line. Scenarios over a whole census stand in `tests/`.
#![expect(
    clippy::unwrap_used,
    reason = "a test that can't start the program fails"
)]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

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

/// Commands over a data directory of their own, without a daemon.
struct Data(tempfile::TempDir);

impl Data {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn database(&self) -> std::path::PathBuf {
        self.0.path().join("census.db")
    }

    fn run(&self, arguments: &[&str], stdin: &[u8]) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fedicensus"))
            .args(arguments)
            .env_clear()
            .env("FEDICENSUS_DATA_DIR", self.0.path())
            .env("FEDICENSUS_CONTACT", "https://example.org/")
            .env("FEDICENSUS_LAB_RESERVED_SUFFIXES", "true")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // One that reads nothing may have ended.
        child.stdin.take().unwrap().write_all(stdin).ok();
        child.wait_with_output().unwrap()
    }

    fn check(&self, arguments: &[&str], code: i32, says: &str) {
        let output = self.run(arguments, b"");
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
}

fn said(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    format!("{stdout}{}", String::from_utf8_lossy(&output.stderr))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_backup_is_made_and_put_back() {
    let data = Data::new();
    let file = data.0.path().join("monday.db");
    data.check(&["backup", text(&file)], 1, "there is no database at");
    data.check(&["add", "a.lab.test"], 0, "1 taken");
    data.check(&["backup", text(&file)], 0, "wrote ");
    data.check(&["backup", text(&file)], 1, "is there already");
    let streamed = data.run(&["backup", "-"], b"");
    assert_eq!(streamed.stdout, std::fs::read(&file).unwrap());
    data.check(&["add", "b.lab.test"], 0, "1 taken");

    data.check(&["restore", "/nonexistent"], 1, "cannot read /nonexistent");
    let half = data.run(&["restore", "-"], &streamed.stdout[..8192]);
    assert_eq!(half.status.code(), Some(1));
    assert!(said(&half).contains("damaged or not whole"), "{half:?}");
    data.check(&["explain", "b.lab.test"], 0, "discovered");
    let whole = data.run(&["restore", "-"], &streamed.stdout);
    assert!(whole.status.success(), "{whole:?}");
    assert!(said(&whole).contains("census.db.replaced"), "{whole:?}");
    data.check(&["explain", "a.lab.test"], 0, "discovered");
    data.check(&["explain", "b.lab.test"], 0, "unknown");
    data.check(
        &["restore", text(&file)],
        0,
        "schema 1; start the daemon now",
    );
}

#[test]
fn a_database_of_a_newer_version_is_refused_by_every_command_and_left_alone() {
    let data = Data::new();
    data.check(&["add", "a.lab.test"], 0, "1 taken");
    let old = data.0.path().join("census.db.schema-1");
    std::fs::copy(data.database(), &old).unwrap();
    let mut newer = std::fs::read(data.database()).unwrap();
    // Where SQLite's header has `user_version`.
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(data.database(), &newer).unwrap();
    for command in [
        &["run"][..],
        &["status"],
        &["explain", "a.lab.test"],
        &["add", "b.lab.test"],
        &["opt-out", "a.lab.test"],
        &["dump"],
    ] {
        data.check(command, 1, "has schema 99, made by a newer version");
        data.check(command, 1, &format!("fedicensus restore {}", old.display()));
        assert_eq!(std::fs::read(data.database()).unwrap(), newer);
    }
    // It can be saved all the same, and the copy that was named is what helps.
    let kept = data.0.path().join("kept.db");
    data.check(&["backup", text(&kept)], 0, "schema 99");
    data.check(&["restore", text(&old)], 0, "schema 1");
    data.check(&["explain", "a.lab.test"], 0, "discovered");
}
