//! The program as a whole: its exit codes, its lines and its memory.

use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Output, Stdio};

use protocol::limits::LIST_BYTES_MAX;
use protocol::{
    Event, Host, ListFormat, ListOrder, ListOutcome, ListPath, PeersOutcome, ProbeReport,
};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::server::{HOST, World, answer, gzip, ok, parse, serve, write_list_order, write_order};

/// Total memory that a check may use. Its container has 64 MiB.
const RESIDENT_KIB_MAX: u64 = 32 * 1024;

/// Approximate size of a server's record in the largest public lists.
const LIST_RECORD_BYTES: usize = 700;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fedicensus-checker"));
    command
        .args(arguments)
        .env_clear()
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

async fn run(arguments: &[&str]) -> Output {
    command(arguments).output().await.unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn peers_end(outcome: PeersOutcome) -> Event {
    Event::PeersEnd {
        outcome,
        dropped: 0,
    }
}

fn list_order(path: &str, format: ListFormat, names_max: u32) -> ListOrder {
    ListOrder {
        path: ListPath::parse(path).unwrap(),
        format,
        names_max,
    }
}

const COMPLETE: Event = Event::Listed {
    outcome: ListOutcome::Complete,
    dropped: 0,
};

#[tokio::test]
async fn a_check_runs_through_its_egress_directory() {
    let served =
        serve(World::of("mastodon").with("/api/v1/instance/peers", ok(r#"["b.example"]"#)));
    let directory = served.directory.path();
    write_order(directory, &served.ca_pem, "ask");
    let output = run(&["--egress", text(directory), "--extra-roots", "--", HOST]).await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    let events = parse(&output.stdout);
    let outcome = served.outcome(events);
    let end = peers_end(PeersOutcome::Complete);
    assert_eq!(outcome.peers(), ("b.example".to_owned(), end));

    write_order(directory, &served.ca_pem, "skip");
    let output = run(&["--egress", text(directory), "--extra-roots", HOST]).await;
    let outcome = served.outcome(parse(&output.stdout));
    let end = peers_end(PeersOutcome::None);
    assert_eq!(outcome.peers(), (String::new(), end));
}

#[tokio::test]
async fn a_list_is_read_through_its_egress_directory() {
    let served = serve(World::empty().with("/l.csv", ok("domain,n\nb.example,1\n")));
    let directory = served.directory.path();
    let order = list_order("/l.csv", ListFormat::Csv, 10);
    write_list_order(directory, &served.ca_pem, &order);
    let output = run(&["--egress", text(directory), "--extra-roots", "--", HOST]).await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    let events = parse(&output.stdout);
    let hosts = vec![Host::parse("b.example").unwrap()];
    assert_eq!(events[1..3], [Event::Peers { hosts }, COMPLETE]);
    let requests = served.outcome(events).requests;
    assert_eq!(requests, ["/robots.txt", "/l.csv"]);
}

/// A compromised gateway could put roots there to decrypt the TLS of every check.
#[tokio::test] // S11
async fn roots_in_the_egress_directory_alone_are_a_fault() {
    let served = serve(World::of("mastodon"));
    let directory = served.directory.path();
    write_order(directory, &served.ca_pem, "ask");
    let output = run(&["--egress", text(directory), "--", HOST]).await;
    assert_eq!(output.status.code(), Some(70), "{output:?}");
    assert!(output.stdout.is_empty(), "no hello: {output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("ca.pem"), "{said}");
    // A dangling link counts as well.
    std::fs::remove_file(directory.join("ca.pem")).unwrap();
    std::os::unix::fs::symlink("/nothing", directory.join("ca.pem")).unwrap();
    let output = run(&["--egress", text(directory), "--", HOST]).await;
    assert_eq!(output.status.code(), Some(70), "{output:?}");
    assert_eq!(served.outcome(Vec::new()).requests, [""; 0]);
}

#[tokio::test]
async fn without_an_order_nothing_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(&["--egress", text(directory.path()), HOST]).await;
    assert_eq!(output.status.code(), Some(70));
    assert!(output.stdout.is_empty());
    let lines = output.stderr.iter().filter(|&&byte| byte == b'\n');
    assert_eq!(lines.count(), 1, "{output:?}");
}

#[tokio::test]
async fn wrong_usage_has_its_own_exit_code() {
    for arguments in [
        "",
        "localhost",
        "-- -flag.example",
        "a.example b.example",
        "--no-peers a.example",
        "--probe a.example",
        "--hold a.example",
        "--hold --probe",
        "--direct --extra-roots a.example",
        "--list /x --format csv a.example",
        "--direct --list /x a.example",
        "--direct --format csv a.example",
        "--direct --list /x --format xml a.example",
        "--direct --list //b.example/x --format csv a.example",
        "--direct --no-peers --list /x --format csv a.example",
    ] {
        let arguments: Vec<_> = arguments.split_whitespace().collect();
        let output = run(&arguments).await;
        assert_eq!(output.status.code(), Some(64), "{arguments:?}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(run(&["--help"]).await.status.code(), Some(0));
}

#[tokio::test]
async fn a_probe_prints_one_report() {
    let output = run(&["--probe"]).await;
    assert_eq!(output.status.code(), Some(0));
    let report = ProbeReport::parse(&output.stdout).unwrap();
    assert!(report.nofile > 0);
}

/// If it ended, an engine that is cleaned up would remove the image.
#[tokio::test]
async fn a_hold_waits_until_it_is_killed_and_prints_nothing() {
    let mut child = command(&["--hold"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id().unwrap();
    // It has lowered its limits, so it can only wait.
    let lowered = || {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let mut lines = limits.lines();
        let files = lines.find(|line| line.starts_with("Max open files"));
        files.is_some_and(|line| line.split_whitespace().nth(3) == Some("64"))
    };
    while !lowered() {
        tokio::task::yield_now().await;
    }
    child.start_kill().unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.signal(), Some(9));
    assert_eq!((output.stdout, output.stderr), (Vec::new(), Vec::new()));
}

/// A quarter of a million names of 64 bytes: a little less than 16 MiB.
fn longest_list() -> String {
    let mut list = String::from("[");
    for number in 0..250_000 {
        let comma = if number == 0 { "" } else { "," };
        write!(list, "{comma}\"h{number:06}.{}.example\"", "x".repeat(46)).unwrap();
    }
    list.push(']');
    list
}

/// The printed bytes, and the peak memory.
async fn printed_and_peak_kib(arguments: &[&str]) -> (Vec<u8>, u64) {
    let mut child = command(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id().unwrap());
    let mut stdout = child.stdout.take().unwrap();
    let mut printed = Vec::new();
    let mut peak_kib = 0;
    loop {
        // Read in pieces, so that the peak is read while the process runs; VmHWM never falls.
        let now = std::fs::read_to_string(&status).unwrap_or_default();
        let now = now.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = now.and_then(|value| value.trim().strip_suffix(" kB")?.parse().ok());
        peak_kib = peak_kib.max(now.unwrap_or(0));
        let mut piece = vec![0; 256 * 1024];
        let bytes = stdout.read(&mut piece).await.unwrap();
        if bytes == 0 {
            break;
        }
        printed.extend_from_slice(&piece[..bytes]);
    }
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
    assert!(peak_kib > 1024, "the peak was not seen");
    (printed, peak_kib)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_list_takes_little_memory() {
    let list = longest_list();
    assert!(list.len() <= 16 * 1024 * 1024, "{}", list.len());
    let served = serve(World::of("mastodon").with("/api/v1/instance/peers", ok(&list)));
    let directory = served.directory.path();
    write_order(directory, &served.ca_pem, "ask");
    let arguments = ["--egress", text(directory), "--extra-roots", HOST];
    let (lines, peak_kib) = printed_and_peak_kib(&arguments).await;
    let outcome = served.outcome(parse(&lines));
    let (names, end) = outcome.peers();
    // Names, quotes and commas take as much in the lines as in the list, and the frames a little
    // more than is left.
    let Event::PeersEnd {
        outcome: ended,
        dropped: 0,
    } = end
    else {
        panic!("{end:?}");
    };
    let count = names.split(' ').count();
    let bytes = lines.len();
    println!("{count} names, {ended:?}, {bytes} bytes, peak {peak_kib} KiB");
    assert!(count > 245_000, "{count}");
    assert!(bytes <= 16 * 1024 * 1024);
    assert!(peak_kib <= RESIDENT_KIB_MAX, "{peak_kib} KiB");
}

/// A list of the largest allowed size, in each format that is not simply split into lines.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_public_list_takes_little_memory() {
    let record = |number: u32| format!("h{number:07}.{}.example", "x".repeat(46));
    let padding = "y".repeat(LIST_RECORD_BYTES - 100);
    let json: fn(&str, &str) -> String =
        |name, padding| format!("{{\"domain\":\"{name}\",\"more\":\"{padding}\"}},");
    let csv: fn(&str, &str) -> String = |name, padding| format!("{name},\"{padding}\"\n");
    for (format, head, write, foot) in [
        (ListFormat::Json, "[", json, "0]"),
        (ListFormat::Csv, "domain,more\n", csv, ""),
    ] {
        let mut list = String::from(head);
        let mut number = 0;
        while list.len() + 2 * LIST_RECORD_BYTES < usize::try_from(LIST_BYTES_MAX).unwrap() {
            number += 1;
            list.push_str(&write(&record(number), &padding));
        }
        list.push_str(foot);
        let head = ["content-type: text/plain", "content-encoding: gzip"];
        let reply = answer("200 OK", &head, &gzip(list.as_bytes()));
        let served = serve(World::empty().with("/l", reply));
        let directory = served.directory.path();
        let order = list_order("/l", format, 250_000);
        write_list_order(directory, &served.ca_pem, &order);
        let arguments = ["--egress", text(directory), "--extra-roots", "--", HOST];
        let (lines, peak_kib) = printed_and_peak_kib(&arguments).await;
        let events = parse(&lines);
        let whole = |event: &Event| match event {
            Event::Listed { outcome, .. } => *outcome == ListOutcome::Complete,
            _ => false,
        };
        assert!(events.iter().any(whole), "{format:?}: {:?}", events.last());
        println!("{format:?}: {number} records, peak {peak_kib} KiB");
        assert!(peak_kib <= RESIDENT_KIB_MAX, "{format:?}: {peak_kib} KiB");
    }
}
