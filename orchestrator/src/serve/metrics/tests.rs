//! The page and its server, over a census of a few rows and simulated parts.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use census::state::{Record, State, Verdict};
use census::time::Timestamp;
use launcher::LauncherClient;
use protocol::container::{End, FaultKind, Killed, LaunchFault};
use protocol::egress::{Account, FailedSide};
use protocol::{DeadReason, Host};
use report::ReportFault;
use store::{Store, StoreError};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::http::{CONNECTION_TIME_MAX, HEAD_TIME_MAX, converse};
use super::page::{ANSWER_WITHIN, Source};
use super::survey::{Places, Surveyor, WAIT_MAX};
use crate::check::services::Services;
use crate::check::services::tests::services;
use crate::daemon::Live;
use crate::ground::fault::Fault;
use crate::ground::meters::labels::Dumped;
use crate::ground::meters::{Kind, labels};
use crate::publish::PublishError;
use crate::serve::control::Handler;

const GATEWAY: &str = "{\"status\":{\"version\":\"0.1.0\",\"families\":[\"v4\"],\"open\":3,\"opens_total\":70,\"dials_total\":60,\"lab\":false}}\n";
const LAUNCHER: &str = "{\"status\":{\"version\":\"0.1.0\",\"engine\":null,\"trouble\":\"no engine\",\"warnings\":[\"cpu\"],\"running\":2,\"launches_total\":50,\"reaped_total\":4}}\n";

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Answers(&'static str),
    Hangs,
    Away,
}

struct Rig {
    _dir: TempDir,
    _store: Store,
    services: Services,
    source: Source,
}

fn part(path: &Path, part: Part) {
    if part == Part::Away {
        return;
    }
    let listener = UnixListener::bind(path).unwrap();
    tokio::spawn(async move {
        let mut held = Vec::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            stream.read_line(&mut String::new()).await.unwrap();
            match part {
                Part::Answers(line) => stream.write_all(line.as_bytes()).await.unwrap(),
                Part::Hangs | Part::Away => held.push(stream),
            }
        }
    });
}

impl Rig {
    fn new(gateway: Part, launcher: Part) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("census.db");
        let store = store::open(&database).unwrap();
        let ways = ["gateway.sock", "launcher.sock"].map(|name| dir.path().join(name));
        part(&ways[0], gateway);
        part(&ways[1], launcher);
        let [gateway, launcher] = ways;
        let services = Services {
            launcher: LauncherClient::socket(launcher),
            ..services(&store, &gateway)
        };
        let live = Live::new(services.now(), services.meters.clone());
        let (orders, _) = mpsc::channel(1);
        let handler = Handler::with_daemon(&services, orders, Arc::new(live));
        let places = Places {
            database,
            public: dir.path().to_owned(),
        };
        let surveyor = Surveyor::new(store.reader().unwrap(), places, services.clock.clone());
        Self {
            source: Source::new(handler, &services, surveyor),
            _dir: dir,
            _store: store,
            services,
        }
    }

    fn well() -> Self {
        Self::new(Part::Answers(GATEWAY), Part::Answers(LAUNCHER))
    }

    async fn page(&self) -> String {
        self.source.page().await.unwrap()
    }

    async fn says(&self, lines: &[&str]) {
        let page = self.page().await;
        for line in lines {
            let found = page.lines().any(|found| found == *line);
            assert!(found, "`{line}` is not in\n{page}");
        }
    }
}

fn dead(reason: DeadReason) -> Verdict {
    Verdict::Dead {
        reason,
        status: Some(500),
        to: Some("astray.example".to_owned()),
    }
}

fn alive(software: &str) -> Verdict {
    Verdict::Alive(kit::software(software, "chosen by its owner"))
}

