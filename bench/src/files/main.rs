//! The cost of publishing (`bench/README.md`).
//!
//! It prints a table: how long a dump of many instances takes, files and pages, and the maximum
//! memory and disk space during that time.

mod days;
mod verdicts;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use admission::DomainList;
use anyhow::{Context as _, Result};
use bench::shared::memory::most_mb;
use census::class::PerClass;
use census::state::Verdict;
use census::time::{Calendar, Jitter, Timestamp};
use census::transition::transition;
use clap::Parser;
use orchestrator::publish::pages::About;
use orchestrator::publish::round::Round;
use orchestrator::publish::{Imprint, Occasion, Publisher, signature};
use orchestrator::services::clock::Random;
use protocol::{Host, Private};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use site::facts::{Intake, Push, Reading};
use store::Store;

use crate::verdicts::Verdicts;

/// Hosts added and found alive at once: as many as the store accepts together.
const AT_ONCE: u32 = 1000;

/// A time at which all hosts are due again: the checks during a dump happen then.
const LATER: Timestamp = Timestamp(NOW.0 + 2 * 24 * 60 * 60 * 1000);

/// Interval between two measurements of the public folder. It has thousands of files, and measuring
/// takes processor time too, which is counted.
const LOOK_EVERY: Duration = Duration::from_secs(1);

const NOW: Timestamp = Timestamp(1_795_000_000_000);

/// Measures how long publishing takes and how much memory.
#[derive(Debug, Parser)]
#[command(name = "bench-files", version)]
struct Arguments {
    /// Listed instances
    #[arg(long, default_value_t = 1_000_000)]
    instances: u32,
    /// Different names of software among them
    #[arg(long, default_value_t = 300)]
    software: u32,
    /// Different versions of each software
    #[arg(long, default_value_t = 40)]
    versions: u32,
    /// Days before of which there are files with as many changes as they may hold
    #[arg(long, default_value_t = 0)]
    days: u16,
    /// Verdicts a second that are written meanwhile
    #[arg(long, default_value_t = 0)]
    verdicts: u32,
    /// Folder that keeps the census for the next time, which then is not filled again
    #[arg(long)]
    keep: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let home = tempfile::tempdir()?;
    let public = home.path().join("public");
    std::fs::create_dir(&public)?;
    let kept = arguments.keep.as_deref().unwrap_or(home.path());
    let database = kept.join("census.db");
    let is_new = !database.exists();
    let store = store::open(&database)?;
    if is_new {
        fill(&store, &arguments).await?;
    }
    // Resets the recorded maximum of memory.
    std::fs::write("/proc/self/clear_refs", "5")?;
    let before = most_mb("self")?;
    let mut out = std::io::stdout();
    writeln!(out, "| what | measured |\n|---|---|")?;
    let mut room = 0;
    let mut sets = vec!["the first set", "the next in its place"];
    if arguments.days > 0 {
        sets.insert(1, "the next, among files of earlier days");
    }
    for which in sets {
        let mut verdicts = Verdicts::default();
        let published = tokio::select! {
            published = published(&store, &public, &mut room) => published?,
            broken = verdicts.write(&store, LATER, arguments.verdicts) => match broken? {},
        };
        writeln!(out, "| {which} | {published}; {verdicts} |")?;
        if which == "the first set" {
            days::fill(&public, NOW, arguments.days)?;
        }
    }
    let most = most_mb("self")?;
    writeln!(
        out,
        "| most memory of the process | {most} MB, {before} MB of it before |"
    )?;
    writeln!(
        out,
        "| most room in the public folder | {} |",
        megabytes(room)?
    )?;
    let bytes = std::fs::metadata(&database)?.len();
    writeln!(out, "| the database | {} |", megabytes(bytes)?)?;
    let mut sizes: Vec<(String, u64)> = Vec::new();
    for entry in std::fs::read_dir(public.join("data"))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        sizes.push((name, entry.metadata()?.len()));
    }
    sizes.sort();
    for (name, bytes) in sizes {
        writeln!(out, "| `{name}` | {} |", megabytes(bytes)?)?;
    }
    Ok(())
}

