//! What the store's settings cost and gain at a million rows (`bench/README.md`).
//!
//! In: nothing. Out: three tables: how long a single write waits under ingest and a long reading, by who takes the write-ahead log over; verdicts a
//! second by the sizes of cache and memory map; the file's size while hosts come and go.

mod cost;
mod median;

use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use census::state::Verdict;
use census::time::{Calendar, Jitter, Timestamp};
use census::transition::transition;
use clap::Parser;
use protocol::{Host, Private};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use rusqlite::Connection;
use store::{Admission, Candidate, Opening, Store, TakeOver, open_with};

use self::cost::{Cost, Meter};
use self::median::median;

/// Begins at some moment.
const NOW: Timestamp = Timestamp(1_790_812_800_000);

/// Verdicts that share transactions.
const AT_ONCE: usize = 64;

/// Measures the store.
#[derive(Debug, Parser)]
#[command(name = "bench-store", version)]
struct Arguments {
    /// Rows
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Seconds of writing under ingest, each way; during the middle third somebody reads all rows
    #[arg(long, default_value_t = 15)]
    seconds: u64,
    /// Names written in one transaction by the ingest beside them, as the door does; of a long list it takes 2000
    #[arg(long, default_value_t = 500)]
    names: u64,
    /// Rounds, each way once in each
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// Verdicts for each size of cache and memory map
    #[arg(long, default_value_t = 10_000)]
    verdicts: usize,
    /// Times that a tenth of the hosts goes and as many come
    #[arg(long, default_value_t = 5)]
    churns: u64,
    /// Where the database lies meanwhile
    #[arg(long, default_value = "/tmp")]
    folder: PathBuf,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = tempfile::tempdir_in(&arguments.folder)?;
    let path = folder.path().join("census.db");
    fill(&path, arguments.rows).await?;
    waits(&arguments, &path).await?;
    caches(&arguments, &path).await?;
    churn(&arguments, &path).await
}

/// Neighbours lie anywhere in the order of names, as names that peers tell do.
fn name(number: u64) -> Result<Host> {
    let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let text = format!("{spread:08x}.example-{}.net", number / 3);
    Ok(Host::parse(&text)?)
}

async fn fill(path: &Path, rows: u64) -> Result<()> {
    let store = store::open(path)?;
    for begin in (0..rows).step_by(100_000) {
        let end = rows.min(begin + 100_000);
        let hosts = (begin..end).map(name).collect::<Result<Vec<_>>>()?;
        store.writer().add_now(hosts, NOW).await?;
    }
    store.close();
    Ok(())
}

/// How long single writes waited.
#[derive(Debug, Clone, Copy)]
struct Waits {
    median_ms: f64,
    most_ms: f64,
    /// The longest write-ahead log's file.
    log_mb: f64,
}

async fn waits(arguments: &Arguments, path: &Path) -> Result<()> {
    let mut out = std::io::stdout();
    let mut next = arguments.rows;
    let (mut within, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        within.push(wait_for(arguments, path, TakeOver::Within, &mut next).await?);
        beside.push(wait_for(arguments, path, TakeOver::Beside, &mut next).await?);
    }
    writeln!(
        out,
        "| who takes the log over | median wait of a write, ms | longest, ms | longest log, MB |\n|---|---|---|---|"
    )?;
    let middle = |waits: &[Waits], of: fn(&Waits) -> f64| median(waits.iter().map(of));
    for (who, waits) in [("whoever commits", &within), ("a thread beside", &beside)] {
        writeln!(
            out,
            "| {who} | {:.1} | {:.0} | {:.0} |",
            middle(waits, |waits| waits.median_ms),
            middle(waits, |waits| waits.most_ms),
            middle(waits, |waits| waits.log_mb),
        )?;
    }
    let most = |waits: &[Waits]| middle(waits, |waits| waits.most_ms);
    writeln!(
        out,
        "\nThe longest wait is {:.2} of what it was.\n",
        most(&beside) / most(&within)
    )?;
    Ok(())
}

