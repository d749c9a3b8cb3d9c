//! The program on the command line: exit codes, and errors of one line. Scenarios over a whole
//! census are in `tests/`.
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
    ends(&fedicensus(arguments, environment), arguments, code, says);
}

/// Asserts that the program ended with `code`, and that one of its outputs contains `says`.
#[track_caller]
fn ends(output: &Output, arguments: &[&str], code: i32, says: &str) {
    let said = said(output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(said.contains(says), "{arguments:?}: {said}");
}

#[test]
fn exit_codes_are_as_documented() {
    let nowhere = [("FEDICENSUS_DATA_DIR", "/nonexistent")];
    check(&["--version"], &[], 0, "fedicensus 0.1.0");
    check(&["completions", "bash"], &[], 0, "complete");
    check(&["settings"], &[], 0, "checks_max = \"\"");
    check(&["fly"], &[], 2, "unrecognized subcommand");
    check(&["run"], &[], 2, "setting `contact` is missing");
    let database = "/nonexistent/census.db";
    check(&["add", "a.example.org"], &nowhere, 1, database);
    let none = format!("there is no database at {database}");
    check(&["status"], &nowhere, 1, &none);
    check(&["health"], &nowhere, 3, "no daemon is running here");
}

#[test]
fn a_mistyped_log_level_is_refused_and_does_not_silence() {
    let refused = "setting `log` (flag): `warning` must be";
    check(&["status", "--log", "warning"], &[], 2, refused);
}

/// Commands over a separate data directory, without a daemon.
struct Data(tempfile::TempDir);

impl Data {
    fn new() -> Self {
        let data = Self(tempfile::tempdir().unwrap());
        std::fs::write(data.settings(), "[lab]\nreserved_suffixes = true\n").unwrap();
        data
    }

    fn settings(&self) -> std::path::PathBuf {
        self.0.path().join("fedicensus.toml")
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
            .env("FEDICENSUS_CONFIG", self.settings())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that does not read stdin may have ended.
        child.stdin.take().unwrap().write_all(stdin).ok();
        child.wait_with_output().unwrap()
    }

    fn check(&self, arguments: &[&str], code: i32, says: &str) {
        ends(&self.run(arguments, b""), arguments, code, says);
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
fn a_database_is_looked_at_whether_it_is_sound() {
    let data = Data::new();
    data.check(&["db", "check"], 1, "there is no database at");
    data.check(&["add", "a.lab.test"], 0, "1 taken");
    data.check(&["db", "check"], 0, "is sound: schema ");
    data.check(&["db", "check", "--quick"], 0, "is sound: schema ");
    let late = ["db", "check", "--within", "0"];
    data.check(&late, 1, "not checked to the end: pages and indexes");
    data.check(&late, 1, "allow more with --within");
    let mut bytes = std::fs::read(data.database()).unwrap();
    // The second page begins the table of hosts.
    bytes[4096..4200].fill(0xa5);
    std::fs::write(data.database(), bytes).unwrap();
    data.check(&["db", "check"], 1, "stop the daemon and restore a backup");
    data.check(&["db", "check"], 1, "census.db is not sound: ");
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
    data.check(&["explain", "b.lab.test"], 0, "waiting");
    let whole = data.run(&["restore", "-"], &streamed.stdout);
    assert!(whole.status.success(), "{whole:?}");
    assert!(said(&whole).contains("census.db.replaced"), "{whole:?}");
    data.check(&["explain", "a.lab.test"], 0, "waiting");
    data.check(&["explain", "b.lab.test"], 0, "unknown");
    data.check(&["restore", text(&file)], 0, "census.db.replaced-2");
}

#[test]
fn a_list_of_others_is_compared_with_the_published_one() {
    let data = Data::new();
    let public = data.0.path().join("public");
    std::fs::create_dir(&public).unwrap();
    let of = |arguments: &[&str], stdin: &[u8]| {
        let arguments = [arguments, &["--public-dir", text(&public)]].concat();
        data.run(&arguments, stdin)
    };
    data.check(&["add", "a.lab.test"], 0, "1 taken");
    let none = of(&["compare", "-"], b"a.lab.test");
    assert!(said(&none).contains("no list is published in"), "{none:?}");
    let dumped = of(&["dump"], b"");
    assert!(dumped.status.success(), "{dumped:?}");
    let compared = of(&["compare", "-"], b"# theirs\na.lab.test\nb.lab.test\n");
    let said = said(&compared);
    let counts = "0 in both lists, 0 only in ours, 2 only in theirs";
    assert!(said.starts_with(counts), "{said}");
    assert!(said.contains("only theirs: a.lab.test: "), "{said}");
    let json = of(&["compare", "-", "--json"], b"[\"b.lab.test\"]");
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["only_theirs"][0]["state"], "unknown");
}

#[test]
fn a_database_of_a_newer_version_is_refused_by_every_command_and_left_alone() {
    let data = Data::new();
    data.check(&["add", "a.lab.test"], 0, "1 taken");
    let mut newer = std::fs::read(data.database()).unwrap();
    // Where SQLite's header has `user_version`, in big-endian order.
    let schema = newer[63];
    let old = format!("census.db.schema-{schema}");
    let old = data.0.path().join(old);
    std::fs::copy(data.database(), &old).unwrap();
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
    // It can still be saved, and the copy that the error names is what helps.
    let kept = data.0.path().join("kept.db");
    data.check(&["backup", text(&kept)], 0, "schema 99");
    data.check(&["restore", text(&old)], 0, &format!("schema {schema}"));
    data.check(&["explain", "a.lab.test"], 0, "waiting");
}

#[test]
fn names_on_stdin_are_imported_and_opted_out_ones_stay_out() {
    let data = Data::new();
    data.check(&["opt-out", "left.lab.test"], 0, "opted out");
    let names = b"alive.lab.test\nleft.lab.test\nnot a name\n";
    let imported = data.run(&["import", "-"], names);
    assert_eq!(imported.status.code(), Some(0), "{imported:?}");
    let report = "1 taken, 1 known, 1 refused\nrefused not a name: ";
    assert!(said(&imported).contains(report), "{imported:?}");
    data.check(&["explain", "alive.lab.test"], 0, "waiting");
    data.check(&["explain", "left.lab.test"], 0, "its owner opted out");
    data.check(&["import", "/nonexistent"], 1, "cannot read /nonexistent");
}

/// Files for the commands about admission, which need no data directory.
struct Files(Data);

impl Files {
    fn new() -> Self {
        Self(Data::new())
    }

    fn path(&self, name: &str) -> String {
        text(&self.0.0.path().join(name)).to_owned()
    }

    fn write(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Asserts that a command of `admission`, given `stdin`, ends with `code`, prints `stdout`
    /// exactly, and prints `stderr` among its errors. A space ends an argument.
    #[track_caller]
    fn check(&self, command: &str, stdin: &str, code: i32, stdout: &str, stderr: &str) {
        let arguments = [&["admission"], &*words(command)].concat();
        let output = self.0.run(&arguments, stdin.as_bytes());
        assert_eq!(String::from_utf8_lossy(&output.stdout), stdout);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains(stderr), "{told}");
        assert!(!stderr.is_empty() || told.is_empty(), "{told}");
        assert!(!self.0.database().exists());
    }
}

fn words(command: &str) -> Vec<&str> {
    command.split(' ').collect()
}

#[test]
fn rules_are_tried_on_requests_without_a_database() {
    let files = Files::new();
    let list = files.write("list.dat", "com\n*.example\n!www.example\n");
    let rules = format!("domain a.com 1 # together\npublic {list} 1\n");
    let rules = files.write("rules", &rules);
    let answer = |allow: bool, rule: &str, counter: &str, reason: &str| {
        let count = u32::from(!allow);
        format!(
            "{{\"allow\":{allow},\"rule\":\"{rule}\",\"counter\":\"{counter}\",\"count\":{count},\"limit\":1,\"reason\":\"{reason}\"}}\n"
        )
    };
    let room = "its counter has room";
    let none = "its counter has no room before the next window";
    let requests = "{\"t\":0,\"domain\":\"x.a.com\"}\n{\"t\":0,\"domain\":\"y.a.com\"}\n{\"t\":0,\"domain\":\"www.example\"}\n{\"t\":86400,\"domain\":\"a.com\",\"key_hash\":null}";
    let answers = [
        answer(true, "domain", "a.com", room),
        answer(false, "domain", "a.com", none),
        answer(true, "public", "www.example", room),
        answer(true, "domain", "a.com", room),
    ]
    .concat();
    let command = format!("try --rules {rules}");
    files.check(&command, requests, 0, &answers, "");

    // A list other than the one that the rules name, which need not exist.
    let elsewhere = files.write("elsewhere", "public /nonexistent/list.dat 1\n");
    let command = format!("try --rules {elsewhere}");
    let request = "{\"t\":0,\"domain\":\"a.test.sigsum.org\"}\n";
    files.check(&command, request, 1, "", "/nonexistent/list.dat");
    let other = files.write("other.dat", "test.sigsum.org\n");
    let command = format!("{command} --suffixes {other}");
    let refused = "{\"allow\":false,\"rule\":null,\"counter\":null,\"count\":null,\"limit\":null,\"reason\":\"it is in test.sigsum.org, whose private key is published\"}\n";
    files.check(&command, request, 0, refused, "");
    let command = format!("{command} --allow-test-domain");
    let allowed = answer(true, "public", "a.test.sigsum.org", room);
    files.check(&command, request, 0, &allowed, "");
    files.check(&command, "", 0, "", "");
    let full = std::fs::File::options().write(true).open("/dev/full");
    let requests = std::fs::File::open(files.write("requests", request)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_fedicensus"))
        .arg("admission")
        .args(words(&command))
        .env_clear()
        .stdin(requests)
        .stdout(full.unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = "fedicensus: the answers can't be written: No space left on device (os error 28)\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), told);
    let wrong = "{\"allow\":false,\"rule\":null,\"counter\":null,\"count\":null,\"limit\":null,\"reason\":\"line 1: it is not a request: t is missing\"}\n";
    let said = "fedicensus: line 1: it is not a request: t is missing\nfedicensus: 1 line(s) were no requests";
    let requests = format!("{{}}\n{request}");
    let answers = format!("{wrong}{allowed}");
    files.check(&command, &requests, 1, &answers, said);
}

#[test]
fn rules_are_looked_over_line_by_line() {
    let files = Files::new();
    let rules = files.write(
        "rules",
        "key AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA 5\ndomain Räka.Example 0\npublic /nonexistent/list.dat 20",
    );
    let well = format!(
        "{rules}: well-formed: 1 key(s), 1 domain(s), 20 a registered domain and day by the public suffixes in /nonexistent/list.dat\n"
    );
    files.check(&format!("check {rules}"), "", 0, &well, "");
    let key = "a".repeat(64);
    let parsed = format!(
        "{{\"keys\":[{{\"key_hash\":\"{key}\",\"limit\":5}}],\"domains\":[{{\"domain\":\"xn--rka-qla.example\",\"limit\":0}}],\"public\":{{\"file\":\"/nonexistent/list.dat\",\"limit\":20}}}}\n"
    );
    files.check(&format!("check {rules} --json"), "", 0, &parsed, "");

    let wrong = files.write("wrong", "domain a.com 1\r\ndomain A.com 2\n\nkey x\n");
    let second = "line 1 has the same item; keep one of them";
    let third = "it has 2 field(s) instead of three: `key HEX LIMIT`, `domain NAME LIMIT` or `public FILE LIMIT`";
    let told = format!(
        "fedicensus: {wrong}:2: {second}: \"domain A.com 2\"\nfedicensus: {wrong}:4: {third}: \"key x\"\nfedicensus: admission rules {wrong}: 2 line(s) to correct\n"
    );
    for command in ["check", "try --rules"] {
        files.check(&format!("{command} {wrong}"), "{\"t\":0}", 1, "", &told);
    }
    let errors = format!(
        "{{\"errors\":[{{\"line\":2,\"text\":\"domain A.com 2\",\"problem\":\"{second}\"}},{{\"line\":4,\"text\":\"key x\",\"problem\":\"{third}\"}}]}}\n"
    );
    files.check(&format!("check --json {wrong}"), "", 1, &errors, "");
    let unreadable = "admission rules /nonexistent: can't be read";
    files.check("check /nonexistent", "", 1, "", unreadable);
    files.check("check", "", 2, "", "Usage");
    files.check("try", "", 2, "", "--rules");
}

#[test]
fn rules_may_come_from_standard_input_where_no_requests_do() {
    let files = Files::new();
    let rules = files.write("rules", "domain a.com 1");
    for input in ["-", "/dev/stdin"] {
        let well = format!("{input}: well-formed: 0 key(s), 1 domain(s), no public line\n");
        files.check(&format!("check {input}"), "domain a.com 1", 0, &well, "");
    }
    let unreadable = "{\"errors\":[{\"line\":null,\"text\":null,\"problem\":\"admission rules /: is not a regular file; name a file\"}]}\n";
    files.check("check --json /", "", 1, unreadable, "");
    let with_suffixes = format!("try --rules {rules} --suffixes -");
    for (command, option) in [("try --rules -", "--rules"), (&with_suffixes, "--suffixes")] {
        let told =
            format!("fedicensus: {option} -: standard input holds the requests; name a file\n");
        files.check(command, "{\"t\":0}", 2, "", &told);
    }
}

#[test]
fn names_are_shown_as_the_rules_compare_them() {
    let files = Files::new();
    let names = "name A.b.Bücher.co.UK. co.uk ck www.ck";
    let shown = "a.b.xn--bcher-kva.co.uk\tco.uk\txn--bcher-kva.co.uk\nco.uk\tco.uk\t-\nck\t-\t-\nwww.ck\tck\twww.ck\n";
    files.check(names, "", 0, shown, "");
    let told = "fedicensus: \"1.2.3.4\": it is an IP address, not a name\n";
    let command = "name 1.2.3.4 a.com";
    files.check(command, "", 1, "a.com\tcom\ta.com\n", told);
    let shown = "[{\"input\":\"1.2.3.4\",\"name\":null,\"public_suffix\":null,\"registered_domain\":null,\"reason\":\"it is an IP address, not a name\"},\
                 {\"input\":\"a.com\",\"name\":\"a.com\",\"public_suffix\":\"com\",\"registered_domain\":\"a.com\",\"reason\":null}]\n";
    files.check(&format!("{command} --json"), "", 1, shown, told);
    let list = files.write("list.dat", "a.com\n");
    let command = format!("name b.a.com com --suffixes {list}");
    files.check(&command, "", 0, "b.a.com\ta.com\tb.a.com\ncom\t-\t-\n", "");
    // The census's own list, replaced by a file.
    files.write("public_suffix_list.dat", "a.com\n");
    let missing = "is missing or out of order";
    files.check("name a.com", "", 2, "", missing);
    let rules = files.write("rules", "public default 1\n");
    files.check(&format!("try --rules {rules}"), "", 2, "", missing);
}

/// The output of `minisign -V` for the index in `public`, verified with the key in `key`. `None`
/// without that program, unless it is required.
fn verified(public: &Path, key: &str) -> Option<bool> {
    let mut minisign = Command::new("minisign");
    minisign.args(["-V", "-p", key, "-m", "index.json"]);
    let output = kit::output(minisign.current_dir(public.join("data")))?;
    Some(output.status.success())
}

#[test]
fn no_command_makes_a_push_database() {
    let data = Data::new();
    data.check(&["key", "rotate", "--push"], 1, "no new key was put into");
    data.check(&["backup", "--push", "-"], 1, "no backup of");
    // What a backup that failed leaves behind.
    let not_restored = "was not restored from standard input";
    data.check(&["restore", "--push", "-"], 1, not_restored);
    assert!(!data.0.path().join("push.db").exists());
}

#[test]
fn what_is_published_is_signed_and_readers_can_follow_a_new_key() {
    let data = Data::new();
    let public = data.0.path().join("public");
    std::fs::create_dir(&public).unwrap();
    let dump = ["dump", "--public-dir", text(&public)];
    let published = publish::current(&public);
    let publish = || data.check(&dump, 0, "published 0 names");
    data.check(&["key", "rotate"], 1, "signing.key is missing");
    data.check(&["add", "a.lab.test"], 0, "1 taken");
    publish();
    let first = std::fs::read_to_string(published.join("data/fedicensus.pub")).unwrap();
    assert_eq!(data.run(&["key", "show"], b"").stdout, first.as_bytes());
    let Some(is_signed) = verified(&published, "fedicensus.pub") else {
        return;
    };
    assert!(is_signed);

    data.check(&["key", "rotate"], 0, "signed by the old one");
    publish();
    assert_eq!(verified(&published, "fedicensus.pub"), Some(true));
    assert_eq!(verified(&published, "fedicensus-old.pub"), Some(false));
    let old = std::fs::read_to_string(published.join("data/fedicensus-old.pub")).unwrap();
    assert_eq!(old, first);
    let handover = Command::new("minisign")
        .args(["-V", "-p", "fedicensus-old.pub", "-m", "fedicensus.pub"])
        .current_dir(published.join("data"))
        .output()
        .unwrap();
    assert!(handover.status.success(), "{}", said(&handover));

    let stolen = ["key", "rotate", "--stolen"];
    data.check(&stolen, 0, "the old key did not sign it");
    publish();
    assert_eq!(verified(&published, "fedicensus.pub"), Some(true));
    let handover = published.join("data/fedicensus.pub.minisig");
    assert!(
        !handover.exists(),
        "nothing the old key signed is kept with the new one"
    );

    std::fs::write(data.0.path().join("signing.key"), "").unwrap();
    data.check(&["key", "show"], 1, "signing.key: is empty");
    data.check(&dump, 1, "is not signed");
    assert_eq!(verified(&published, "fedicensus.pub"), Some(false));
}
