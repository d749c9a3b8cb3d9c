//! Power cuts, as far as a process can simulate them: `kill -9` in the middle of writes (invariant
//! I6).
//!
//! The test starts itself again as a child. The child writes verdict after verdict, and prints each
//! one once it is acknowledged.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test may fail by any of them"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use census::state::{State, Verdict};
use census::time::{Calendar, Jitter, Timestamp};
use census::transition::transition;
use protocol::{Host, Instance};
use store::Store;
use store::Writer;

const CHILD: &str = "FEDICENSUS_TEST_CRASH_DATABASE";
const HOSTS: u32 = 40;

/// Between fork and exec, a new child process shares all open files of its parent, including locks.
/// So no other test may have a database open at that moment.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn host(n: u32) -> Host {
    Host::parse(&format!("n{n}.example")).unwrap()
}

fn now(round: u32) -> Timestamp {
    Timestamp(1_790_000_000_000 + i64::from(round))
}

fn alive(round: u32) -> Verdict {
    Verdict::Alive(Instance {
        software: Some(format!("round-{round}")),
        ..kit::instance()
    })
}

/// Checks a responding host, from taking it to the acknowledged verdict.
async fn settle_alive(writer: &Writer, host: &Host, round: u32) {
    let taken = writer
        .take_one(host, now(round), Jitter(0), Calendar::REAL)
        .await;
    let record = taken.unwrap().unwrap().record;
    let verdict = alive(round);
    let change = transition(&record, &verdict, now(round), Jitter(0), Calendar::REAL);
    writer.commit(change).await.unwrap();
}

/// The child: checks each host in turn, endlessly, and prints `round host` after each acknowledged
/// verdict.
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
                settle_alive(&writer, &host(n), round).await;
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
    let _turn = TURN.blocking_lock();
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("census.db");
    // A different number of verdicts each time, so that the kill hits another point of the commits.
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
                // SIGKILL. The rest of the pipe is still read.
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
            // At least that round: a later one may have been written but not printed yet.
            assert!(
                stored.record.last_alive >= Some(now(*round)),
                "{n} {round} {stored:?}"
            );
            let told: u32 = stored.record.instance.software.unwrap()["round-".len()..]
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

/// Writes one verdict after the other about one host. Returns, for each, the length of the log when
/// it was acknowledged. Nothing has been checkpointed yet.
async fn acknowledge(store: &Store, path: &Path, verdicts: u32) -> Vec<usize> {
    let writer = store.writer();
    writer.add_now(vec![host(0)], now(0)).await.unwrap();
    let mut lengths = Vec::new();
    for round in 1..=verdicts {
        settle_alive(&writer, &host(0), round).await;
        lengths.push(std::fs::read(log_of(path)).unwrap().len());
    }
    lengths
}

fn log_of(path: &Path) -> PathBuf {
    path.with_extension("db-wal")
}

/// Each commit syncs the log (`open/tests.rs`). A power cut may keep, lose, tear or corrupt
/// whatever was written after the last sync.
#[tokio::test] // S61
async fn power_cut_keeps_every_acknowledged_verdict() {
    let _turn = TURN.lock().await;
    const VERDICTS: u32 = 5;
    const FRAME: usize = 4096 + 24;
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("census.db");
    let store = store::open(&path).unwrap();
    let lengths = acknowledge(&store, &path, VERDICTS).await;
    // Copied before closing, which would empty the log.
    let (file, log) = (
        std::fs::read(&path).unwrap(),
        std::fs::read(log_of(&path)).unwrap(),
    );
    store.close();
    assert_eq!(lengths.last(), Some(&log.len()), "the log began anew");

    let cut = dir.path().join("cut").join("census.db");
    std::fs::create_dir(cut.parent().unwrap()).unwrap();
    let first = lengths[0];
    let lengths_left = (first..log.len())
        .step_by(FRAME)
        .flat_map(|frame| [frame, frame + 1, frame + FRAME / 2])
        .chain(lengths.iter().map(|length| length - 1))
        .chain([log.len()]);
    for left in lengths_left {
        for spoilt in [false, true] {
            let mut torn = log[..left].to_vec();
            if spoilt {
                torn.resize(log.len(), 0xA5);
            }
            std::fs::write(&cut, &file).unwrap();
            std::fs::write(log_of(&cut), torn).unwrap();
            std::fs::remove_file(cut.with_extension("db-shm")).ok();
            let store = store::open(&cut).unwrap();
            let reader = store.reader().unwrap();
            assert_eq!(reader.damage().unwrap(), Vec::<String>::new(), "{left}");
            let acknowledged = lengths.iter().filter(|length| **length <= left).count();
            let stored = reader.record(&host(0)).unwrap();
            let kept = stored.map_or(0, |stored| {
                assert_eq!(
                    usize::try_from(stored.record.alive_count).unwrap(),
                    stored.history.len(),
                    "half a verdict at {left}"
                );
                stored.history.len()
            });
            assert!(
                kept == acknowledged,
                "{kept} of {acknowledged} verdicts when the log is cut at {left}, spoilt: {spoilt}"
            );
        }
    }
}

fn check_integrity(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let sound: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(sound, "ok");
}
