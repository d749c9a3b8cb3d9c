//! The program's output on the command line: each cause appears once, and a failed write is never a
//! success.
#![expect(
    clippy::unwrap_used,
    reason = "a test that can't start the program fails"
)]

use std::fs::File;
use std::process::{Command, Output, Stdio};

/// Sigsum's published values: a log's key, and the public key of the test domain.
const LOG_KEY: &str = "cda2517e17dcba133eb0e71bf77473f94a77d7e61b1de4e1e64adfd0938d6182";
const KEY: &str = "4cb5abf6ad79fbf5abbccafcc269d85cd2651ed4b885b5869f241aedf0a5ba29";

fn fedicensus(arguments: &[&str], stdout: Stdio) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fedicensus"))
        .args(arguments)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap()
}

/// Asserts that the command fails with exactly this output.
#[track_caller]
fn says(arguments: &[&str], code: i32, expect: &str) {
    let output = fedicensus(arguments, Stdio::piped());
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told, format!("fedicensus: {expect}\n"));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}: {output:?}");
}

#[test]
fn a_list_of_suffixes_that_cannot_be_used_is_named_with_its_remedy() {
    let data = tempfile::tempdir().unwrap();
    let list = data.path().join("public_suffix_list.dat");
    std::fs::create_dir(&list).unwrap();
    let (data, list) = (data.path().display().to_string(), list.display());
    let expect = format!(
        "public suffix list {list}: is not a regular file; name a file. Replace it (before the last update it was {list}.old), or remove it to use the built-in list"
    );
    let command = ["admission", "name", "a.com", "--data-dir", &data];
    says(&command, 2, &expect);
}

#[test]
fn each_cause_is_told_once() {
    let missing = "No such file or directory (os error 2)";
    let digits = "0".repeat(128);
    for (value, expect) in [
        (
            "social",
            "the token's domain can't be used: it has only one label",
        ),
        (
            "v1 submit a.example social 1",
            "the token's host can't be used: it has only one label",
        ),
        (
            "v1 submit social a.example 1",
            "the token's domain can't be used: it has only one label",
        ),
        (
            "test.sigsum.org",
            "the token's domain is `test.sigsum.org` or lies below it, whose secret key is public, so that anybody could have made the token: use a domain and a key of your own",
        ),
    ] {
        let value = format!("{value} {digits}");
        let command = [
            "token",
            "verify",
            "--key",
            KEY,
            "--log-key",
            LOG_KEY,
            &value,
        ];
        says(&command, 1, expect);
    }
    let unreadable = format!("can't be read ({missing}); check the path and its permissions");
    for (command, expect) in [
        (
            "admission check /nonexistent",
            format!("admission rules /nonexistent: {unreadable}"),
        ),
        (
            "admission name a.com --suffixes /nonexistent",
            format!("--suffixes: public suffix list /nonexistent: {unreadable}"),
        ),
        (
            "token make --key /nonexistent --domain a.example",
            format!("/nonexistent can't be read (`fedicensus token key --new` makes a key): {missing}"),
        ),
        (
            "admission name a\\b\u{ad}.com",
            r#""a\\b\xc2\xad.com": it contains U+00AD, an invisible character that no name may have; remove it"#.to_owned(),
        ),
        (
            "restore /nonexistent",
            format!("cannot read /nonexistent: {missing}"),
        ),
        (
            "explain social",
            "there is no database at /data/census.db: check the path, or start the daemon once, which creates it".to_owned(),
        ),
    ] {
        says(&command.split(' ').collect::<Vec<_>>(), 1, &expect);
    }
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    for command in [
        &["--help"][..],
        &["--version"],
        &["settings"],
        &["settings", "--markdown"],
        &["seccomp-profile"],
        &["completions", "bash"],
        &["admission", "name", "a.com"],
        &["admission", "name", "--json", "a.com"],
        &["admission", "check", "-"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = fedicensus(command, full.into());
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {told}");
        assert!(told.contains("No space left on device"), "{told}");
    }
}

#[test]
fn a_reader_who_has_gone_is_no_failure() {
    for command in [
        &["--help"][..],
        &["settings"],
        &["completions", "bash"],
        &["admission", "name", "a.com", "b.com"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = fedicensus(command, writer.into());
        assert_eq!(output.status.code(), Some(0), "{command:?}: {output:?}");
        assert!(output.stderr.is_empty(), "{command:?}: {output:?}");
    }
}

/// A data directory with two hosts. No daemon runs.
fn with_hosts(arguments: &[&str]) -> Output {
    let data = tempfile::tempdir().unwrap();
    let settings = data.path().join("fedicensus.toml");
    std::fs::write(&settings, "[lab]\nreserved_suffixes = true\n").unwrap();
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_fedicensus"))
            .args(arguments)
            .env_clear()
            .env("FEDICENSUS_DATA_DIR", data.path())
            .env("FEDICENSUS_CONFIG", &settings)
            .output()
            .unwrap()
    };
    let added = run(&["add", "https://a.lab.test/@x", "@x@b.lab.test"]);
    assert!(added.status.success(), "{added:?}");
    run(arguments)
}

#[test]
fn hosts_are_a_table_that_can_be_filtered() {
    let lines = |arguments: &[&str]| {
        let output = with_hosts(arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let all = lines(&["status", "--hosts"]);
    let names = all.lines().filter_map(|line| line.split_once(" "));
    let names: Vec<_> = names.map(|(name, _)| name).collect();
    assert_eq!(names, ["a.lab.test", "b.lab.test"]);
    for state in ["waiting", "discovered"] {
        assert_eq!(lines(&["status", "--hosts", "--state", state]), all);
    }
    assert!(!all.contains("discovered"), "{all}");
    let alive = ["status", "--hosts", "--state", "alive"];
    assert_eq!(lines(&alive), "no host\n");
    let none = ["status", "--hosts", "--software", "mastodon", "--json"];
    assert_eq!(lines(&none), "[]\n");
    // A filter of nothing would be ignored.
    let filtered = with_hosts(&["status", "--state", "alive"]);
    assert_eq!(filtered.status.code(), Some(2));
}

#[test]
fn a_part_that_is_missing_is_named_and_makes_the_exit_code() {
    let output = with_hosts(&["status"]);
    assert_eq!(output.status.code(), Some(3));
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told, "fedicensus: missing: daemon, gateway, launcher\n");
}

#[test]
fn what_people_paste_is_explained() {
    let output = with_hosts(&["explain", "https://a.lab.test/@somebody"]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.starts_with("a.lab.test: not listed"), "{told}");
}

#[test]
fn only_the_parts_help_shows_all_settings() {
    let help = |command: &str| {
        let output = fedicensus(&[command, "--help"], Stdio::piped());
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(help("run").contains("--checks-max"));
    let explain = help("explain");
    assert!(!explain.contains("--checks-max"), "{explain}");
    assert!(explain.contains("`fedicensus settings` lists them"));
    let short = fedicensus(&["run", "-h"], Stdio::piped()).stdout;
    assert!(short.split(|byte| *byte == b'\n').count() < 25);
}
