//! Power cuts, as far as a process can have them: `kill -9` in the middle of writes (invariant I6).
//!
//! The test starts itself again as a child that writes verdict after verdict and prints each one once it is acknowledged.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test may fail by any of them"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use census::state::{State, Verdict};
use census::time::{Calendar, Jitter, Timestamp};
use census::transition::transition;
use protocol::{Host, Private};

const CHILD: &str = "FEDICENSUS_TEST_CRASH_DATABASE";
const HOSTS: u32 = 40;

fn host(n: u32) -> Host {
    Host::parse(&format!("n{n}.example")).unwrap()
}

fn now(round: u32) -> Timestamp {
    Timestamp(1_790_000_000_000 + i64::from(round))
}

/// The child: each host in turn, for ever; says `round host` after each acknowledged verdict.
async fn write_for_ever(path: &Path) {
    let store = store::open(path).unwrap();
    let writer = store.writer();
    writer.recover(now(0), 1, Calendar::REAL).await.unwrap();
    writer
        .add_now((0..HOSTS).map(host).collect(), now(0))
        .await
        .unwrap();
    for round in 1.. {
        let checks = (0..HOSTS).map(|n| {
            let writer = writer.clone();
            tokio::spawn(async move {
                let taken = writer
                    .take_one(&host(n), now(round), Jitter(0), Calendar::REAL)
                    .await;
                let verdict = Verdict::Alive {
                    software: format!("round-{round}"),
                    version: None,
                    private: Private::No,
                };
                let record = taken.unwrap().unwrap().record;
                let change = transition(&record, &verdict, now(round), Jitter(0), Calendar::REAL);
                writer.settle(change, now(round)).await.unwrap();
                let mut out = std::io::stdout().lock();
                writeln!(out, "ack {round} {n}").unwrap();
                out.flush().unwrap();
            })
        });
        for check in checks.collect::<Vec<_>>() {
            check.await.unwrap();
        }
    }
}

#[tokio::test]
async fn child_that_writes_for_ever() {
    // Does nothing unless the test below starts it.
    if let Some(path) = std::env::var_os(CHILD) {
        write_for_ever(Path::new(&path)).await;
    }
}

fn spawn(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_writes_for_ever", "--nocapture"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn every_acknowledged_verdict_survives_a_kill_in_the_middle_of_writes() {
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("census.db");
    // Each time after another number of verdicts, so that the kill strikes at another point of the commits.
    for kill_after in [1, 2, 39, 41, 77, 150, 333] {
        let mut child = spawn(&path);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acknowledged = vec![0; usize::try_from(HOSTS).unwrap()];
        let mut seen = 0;
        let mut killed = false;
        while let Some(Ok(line)) = lines.next() {
            // Rust's test harness may print before the first one on the same line.
            let Some((_, line)) = line.rsplit_once("ack ") else {
                continue;
            };
            let (round, n) = line.split_once(' ').unwrap();
            let (round, n): (u32, usize) = (round.parse().unwrap(), n.parse().unwrap());
            acknowledged[n] = round;
            seen += 1;
            if seen >= kill_after && !killed {
                // SIGKILL; what the pipe still holds is read to its end.
                child.kill().unwrap();
                killed = true;
            }
        }
        child.wait().unwrap();
        assert!(killed, "the child ended by itself");

        let store = store::open(&path).unwrap();
        let reader = store.reader().unwrap();
        for (n, round) in (0..).zip(&acknowledged) {
            let stored = reader.record(&host(n)).unwrap().unwrap();
            if *round == 0 {
                continue;
            }
            assert_eq!(stored.record.state, State::Alive);
            // At least that round: a later one may have been written and not yet said.
            assert!(
                stored.record.last_alive >= Some(now(*round)),
                "{n} {round} {stored:?}"
            );
            let told: u32 = stored.record.software.unwrap()["round-".len()..]
                .parse()
                .unwrap();
            assert_eq!(
                stored.record.last_alive,
                Some(now(told)),
                "a row is written whole"
            );
            assert_eq!(stored.history[0].at, now(told), "and its history with it");
        }
        drop(store);
        check_integrity(&path);
    }
}

fn check_integrity(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let sound: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(sound, "ok");
}