#[tokio::test]
async fn all_that_the_table_has_is_told_as_it_stands_there_and_nothing_else() {
    let page = Rig::well().page().await;
    let mut expected = String::new();
    for metric in super::page::all() {
        let kind = metric.kind.as_str();
        let (name, help) = (metric.name, metric.help);
        expected.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }
    let heads: String = page
        .lines()
        .filter(|line| line.starts_with('#'))
        .flat_map(|line| [line, "\n"])
        .collect();
    assert_eq!(heads, expected);
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let (name, rest) = series.split_once('{').unwrap_or((series, ""));
        let metric = super::page::all()
            .filter(|metric| name.starts_with(metric.name))
            .max_by_key(|metric| metric.name.len())
            .unwrap();
        let found: BTreeSet<_> = rest
            .split(',')
            .filter_map(|pair| pair.split_once('='))
            .map(|(label, _)| label)
            .filter(|label| *label != "le")
            .collect();
        assert_eq!(found, metric.labels.iter().copied().collect(), "{line}");
    }
}

/// The conventions of prometheus.io, which promtool checks in part.
#[test]
fn names_say_what_they_count_and_in_which_unit() {
    let mut names = BTreeSet::new();
    for metric in super::page::all() {
        let name = metric.name;
        assert!(names.insert(name), "{name} stands twice");
        assert!(name.starts_with("fedicensus_"), "{name}");
        let is_counter = metric.kind == Kind::Counter;
        assert_eq!(name.ends_with("_total"), is_counter, "{name}");
        let of_time = ["_time_", "_timestamp_", "_age_", "_duration_", "_overdue_"];
        let is_of_time = of_time.iter().any(|word| name.contains(word));
        assert_eq!(name.ends_with("_seconds"), is_of_time, "{name}");
        let is_sentence = metric.help.ends_with('.') && !metric.help.contains('|');
        assert!(is_sentence, "{name}");
    }
}

#[tokio::test]
async fn what_is_counted_is_told_and_status_has_the_same() {
    let rig = Rig::well();
    let meters = &rig.services.meters;
    meters.verdict(&alive("mastodon"), Timestamp(1_700_000_000_500));
    meters.verdict(&dead(DeadReason::Tls), Timestamp(0));
    meters.verdict(&dead(DeadReason::NoSuchName), Timestamp(0));
    meters.verdict(&Verdict::Gone, Timestamp(0));
    meters.fault(&ReportFault::NetworkLost.into());
    meters.fault(&Fault::Launch(LaunchFault {
        kind: FaultKind::ImageMissing,
        message: String::new(),
    }));
    let end = End {
        exit_code: 137,
        out_of_memory: true,
        killed: Some(Killed::Deadline),
        millis: 1500,
    };
    meters.container(&end, Duration::from_secs(2));
    meters.account(&Account {
        connections: 3,
        bytes_up: 100,
        bytes_down: 9000,
        sni_refused: 0,
        failed: FailedSide::None,
        budget_hit: None,
        up: true,
    });
    meters.dump(Dumped::HeldBack);
    rig.says(&[
        "fedicensus_verdicts_total{reason=\"none\",verdict=\"alive\"} 1",
        "fedicensus_verdicts_total{reason=\"tls\",verdict=\"dead\"} 1",
        "fedicensus_verdicts_total{reason=\"timeout\",verdict=\"dead\"} 0",
        "fedicensus_last_alive_timestamp_seconds 1700000000.5",
        "fedicensus_faults_total{kind=\"network_lost\"} 1",
        "fedicensus_faults_total{kind=\"image_missing\"} 1",
        "fedicensus_faults_total{kind=\"store\"} 0",
        "fedicensus_check_phase_duration_seconds_sum{phase=\"running\"} 1.5",
        "fedicensus_check_phase_duration_seconds_sum{phase=\"launching\"} 0.5",
        "fedicensus_containers_killed_total{why=\"deadline\"} 1",
        "fedicensus_containers_out_of_memory_total 1",
        "fedicensus_gateway_bytes_total{direction=\"down\"} 9000",
        "fedicensus_gateway_connections_total 3",
        "fedicensus_dumps_total{outcome=\"held_back\"} 1",
        "fedicensus_dump_held_back 1",
        "fedicensus_dump_failed 1",
        // Reported by the parts.
        "fedicensus_gateway_dials_total 60",
        "fedicensus_gateway_family_up{family=\"v4\"} 1",
        "fedicensus_gateway_family_up{family=\"v6\"} 0",
        "fedicensus_launcher_launches_total 50",
        "fedicensus_launcher_unfit 1",
        "fedicensus_launcher_warnings 1",
    ])
    .await;
    let ended: Vec<_> = meters.ended().into_iter().collect();
    let expect = [("alive", 1), ("dead", 2), ("fault", 2), ("gone", 1)];
    assert_eq!(ended, expect.map(|(word, count)| (word.to_owned(), count)));
    meters.dump(PublishError::Unrecorded(StoreError::Closed).outcome());
    rig.says(&[
        "fedicensus_dumps_total{outcome=\"incomplete\"} 1",
        "fedicensus_dumps_total{outcome=\"failed\"} 0",
        "fedicensus_dump_held_back 0",
        "fedicensus_dump_failed 1",
    ])
    .await;
    meters.dump(Dumped::Published);
    rig.says(&["fedicensus_dump_held_back 0", "fedicensus_dump_failed 0"])
        .await;
}

