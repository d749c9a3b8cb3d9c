//! `fedicensus token` on the command line: what it prints where, and exit codes.
#![expect(
    clippy::unwrap_used,
    reason = "a test that can't start the program fails"
)]

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

fn token(arguments: &[&str], stdin: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fedicensus"))
        .arg("token")
        .args(arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read stdin may have ended.
    child.stdin.take().unwrap().write_all(stdin).ok();
    child.wait_with_output().unwrap()
}

/// Its standard output if it succeeds.
fn said(arguments: &[&str], stdin: &str) -> String {
    let output = token(arguments, stdin.as_bytes());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    assert_eq!(errors, "", "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn fails(arguments: &[&str], stdin: &str, code: i32, says: &str) {
    let output = token(arguments, stdin.as_bytes());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
    assert!(errors.contains(says), "{arguments:?}: {errors}");
}

#[test]
fn a_key_and_a_token_are_made_and_the_token_is_good() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    let file = file.to_str().unwrap();
    let made = said(&["key", "--new", file, "--domain", "example.org"], "");
    let shown = said(&["key", file, "--domain", "example.org"], "");
    let (first, rest) = made.split_once('\n').unwrap();
    assert!(first.starts_with(&format!("made {file}:")), "{made}");
    assert_eq!(rest, shown);
    let before = "TXT record  _fedicensus.example.org. IN TXT ";
    let record = shown.lines().find_map(|line| line.strip_prefix(before));
    let record = record.unwrap();
    let value = said(&["make", "--key", file, "--domain", "example.org"], "");
    assert_eq!(value.lines().count(), 1, "{value}");
    let verified = said(&["verify", "--txt", record], &value);
    assert!(verified.starts_with("good: "), "{verified}");
    let again = said(&["verify", value.trim(), "--txt", record], "");
    assert_eq!(again, verified);
    let other = ["verify", "--txt", "none", "--host", "a.example"];
    let refused = "fedicensus: the token is not good: the token was signed for example.org";
    fails(&other, &value, 1, refused);
    fails(&["key", "--new", file], "", 1, "no key is ever overwritten");
    fails(&["key", &format!("{file}.pub")], "", 1, "can't be read");

    // No output contains the secret's words.
    let content = std::fs::read_to_string(file).unwrap();
    let lines = content.lines();
    let secrets: Vec<_> = lines.filter(|line| !line.starts_with("-----")).collect();
    assert!(secrets.len() > 3);
    for secret in secrets {
        assert!(!format!("{made}{value}{verified}").contains(secret));
    }
}

#[test]
fn programs_get_json_and_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, format!("{:064x}\n", 1)).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let file = file.to_str().unwrap();
    // The file is used anyway: some secret stores provide files like this.
    let output = token(&["key", file, "--json"], b"");
    assert!(String::from_utf8_lossy(&output.stderr).contains("chmod 600"));
    let key: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let hash = "4a67330b803d5c88757afb9328615344a89c49839a07f1f76887ad62d06a1f57";
    assert_eq!(key["key_hash"], hash);
    assert_eq!(key["txt_name"], "_fedicensus");
    let public = key["public_key"].as_str().unwrap();
    let made = token(&["make", "--key", file, "--domain", "a.example"], b"");
    let value = String::from_utf8(made.stdout).unwrap();
    let good = said(&["verify", "--key", public, "--json"], &value);
    let good: serde_json::Value = serde_json::from_str(&good).unwrap();
    assert_eq!(good["good"], true);
    assert_eq!(good["purpose"], "submit");
    let opt_in = ["verify", "--key", public, "--purpose", "opt-in", "--json"];
    let bad = token(&opt_in, value.as_bytes());
    assert_eq!(bad.status.code(), Some(1));
    let bad: serde_json::Value = serde_json::from_slice(&bad.stdout).unwrap();
    assert_eq!(bad["good"], false);
    assert!(bad["reason"].as_str().unwrap().contains("opt-in"));

    let none = |value: &str, reason: &str| {
        let output = token(&["verify", "--key", public, "--json"], value.as_bytes());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
        let expect = format!(
            "{{\"good\":false,\"reason\":\"{reason}\",\"form\":null,\"domain\":null,\"purpose\":null,\"host\":null,\"expires\":null,\"key_hash\":null}}\n"
        );
        assert_eq!(String::from_utf8_lossy(&output.stdout), expect);
    };
    none("", "the token is empty");
    let one_label = format!("social {}", "0".repeat(128));
    none(
        &one_label,
        "the token's domain can't be used: it has only one label",
    );
    let long = " ".repeat(10_000);
    none(
        &long,
        "no token was read from standard input: it is longer than 8192 bytes",
    );
}

#[test]
fn wrong_usage_is_said_to_be_that() {
    fails(&["verify", "x"], "", 2, "required");
    let short_key = ["verify", "x", "--key", "00"];
    fails(&short_key, "", 2, "it is not 64 hex digits");
    let make = ["make", "--key", "/nonexistent", "--domain", "a.example"];
    fails(&make[..3], "", 2, "--domain");
    fails(&make, "", 1, "/nonexistent");
    let verify = ["verify", "--txt", "x"];
    fails(&verify, "no token", 1, "not 128 hex digits");
    // A truncated input would be read as its first part.
    let long = " ".repeat(10_000);
    fails(&verify, &long, 1, "it is longer than");
}