async fn wait_for(
    arguments: &Arguments,
    path: &Path,
    take_over: TakeOver,
    next: &mut u64,
) -> Result<Waits> {
    let opening = Opening {
        take_over,
        ..Opening::default()
    };
    let store = open_with(path, opening)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let names = *next..*next + arguments.names;
    let ingest = tokio::spawn(ingest(store.writer(), Arc::clone(&is_over), names));
    let began = Instant::now();
    let third = Duration::from_secs(arguments.seconds) / 3;
    let reading = std::thread::spawn({
        let reader = store.reader()?;
        move || -> Result<()> {
            std::thread::sleep(third);
            let until = Instant::now() + third;
            // One snapshot for all of it, as a dump has, and as long as told.
            let mut is_first = true;
            reader.each(|_, _| {
                if std::mem::take(&mut is_first) {
                    std::thread::sleep(until.saturating_duration_since(Instant::now()));
                }
            })?;
            Ok(())
        }
    });
    let (mut waits, mut log_bytes) = (Vec::new(), 0);
    let log = path.with_file_name("census.db-wal");
    while began.elapsed() < 3 * third || !reading.is_finished() {
        let asked = Instant::now();
        store.writer().try_write().await?;
        waits.push(asked.elapsed().as_secs_f64() * 1000.0);
        log_bytes = log_bytes.max(std::fs::metadata(&log).map_or(0, |log| log.len()));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    is_over.store(true, Ordering::Relaxed);
    *next = ingest.await??;
    reading
        .join()
        .map_err(|_panicked| anyhow::anyhow!("the reading panicked"))??;
    store.close();
    Ok(Waits {
        median_ms: median(waits.iter().copied()),
        most_ms: waits.iter().copied().fold(0.0, f64::max),
        log_mb: log_bytes as f64 / 1e6,
    })
}

/// New names as fast as they go, `names` by number and then as many again; gives the number of the next one.
async fn ingest(
    writer: store::Writer,
    is_over: Arc<AtomicBool>,
    mut names: Range<u64>,
) -> Result<u64> {
    while !is_over.load(Ordering::Relaxed) {
        let candidate = |number| {
            Ok(Candidate {
                host: name(number)?,
                due: NOW,
                first_seen: NOW,
            })
        };
        let admission = Admission {
            candidates: names.clone().map(candidate).collect::<Result<_>>()?,
            ..Admission::default()
        };
        writer.admit(admission).await?;
        names = names.end..names.end + (names.end - names.start);
    }
    Ok(names.start)
}

async fn caches(arguments: &Arguments, path: &Path) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(
        out,
        "| cache, MiB | mapped, MiB | verdicts a second | a CPU second |\n|---|---|---|---|"
    )?;
    for (cache_mib, mapped_mib) in [(4, 0), (16, 0), (64, 0), (256, 0), (4, 1024), (16, 1024)] {
        let mut costs = Vec::new();
        for round in 0..arguments.rounds {
            let opening = Opening {
                cache_kib: cache_mib * 1024,
                mapped_bytes: mapped_mib * 1024 * 1024,
                ..Opening::default()
            };
            let mut store = open_with(path, opening)?;
            store.wait_for_names();
            costs.push(verdicts(&store, arguments, round).await?);
            store.close();
        }
        let Cost { rate, cpu_rate } = Cost::median(&costs);
        writeln!(
            out,
            "| {cache_mib} | {mapped_mib} | {rate:.0} | {cpu_rate:.0} |"
        )?;
    }
    writeln!(out)?;
    Ok(())
}

/// Hosts all over the table are taken and settled.
async fn verdicts(store: &Store, arguments: &Arguments, seed: u64) -> Result<Cost> {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut hosts = Vec::with_capacity(arguments.verdicts);
    for _ in 0..arguments.verdicts {
        hosts.push(name(chance.random_range(0..arguments.rows))?);
    }
    let meter = Meter::begin();
    for together in hosts.chunks(AT_ONCE) {
        let settling = together.iter().map(|host| {
            let (writer, host) = (store.writer(), host.clone());
            tokio::spawn(async move { settle(&writer, &host).await })
        });
        for settled in settling.collect::<Vec<_>>() {
            settled.await??;
        }
    }
    Ok(meter.end(arguments.verdicts))
}

async fn settle(writer: &store::Writer, host: &Host) -> Result<()> {
    let taken = match writer.take_one(host, NOW, Jitter(0), Calendar::REAL).await {
        Err(store::StoreError::InFlight { .. }) => return Ok(()),
        taken => taken?.context("a host")?,
    };
    let verdict = Verdict::Alive {
        software: "mastodon".to_owned(),
        version: Some("4.5.0".to_owned()),
        private: Private::No,
    };
    let change = transition(&taken.record, &verdict, NOW, Jitter(0), Calendar::REAL);
    writer.settle(change).await?;
    Ok(())
}

/// A tenth goes, wherever it stands, and as many others come.
async fn churn(arguments: &Arguments, path: &Path) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(
        out,
        "| times a tenth was replaced | file, MB | of it free | written anew, MB | reading all names, file / written anew |\n|---|---|---|---|---|"
    )?;
    // Behind all that came in before.
    let mut next = 1_000_000_000;
    for churned in 0..=arguments.churns {
        if churned > 0 {
            let connection = Connection::open(path)?;
            connection.execute_batch(&format!(
                "PRAGMA foreign_keys = ON; DELETE FROM hosts WHERE id % 10 = {}",
                churned % 10
            ))?;
            let gone = connection.changes();
            connection.close().map_err(|(_, error)| error)?;
            let store = store::open(path)?;
            let hosts = (next..next + gone).map(name).collect::<Result<Vec<_>>>()?;
            store.writer().add_now(hosts, NOW).await?;
            next += gone;
            store.close();
        }
        let anew = path.with_file_name("anew.db");
        let copied = store::backup(path, &anew)?;
        let (bytes, free) = size(path)?;
        let (here, there) = (read_all(path)?, read_all(&anew)?);
        std::fs::remove_file(anew)?;
        writeln!(
            out,
            "| {churned} | {:.0} | {:.1} % | {:.0} | {:.2} |",
            bytes / 1e6,
            free * 100.0,
            copied.bytes as f64 / 1e6,
            here / there
        )?;
    }
    Ok(())
}

/// Bytes, and the share of free pages.
fn size(path: &Path) -> Result<(f64, f64)> {
    let connection = Connection::open(path)?;
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, f64>(0));
    let pages = number("page_count")?;
    Ok((
        pages * number("page_size")?,
        number("freelist_count")? / pages,
    ))
}

/// Seconds for reading all names in their order.
fn read_all(path: &Path) -> Result<f64> {
    let connection = Connection::open(path)?;
    let read = || -> Result<f64> {
        let began = Instant::now();
        let sum = "SELECT sum(length(name)) FROM (SELECT name FROM hosts ORDER BY name)";
        connection.query_row(sum, [], |row| row.get::<_, i64>(0))?;
        Ok(began.elapsed().as_secs_f64())
    };
    let times = (0..5).map(|_| read()).collect::<Result<Vec<_>>>()?;
    Ok(median(times.into_iter()))
}