/// A metric that appears with its first event has no increase that an alert could see.
#[tokio::test]
async fn every_word_that_may_be_counted_is_there_from_the_start() {
    let page = Rig::well().page().await;
    let series = |page: &str| -> BTreeSet<String> {
        page.lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned()))
            .collect()
    };
    let rig = Rig::well();
    for reason in labels::REASONS {
        rig.services.meters.verdict(&dead(reason), Timestamp(0));
    }
    for why in labels::DEFERRALS {
        rig.services.meters.deferral(why);
    }
    assert_eq!(series(&page), series(&rig.page().await));
    // The protocol's words are the labels' words.
    for why in labels::DEFERRALS {
        let word = serde_json::to_value(why).unwrap();
        assert_eq!(word, labels::deferral(why));
    }
    for why in labels::KILLED {
        assert_eq!(serde_json::to_value(why).unwrap(), labels::killed(why));
    }
    for family in labels::FAMILIES {
        assert_eq!(
            serde_json::to_value(family).unwrap(),
            labels::family(family)
        );
    }
}

/// Otherwise anyone who names hosts or software could fill the memory of the metrics' reader, and
/// appear in its plots.
#[tokio::test] // S41
async fn no_chosen_name_is_on_the_page() {
    let rig = Rig::well();
    let host = Host::parse("chosen.example.org").unwrap();
    let record = Record {
        state: State::Alive,
        instance: kit::software("chosen", "chosen"),
        ..Record::discovered(host, Timestamp(0), Timestamp(0))
    };
    rig.services
        .writer
        .add_now(vec![record.host.clone()], Timestamp(0))
        .await
        .unwrap();
    rig.services.meters.verdict(&alive("chosen"), Timestamp(0));
    for verdict in [
        dead(DeadReason::NodeinfoElsewhere),
        Verdict::Moved {
            to: record.host.clone(),
        },
        Verdict::Refused {
            status: 403,
            wall: None,
            retry_after_s: None,
        },
    ] {
        rig.services.meters.verdict(&verdict, Timestamp(0));
    }
    let no_hello = ReportFault::NoHello {
        exit_code: 1,
        stderr: "chosen".to_owned(),
    };
    rig.services.meters.fault(&no_hello.into());
    let page = rig.page().await;
    assert!(page.contains("fedicensus_hosts{state=\"discovered\"} 1\n"));
    for chosen in ["chosen", "astray", "example"] {
        assert!(!page.contains(chosen), "{chosen}:\n{page}");
    }
    let size = page.len();
    assert!(size < 40_000, "{size} bytes");
}

