//! The cost of names from peers lists, at a million rows (`bench/README.md`).
//!
//! It prints a table: known and new names per second through the census's own gate; and the memory
//! of the names. The gate has no limits here, because the cost of admitted names is measured.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use admission::{Limit, Limits, Names, Reserved, Suffixes};
use anyhow::{Context as _, Result};
use bench::shared::cost::{Cost, Meter};
use census::time::Timestamp;
use clap::Args;
use orchestrator::admit::gate::{NameGate, Origin};
use orchestrator::admit::policy::Files;
use protocol::Host;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use store::Store;

const NOW: Timestamp = Timestamp(1_790_812_800_000);

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Rows before
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Known names, named through the gate in a round
    #[arg(long, default_value_t = 1_000_000)]
    known: u64,
    /// New names through the gate in a round
    #[arg(long, default_value_t = 100_000)]
    new: u64,
    /// Names in one peers list
    #[arg(long, default_value_t = 5000)]
    list: usize,
    /// Rounds, whose medians are compared
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// Where the database lies meanwhile
    #[arg(long, default_value = "/tmp")]
    folder: PathBuf,
}

pub(crate) async fn measure(arguments: &Arguments) -> Result<()> {
    let folder = tempfile::tempdir_in(&arguments.folder)?;
    let path = folder.path().join("census.db");
    let mut stage = Stage::open(&path, arguments).await?;
    let mut costs: [Vec<Cost>; 2] = Default::default();
    for round in 0..arguments.rounds {
        let known = stage.known(arguments.known)?;
        let [known_door, new_door] = &mut costs;
        known_door.push(stage.through_the_door(known).await?);
        let new = news("new", round, arguments.new)?;
        new_door.push(stage.through_the_door(new).await?);
    }
    stage.report(arguments, costs)
}

struct Stage {
    store: Store,
    gate: NameGate,
    chance: StdRng,
    rows: u64,
    /// Number of names in one peers list.
    list: usize,
}

/// A name by its number. Names with successive numbers are far apart in sorted order, like names in
/// peers lists; three share a registered domain.
fn name(kind: &str, number: u64) -> Result<Host> {
    let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let text = format!("{spread:08x}-{kind}.example-{}.net", number / 3);
    Ok(Host::parse(&text)?)
}

fn news(kind: &str, round: u64, many: u64) -> Result<Vec<Host>> {
    let kind = format!("{kind}{round}");
    (0..many).map(|number| name(&kind, number)).collect()
}

impl Stage {
    async fn open(path: &Path, arguments: &Arguments) -> Result<Self> {
        let store = store::open(path)?;
        let mut batch = Vec::new();
        for number in 0..arguments.rows {
            batch.push(name("n", number)?);
            if batch.len() == 100_000 || number + 1 == arguments.rows {
                store
                    .writer()
                    .add_now(std::mem::take(&mut batch), NOW)
                    .await?;
            }
        }
        // As after a start: known names are read from the file.
        store.close();
        let mut store = store::open(path)?;
        store.wait_for_names();
        let files = Files {
            rules: Some(path.with_file_name("rules")),
            limits: Limits {
                source: Limit::MAX,
                shared_suffix: Limit::MAX,
                total: Limit::MAX,
            },
            ..Files::default()
        };
        std::fs::write(
            path.with_file_name("rules"),
            format!("public default {}\n", Limit::MAX),
        )?;
        let names = Names {
            suffixes: Suffixes::compiled(),
            reserved: Reserved::Refuse,
        };
        let gate = NameGate::open(store.writer(), names, files).await?;
        Ok(Self {
            store,
            gate,
            chance: StdRng::seed_from_u64(1),
            rows: arguments.rows,
            list: arguments.list,
        })
    }

    fn known(&mut self, many: u64) -> Result<Vec<Host>> {
        let numbers = (0..many).map(|_| self.chance.random_range(0..self.rows));
        numbers.map(|number| name("n", number)).collect()
    }

    async fn through_the_door(&mut self, hosts: Vec<Host>) -> Result<Cost> {
        let many = hosts.len();
        let by = Host::parse("social.example.org")?;
        let mut lists: Vec<Vec<Host>> = Vec::new();
        for host in hosts {
            if lists.last().is_none_or(|list| list.len() == self.list) {
                lists.push(Vec::with_capacity(self.list));
            }
            lists.last_mut().context("a list")?.push(host);
        }
        let meter = Meter::begin();
        for list in lists {
            self.gate.named(list, &by, Origin::Stranger, NOW).await?;
        }
        Ok(meter.end(many))
    }

    fn report(&self, arguments: &Arguments, costs: [Vec<Cost>; 2]) -> Result<()> {
        let hosts = self.store.reader()?.counts()?.hosts;
        let expected = arguments.rows + arguments.rounds * arguments.new;
        anyhow::ensure!(hosts == expected, "{hosts} rows instead of {expected}");
        let mut out = std::io::stdout();
        writeln!(
            out,
            "{} rows before, medians of {} rounds.\n\n| names | through the gate, a second |\n|---|---|",
            arguments.rows, arguments.rounds
        )?;
        for (what, costs) in ["known", "new"].iter().zip(costs) {
            let gate = Cost::median(&costs);
            writeln!(
                out,
                "| {what} | {:.0} ({:.0} a CPU second) |",
                gate.rate, gate.cpu_rate,
            )?;
        }
        let (names, bytes) = self.store.writer().recognised();
        writeln!(
            out,
            "\n{names} names are recognised in memory, in {bytes} bytes: {:.1} each.",
            bytes as f64 / names as f64
        )?;
        Ok(())
    }
}
