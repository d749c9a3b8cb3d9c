use std::os::unix::fs::PermissionsExt as _;

use clap::Parser;

use super::verify::Judged;
use super::*;

const SEED: &str = "0000000000000000000000000000000000000000000000000000000000000001";
const PUBLIC_KEY: &str = "4cb5abf6ad79fbf5abbccafcc269d85cd2651ed4b885b5869f241aedf0a5ba29";
const KEY_HASH: &str = "4a67330b803d5c88757afb9328615344a89c49839a07f1f76887ad62d06a1f57";
const LOG_KEY: &str = "cda2517e17dcba133eb0e71bf77473f94a77d7e61b1de4e1e64adfd0938d6182";
const OF_SIGSUM: &str = "test.sigsum.org 7eb7ebc84046d87b60a885e276bc24854e766dff5be1f21bac96b96eacd02a3d2028fab8d6cbecd7459dbfbb320a9d772c0afe42e9a38e86233e04266219030a";

/// The first second of 2026.
const NOW: UnixSeconds = UnixSeconds(1_767_225_600);

#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    command: TokenCommand,
}

fn parsed(arguments: &[&str]) -> Result<TokenCommand, clap::Error> {
    let line = [&["token"], arguments].concat();
    Line::try_parse_from(line).map(|line| line.command)
}

/// Makes a token with the seed `00…01`.
fn make(arguments: &[&str]) -> anyhow::Result<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, SEED).unwrap();
    let key = ["make", "--key", file.to_str().unwrap()];
    match parsed(&[&key, arguments].concat())? {
        TokenCommand::Make(make) => made(&make, NOW),
        other => panic!("{other:?}"),
    }
}

fn verify_at(line: &str, arguments: &[&str], now: UnixSeconds) -> anyhow::Result<Judged> {
    match parsed(&[&["verify", "-"], arguments].concat())? {
        TokenCommand::Verify(verify) => verify.judge(line.as_bytes(), now),
        other => panic!("{other:?}"),
    }
}

fn verify(line: &str, arguments: &[&str]) -> anyhow::Result<Judged> {
    verify_at(line, arguments, NOW)
}

#[track_caller]
fn refused<T: std::fmt::Debug>(what: anyhow::Result<T>, says: &str) {
    let said = format!("{:#}", what.unwrap_err());
    assert!(said.contains(says), "{said}");
}

const TEST_DOMAIN: [&str; 3] = ["--allow-test-domain", "--log-key", LOG_KEY];

#[test]
fn sigsums_known_token_is_made_and_is_good() {
    let made = make(&[
        "--domain",
        "test.sigsum.org",
        "--sigsum",
        "--log-key",
        LOG_KEY,
    ]);
    assert_eq!(made.unwrap(), OF_SIGSUM);
    for line in [
        OF_SIGSUM.to_owned(),
        format!("{OF_SIGSUM}\n"),
        // As `sigsum-token create -d` prints it.
        format!("sigsum-token: {OF_SIGSUM}\n"),
        format!("SIGSUM-TOKEN:{OF_SIGSUM} \r\n"),
    ] {
        for key in [["--key", PUBLIC_KEY], ["--txt", PUBLIC_KEY]] {
            let judged = verify(&line, &[&key[..], &TEST_DOMAIN].concat()).unwrap();
            assert!(judged.good, "{judged:?}");
            assert_eq!(judged.form, Some("sigsum"));
            assert_eq!(judged.domain.unwrap().as_str(), "test.sigsum.org");
            assert_eq!(judged.key_hash.as_deref(), Some(KEY_HASH));
        }
    }
}

#[test]
fn a_token_of_sigsums_form_needs_its_options_and_bears_no_others() {
    let key = ["--key", PUBLIC_KEY];
    refused(verify(OF_SIGSUM, &key), "whose secret key is public");
    let test = [&key[..], &["--allow-test-domain"]].concat();
    refused(verify(OF_SIGSUM, &test), "give it as --log-key HEX");
    let host = [&key[..], &TEST_DOMAIN, &["--host", "a.example"]].concat();
    refused(verify(OF_SIGSUM, &host), "leave out --purpose and --host");
    for arguments in [
        &["--domain", "a.example", "--sigsum"][..],
        &["--domain", "a.example", "--log-key", LOG_KEY],
        &[
            "--domain",
            "a.example",
            "--sigsum",
            "--log-key",
            LOG_KEY,
            "--host",
            "b.example",
        ],
        &[
            "--domain",
            "a.example",
            "--sigsum",
            "--log-key",
            LOG_KEY,
            "--purpose",
            "submit",
        ],
        &[
            "--domain",
            "a.example",
            "--sigsum",
            "--log-key",
            LOG_KEY,
            "--expires-in",
            "1",
        ],
    ] {
        assert!(make(arguments).is_err(), "{arguments:?}");
    }
}

