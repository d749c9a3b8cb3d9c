//! Rules and lists in force, through the command line.
#![expect(
    clippy::unwrap_used,
    reason = "a test that can't start the program fails"
)]

use std::path::PathBuf;
use std::process::{Command, Output};

/// Commands over a separate data directory, with files of rules and lists.
struct Data(tempfile::TempDir);

impl Data {
    fn new(rules: &str, deny: &str) -> Self {
        let data = Self(tempfile::tempdir().unwrap());
        std::fs::write(data.file("rules"), rules).unwrap();
        std::fs::write(data.file("deny"), deny).unwrap();
        std::fs::write(data.file("trial.toml"), "[lab]\ntest_domain = true\n").unwrap();
        data
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_fedicensus"))
            .args(arguments)
            .env_clear()
            .env("FEDICENSUS_DATA_DIR", self.0.path())
            .env("FEDICENSUS_PUBLIC_DIR", self.0.path())
            .env("FEDICENSUS_CONTACT", "https://example.org/")
            .env("FEDICENSUS_ADMISSION_RULES", self.file("rules"))
            .env("FEDICENSUS_DENY_LIST", self.file("deny"))
            .output()
            .unwrap()
    }

    #[track_caller]
    fn check(&self, arguments: &[&str], code: i32, says: &[&str]) {
        let output = self.run(arguments);
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        for part in says {
            assert!(said.contains(part), "{arguments:?}: {part}: {said}");
        }
    }
}

#[test]
fn the_operator_is_held_to_his_own_bans_and_told_why() {
    let data = Data::new("domain farm.net 0\n", "bad.net # a made-up farm\n");
    let names = ["add", "a.farm.net", "x.bad.net", "good.net"];
    let told = [
        "1 taken, 0 known, 2 refused",
        "refused a.farm.net: the rules admit nobody by `farm.net`",
        "refused x.bad.net: the operator's deny-list has `bad.net`: a made-up farm",
    ];
    data.check(&names, 0, &told);
    data.check(&["add", "x.bad.net"], 1, &["0 taken"]);
    // Standard input is empty.
    let waits = ["no verdict yet", "waiting"];
    data.check(&["explain", "good.net", "-"], 0, &waits);
    let denied =
        "the operator of this census denies `bad.net` and all names below it: a made-up farm";
    data.check(&["explain", "x.bad.net"], 0, &["not listed", denied]);
}

#[test]
fn rules_that_are_wrong_are_no_start_and_all_of_it_is_told() {
    let data = Data::new("public default 20\ndomain x\nkey y 1\n", "*.bad.net\n");
    for command in [&["run"][..], &["add", "good.net"]] {
        data.check(command, 2, &["/rules:2: ", "/rules:3: ", "/deny:1: "]);
    }
    std::fs::remove_file(data.file("rules")).unwrap();
    data.check(&["run"], 2, &["admission rules", "/rules: can't be read"]);
}

#[test]
fn daemon_and_intake_warn_at_start_while_the_test_domain_is_taken() {
    let data = Data::new("not a rule\n", "");
    let trial = data.file("trial.toml").display().to_string();
    let on = ["--config", &trial];
    // Neither gets beyond its start: the rules are invalid, and a folder is no socket.
    let run_dir = data.file("run");
    std::fs::create_dir_all(run_dir.join("intake-http/http.sock")).unwrap();
    let run_dir = run_dir.display().to_string();
    let warning = ["WARN", "test.sigsum.org"];
    data.check(&[&["run"], &on[..]].concat(), 2, &warning);
    let intake = ["intake", "--run-dir", &run_dir];
    data.check(&[&intake[..], &on].concat(), 1, &warning);
    for off in [&["run"][..], &intake] {
        let output = data.run(off);
        let said = [output.stdout, output.stderr].concat();
        assert!(!String::from_utf8_lossy(&said).contains("test.sigsum.org"));
    }
}

#[test]
fn without_a_daemon_there_is_nothing_to_reload() {
    let data = Data::new("", "");
    data.check(&["admission", "reload"], 3, &["no daemon is running here"]);
}

#[test]
fn what_is_held_is_told_with_its_reason_and_what_was_decided_is_kept() {
    let data = Data::new("public default 20\n", "");
    let farm: Vec<_> = (0..12).map(|n| format!("n{n}.farm.net")).collect();
    let add: Vec<_> = std::iter::once("add")
        .chain(farm.iter().map(String::as_str))
        .collect();
    data.check(&add, 0, &["12 taken"]);
    let decide = |verb, domain, reason| ["groups", verb, domain, "--reason", reason];
    data.check(&decide("allow", "good.net", "mine"), 0, &["its 0 hosts"]);
    let held = "farm.net: 12 hosts, 12 hosts held back, 0 of at most 200 with a place";
    data.check(&["groups", "list", "--held"], 0, &[held]);
    // No daemon runs.
    data.check(
        &["status"],
        3,
        &["groups     1 held with 12 hosts held back, 0 denied"],
    );
    let why = "not listed, because its group `farm.net` has 12 hosts: n3.farm.net joined when";
    let evidence = "named by 0 of 2 independent sources for a week, responded to 0 of 2 checks";
    data.check(&["explain", "n3.farm.net"], 0, &[why, evidence]);

    let belongs = "n3.farm.net belongs to the group farm.net";
    data.check(&decide("deny", "n3.farm.net", "x"), 1, &[belongs]);
    data.check(&decide("deny", "farm.net", " "), 1, &["the reason must be"]);
    data.check(&["groups", "deny", "farm.net"], 2, &["--reason"]);
    data.check(
        &["groups", "limit", "farm.net", "0", "--reason", "x"],
        2,
        &["0 is not in"],
    );
    let denied = "farm.net: denied; no more checks of its 12 hosts";
    let undo = "`fedicensus decisions undo g2` undoes it";
    data.check(&decide("deny", "farm.net", "a farm"), 0, &[denied, undo]);
    let why = "denies its group `farm.net`: a farm";
    data.check(&["explain", "n3.farm.net"], 0, &["not listed", why]);
    data.check(&decide("forget-decision", "farm.net", "gone"), 0, &[]);
    let both = ["decision forgotten: gone", "denied: a farm (operator"];
    data.check(&["groups", "show", "farm.net"], 0, &both);
    let facts = [
        "  hosts       12 known, 0 responding, 0 listed, 12 held back",
        "  named by    no independent source",
        "  names       n11.farm.net, n10.farm.net, n9.farm.net, n8.farm.net, n7.farm.net",
        "  deny        no host is checked or listed; the list loses 0 hosts",
    ];
    data.check(&["groups", "show", "https://farm.net/@a"], 0, &facts);
    data.check(
        &["groups", "list", "--json"],
        0,
        &["{\"domain\":\"farm.net\",\"hosts\":12,\"held\":true,\"held_back\":12,\"decision\":\"none\",\"a_day\":null,\"reason\":null,\"decided_at\":null}"],
    );
}