#[tokio::test]
async fn what_the_database_knows_is_told() {
    let rig = Rig::well();
    let now = rig.services.now();
    let hosts = ["a.example.org", "b.example.org", "c.example.org"];
    let hosts = hosts.map(|name| Host::parse(name).unwrap());
    let writer = &rig.services.writer;
    writer.add_now(hosts.to_vec(), now).await.unwrap();
    let owner = census::state::OptedOutBy::Owner;
    writer.opt_out(&hosts[0], owner, now).await.unwrap();
    let dumped_at = Timestamp(1_700_000_000_000);
    let dump = store::DumpRecord {
        at: dumped_at,
        names: 12,
        is_full: true,
    };
    writer.record_dump(dump).await.unwrap();
    rig.says(&[
        "fedicensus_hosts{state=\"discovered\"} 2",
        "fedicensus_hosts{state=\"opted_out\"} 1",
        "fedicensus_hosts{state=\"parked\"} 0",
        "fedicensus_hosts_opted_out{by=\"owner\"} 1",
        "fedicensus_hosts_opted_out{by=\"robots\"} 0",
        "fedicensus_hosts_due 2",
        "fedicensus_dump_timestamp_seconds 1700000000",
        "fedicensus_dump_names 12",
    ])
    .await;
}

#[tokio::test]
async fn a_part_that_is_away_has_no_numbers() {
    let page = Rig::new(Part::Away, Part::Away).page().await;
    for part in ["gateway", "launcher"] {
        assert!(page.contains(&format!("\nfedicensus_{part}_up 0\n")));
    }
    for name in ["gateway_dials_total", "gateway_family_up", "launcher_unfit"] {
        assert!(!page.contains(&format!("fedicensus_{name}")), "{name}");
    }
}

#[tokio::test(start_paused = true)] // S41
async fn a_part_that_hangs_holds_no_scrape_up_for_longer_than_it_may() {
    let rig = Rig::new(Part::Hangs, Part::Hangs);
    let began = Instant::now();
    let page = rig.page().await;
    let elapsed = began.elapsed();
    assert!(elapsed <= ANSWER_WITHIN.max(WAIT_MAX), "{elapsed:?}");
    assert!(page.contains("\nfedicensus_gateway_up 0\n"), "{page}");
    assert!(ANSWER_WITHIN.max(WAIT_MAX) < CONNECTION_TIME_MAX);
}

/// What a connection gets that sends this and nothing more.
async fn gives(rig: &Rig, sent: &[u8]) -> (String, Duration) {
    let (ours, theirs) = tokio::io::duplex(256 * 1024);
    let began = Instant::now();
    let (mut from, mut to) = tokio::io::split(ours);
    to.write_all(sent).await.unwrap();
    let serving = async {
        converse(theirs, &rig.source).await.ok();
    };
    let mut given = Vec::new();
    let (_, read) = tokio::join!(serving, from.read_to_end(&mut given));
    read.unwrap();
    (String::from_utf8(given).unwrap(), began.elapsed())
}

#[tokio::test]
async fn there_is_one_page_that_may_be_got_and_nothing_else() {
    let rig = Rig::well();
    let status = async |request: &str| {
        let sent = format!("{request} HTTP/1.1\r\nhost: x\r\n\r\n");
        let (given, _) = gives(&rig, sent.as_bytes()).await;
        given
    };
    let page = status("GET /metrics").await;
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    let kind = "content-type: text/plain; version=0.0.4\r\n";
    assert!(page.contains(kind), "{page}");
    assert!(page.contains("\nfedicensus_build_info{version=\"0.1.0\"} 1\n"));
    let others = "/ /metrics/ /metricsx /health //metrics /../metrics";
    for other in others.split(' ') {
        let answer = status(&format!("GET {other}")).await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{other}: {answer}");
    }
    for method in ["POST", "HEAD", "DELETE", "OPTIONS", "get"] {
        let answer = status(&format!("{method} /metrics")).await;
        assert!(answer.starts_with("HTTP/1.1 405 "), "{method}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_that_is_slow_or_large_is_given_up_on() {
    let rig = Rig::well();
    for begun in ["", "GET /met", "GET /metrics HTTP/1.1\r\nx: y\r\n"] {
        let (given, elapsed) = gives(&rig, begun.as_bytes()).await;
        assert_eq!(elapsed, HEAD_TIME_MAX, "{begun:?}");
        assert!(!given.contains("fedicensus_"), "{given}");
    }
    let long = format!("GET /metrics HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(9000));
    let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(33));
    for large in [long, many] {
        let (given, _) = gives(&rig, large.as_bytes()).await;
        assert!(given.starts_with("HTTP/1.1 431 "), "{given}");
    }
}