#[test]
fn a_token_of_the_own_form_says_what_was_asked_for() {
    let made = make(&[
        "--domain",
        "Example.org",
        "--host",
        "social.example.org",
        "--purpose",
        "opt-out",
        "--expires-in",
        "60",
    ]);
    let value = made.unwrap();
    let begin = "v1 opt-out example.org social.example.org 1767225660 ";
    assert!(value.starts_with(begin), "{value}");
    let key = ["--key", PUBLIC_KEY];
    for line in [value.clone(), format!("Fedicensus-Token: {value}\r\n")] {
        let judged = verify(&line, &key).unwrap();
        assert_eq!(
            judged.text(),
            format!(
                "good: a token of the census's own form\n  domain    example.org\n  purpose   opt-out\n  host      social.example.org\n  expires   2026-01-01T00:01:00Z\n  key hash  {KEY_HASH}"
            )
        );
    }
}

#[test]
fn a_token_is_for_its_domain_to_submit_for_an_hour_unless_told_otherwise() {
    let value = make(&["--domain", "a.example"]).unwrap();
    let begin = "v1 submit a.example a.example 1767229200 ";
    assert!(value.starts_with(begin), "{value}");
}

#[test]
fn a_token_that_is_not_good_is_shown_with_the_reason() {
    let value = make(&["--domain", "example.org", "--host", "a.example.org"]).unwrap();
    let other = "e0863b18794d2150f3999590e0e508c09068b9883f05ea65f58cfc0827130e92";
    let at = |arguments: &[&str], now| {
        let judged = verify_at(&value, arguments, UnixSeconds(now)).unwrap();
        assert!(!judged.good);
        assert_eq!(judged.key_hash, None);
        assert_eq!(judged.host.unwrap().as_str(), "a.example.org");
        judged.reason.unwrap()
    };
    let key = ["--key", PUBLIC_KEY];
    let with = |more: [&'static str; 2]| [key, more].concat();
    for (reason, expect) in [
        (at(&key, NOW.0 + 3600), "expired 0 s ago"),
        (at(&key, NOW.0 - 90_000), "not valid for another"),
        (
            at(&with(["--purpose", "opt-in"]), NOW.0),
            "signed to submit, not to opt-in",
        ),
        (
            at(&with(["--host", "example.org"]), NOW.0),
            "not for example.org",
        ),
        (
            at(&["--key", other], NOW.0),
            "none of the domain's keys has signed this (1 tried",
        ),
        (
            at(&["--txt", "x", "--txt", other], NOW.0),
            "(1 tried; records without a valid key: 1;",
        ),
    ] {
        assert!(reason.contains(expect), "{reason}");
    }
}

#[test]
fn records_are_taken_bare_and_as_dig_prints_them() {
    let value = make(&["--domain", "a.example"]).unwrap();
    let (first, second) = PUBLIC_KEY.split_at(20);
    for record in [
        PUBLIC_KEY.to_owned(),
        format!("\"{PUBLIC_KEY}\""),
        format!(" \"{first}\" \"{second}\"\n"),
        format!("\"x\"\n\"{first}\" \"{second}\"\n\"y\""),
    ] {
        let judged = verify(&value, &["--txt", "other text", "--txt", &record]).unwrap();
        assert!(judged.good, "{record}");
    }
    let judged = verify(&value, &["--txt", &format!("{first} {second}")]).unwrap();
    assert!(!judged.good);
}

#[test]
fn what_is_no_token_is_said_to_be_none() {
    let key = ["--key", PUBLIC_KEY];
    refused(verify("", &key), "the token is empty");
    refused(verify("Sigsum-Token: \n", &key), "the token is empty");
    refused(verify("Fedicensus-Token:\n", &key), "the token is empty");
    refused(verify("v1 submit", &key), "not six words");
    refused(verify("v2 submit", &key), "not 128 hex digits");
    refused(verify("Authorization: Bearer x", &key), "another header");
    refused(
        verify(&format!("Fedicensus-Token: {OF_SIGSUM}"), &key),
        "Sigsum's form",
    );
}

#[test]
fn of_several_headers_the_first_of_a_tokens_counts() {
    let key = ["--key", PUBLIC_KEY];
    let value = make(&["--domain", "a.example"]).unwrap();
    let other = make(&["--domain", "b.example"]).unwrap();
    for line in [
        format!("Fedicensus-Token: {value}\r\nFedicensus-Token: {other}\r\n"),
        format!(
            "POST /submit HTTP/1.1\r\nHost: c.example:443\r\nfedicensus-token:{value}\r\nX: y\r\n"
        ),
        format!("\n\nFedicensus-Token: {value}\nSigsum-Token: {OF_SIGSUM}"),
    ] {
        let judged = verify(&line, &key).unwrap();
        assert!(judged.good, "{judged:?}");
        assert_eq!(judged.domain.unwrap().as_str(), "a.example", "{line}");
    }
    // The first header counts even if it holds no token.
    let line = format!("Fedicensus-Token: \nFedicensus-Token: {value}");
    refused(verify(&line, &key), "the token is empty");
    let lines = "Host: a.example\nAuthorization: Bearer x";
    refused(verify(lines, &key), "another header");
    refused(verify(&format!("{value}\n{value}"), &key), "six words");
}

#[test]
fn a_domain_with_a_port_is_no_header() {
    let key = ["--key", PUBLIC_KEY];
    let digits = "0".repeat(128);
    for domain in ["a.example:443", "https://a.example", "a.example:443/x"] {
        let more = "it has more than a host name (a scheme, port, path or user part)";
        refused(verify(&format!("{domain} {digits}"), &key), more);
        let own = format!("v1 submit {domain} a.example 1 {digits}");
        refused(verify(&own, &key), more);
    }
    refused(
        verify(&format!("[2001:db8::1] {digits}"), &key),
        "IP address",
    );
}

#[test]
fn a_domain_leaves_room_for_the_label_of_its_form() {
    let labels = format!("{0}.{0}.{0}.", "a".repeat(59));
    let domain = format!("{labels}{}.example", "b".repeat(242 - labels.len() - 8));
    let sigsum = ["--domain", &domain, "--sigsum", "--log-key", LOG_KEY];
    assert!(make(&sigsum).unwrap().starts_with(&domain));
    refused(
        make(&["--domain", &domain]),
        "the domain is too long: no DNS record can lie below it",
    );
}

#[test]
fn a_token_that_nobody_takes_is_not_made() {
    let foreign = ["--domain", "a.example", "--host", "b.example", "--purpose"];
    refused(
        make(&[&foreign[..], &["opt-out"]].concat()),
        "can't decide to opt-out",
    );
    refused(
        make(&[&foreign[..], &["opt-in"]].concat()),
        "can't decide to opt-in",
    );
    assert!(make(&[&foreign[..], &["submit"]].concat()).is_ok());
    for seconds in ["0", "86401", "1.5", "1h"] {
        refused(
            make(&["--domain", "a.example", "--expires-in", seconds]),
            "expires-in",
        );
    }
    assert!(make(&["--domain", "a.example", "--expires-in", "86400"]).is_ok());
    refused(make(&["--domain", "192.0.2.1"]), "it is an IP address");
}

#[test]
fn a_record_is_named_as_in_a_zones_file() {
    let domain = Host::parse("a.example").unwrap();
    for (form, domain, expect) in [
        (Form::Own, Some(&domain), "_fedicensus.a.example."),
        (Form::Own, None, "_fedicensus"),
        (Form::Sigsum, Some(&domain), "_sigsum_v1.a.example."),
        (Form::Sigsum, None, "_sigsum_v1"),
    ] {
        assert_eq!(record_name(form, domain), expect);
    }
}

#[test]
fn a_key_is_its_owners_alone_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    let made = key_file::make(&file).unwrap();
    let mode = file.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let content = std::fs::read(&file).unwrap();
    refused(key_file::make(&file), "no key is ever overwritten");
    assert_eq!(std::fs::read(&file).unwrap(), content);
    assert_eq!(key_file::read(&file).unwrap().public(), made.public());
    let other = key_file::make(&folder.path().join("other")).unwrap();
    assert_ne!(other.public(), made.public());
}

#[test]
fn a_link_that_leads_nowhere_is_no_place_for_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let (link, target) = (folder.path().join("link"), folder.path().join("target"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    refused(key_file::make(&link), "exists");
    assert!(!target.exists());
}

#[test]
fn a_key_file_that_cannot_be_used_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    refused(key_file::read(&file), "token key --new");
    refused(key_file::read(folder.path()), "is a folder");
    std::fs::write(&file, "hunter2").unwrap();
    let error = key_file::read(&file).unwrap_err();
    let said = format!("{error:#} {error:?}");
    assert!(said.contains(file.to_str().unwrap()), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    std::fs::write(&file, "0".repeat(1 << 20)).unwrap();
    refused(key_file::read(&file), "is longer than 16384 bytes");
}