/// Publishes once and returns what that took. `room` receives the largest size of the folder.
async fn published(store: &Store, public: &Path, room: &mut u64) -> Result<String> {
    let (reader, writer) = (store.reader()?, store.writer());
    let imprint = Imprint {
        title: "Fedicensus".to_owned(),
        operator: None,
        contact: "bench".to_owned(),
        address: None,
        licence: "CC0-1.0".to_owned(),
    };
    let about = About {
        imprint: imprint.clone(),
        intake: Intake::Closed,
        push: Push::Closed,
        reading: Reading::Instances,
    };
    let publisher = Publisher {
        public_dir: public.to_owned(),
        data_dir: public.parent().context("a folder above")?.to_owned(),
        imprint,
    };
    signature::keys(&publisher.data_dir)?;
    let (start, busy) = (Instant::now(), processor_time()?);
    let publishing = tokio::task::spawn_blocking(move || {
        let none = DomainList::default();
        let occasion = Occasion {
            now: NOW,
            calendar: Calendar::REAL,
            deny: &none,
            force: dump::Force::No,
            cancel: &dump::Cancel::default(),
        };
        let round = Round {
            publisher: &publisher,
            about: &about,
            reader: &reader,
            writer: &writer,
            occasion,
            salt: Random::from_os().salt(),
        };
        round.run()
    });
    while !publishing.is_finished() {
        *room = bytes_below(public)?.max(*room);
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let names = publishing.await??;
    Ok(format!(
        "{names} instances in {:.1} s, {:.1} s of processor time",
        start.elapsed().as_secs_f64(),
        processor_time()?.saturating_sub(busy).as_secs_f64()
    ))
}

fn megabytes(bytes: u64) -> Result<String> {
    let megabytes = f64::from(u32::try_from(bytes / 1000)?) / 1000.0;
    Ok(format!("{megabytes:.1} MB"))
}

/// Adds this number of living hosts in random order.
async fn fill(store: &Store, arguments: &Arguments) -> Result<()> {
    let mut chance = StdRng::seed_from_u64(1);
    let writer = store.writer();
    let mut left = arguments.instances;
    while left > 0 {
        let count = left.min(AT_ONCE);
        left -= count;
        let hosts: Result<Vec<Host>, _> = (0..count)
            .map(|_| {
                Host::parse(&format!(
                    "social-{:016x}.example.org",
                    chance.random::<u64>()
                ))
            })
            .collect();
        writer.add_now(hosts?, NOW).await?;
        let jitters = vec![Jitter(0); usize::try_from(count)?];
        let wanted = PerClass::each(|_class| count);
        let taken = writer.take_due(NOW, wanted, jitters, Calendar::REAL);
        let mut settling = Vec::new();
        for one in taken.await? {
            // Some are common, most are rare.
            let software = chance
                .random_range(0..arguments.software)
                .min(chance.random_range(0..arguments.software));
            let version = chance.random_range(0..arguments.versions);
            let alive = Verdict::Alive {
                software: format!("software-{software}"),
                version: Some(format!("4.{version}.1+build-{}", version % 7)),
                private: Private::No,
                open_registrations: Some(version.is_multiple_of(2)),
            };
            let change = transition(&one.record, &alive, NOW, Jitter(0), Calendar::REAL);
            let writer = store.writer();
            settling.push(tokio::spawn(async move {
                writer.commit(change).await.map(drop)
            }));
        }
        for settled in settling {
            settled.await??;
        }
    }
    Ok(())
}

fn processor_time() -> Result<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Ok(Duration::new(
        time.tv_sec.try_into()?,
        time.tv_nsec.try_into()?,
    ))
}

/// Total size of all files in a folder and its subfolders.
fn bytes_below(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        // A file may be renamed in the meantime.
        let Ok(metadata) = path.symlink_metadata() else {
            continue;
        };
        bytes += if metadata.is_dir() {
            bytes_below(&path)?
        } else {
            metadata.len()
        };
    }
    Ok(bytes)
}
