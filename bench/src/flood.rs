//! What a flood of invented names costs the census (`bench/README.md`).
//!
//! In: nothing. Out: a row of a table: names named, rows, checks a day, entries of the list, memory, the longest wait of an honest host.
//!
//! The door, the store, groups and the choice of what is due are the census's own; time and verdicts are told to them. No container is started and
//! nobody is asked: names behind one domain live, as behind a wildcard, and names that are each a domain of their own are not there.

mod memory;

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use admission::{Limit, Limits, Names, Reserved, Suffixes, TestDomain};
use anyhow::{Context as _, Result};
use census::share::{Room, Shares};
use census::state::Verdict;
use census::time::{Calendar, Jitter, Timestamp};
use census::transition::transition;
use clap::{Parser, ValueEnum};
use orchestrator::door::Door;
use orchestrator::policy::{Files, SuffixPlace};
use protocol::{DeadReason, Host, Private};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use store::{Candidate, Store, Taken};

/// Names in one line of a checker.
const BATCH: usize = 500;

/// Simulated time goes on by this: whoever waits is tried again six times in it.
const STEP: Duration = Duration::from_secs(3600);

/// Steps of a day.
const STEPS: u64 = 24;

/// Honest hosts that come up in a day, each named by three servers.
const HONEST_A_DAY: u64 = 200;

/// Hosts taken at once: the store's most.
const TAKEN_MAX: u32 = 1000;

/// Begins at some moment.
const START: Timestamp = Timestamp(1_790_812_800_000);

/// Measures what a flood of invented names costs.
#[derive(Debug, Parser)]
#[command(name = "bench-flood", version)]
struct Arguments {
    /// Where the names are
    #[arg(long, value_enum, default_value_t = Shape::Below)]
    shape: Shape,
    /// Invented names, in equal lists
    #[arg(long, default_value_t = 10_000_000)]
    names: u64,
    /// Servers that each name their list once a day
    #[arg(long, default_value_t = 50)]
    servers: u64,
    /// Days
    #[arg(long, default_value_t = 7)]
    days: u64,
    /// Without rules, limits and groups
    #[arg(long)]
    without: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// All of them behind one domain, and alive.
    Below,
    /// Each a registered domain of its own, and not there.
    Apart,
}

/// One census under the flood.
struct Stage {
    store: Store,
    door: Door,
    chance: StdRng,
    shape: Shape,
    /// When each honest host was first named, and when it was in.
    honest: HashMap<Host, (Timestamp, Option<Timestamp>)>,
    checks: u64,
    honest_checks: u64,
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = tempfile::tempdir()?;
    let mut stage = Stage::open(folder.path(), &arguments).await?;
    let began = Instant::now();
    let (mut naming, mut last_day) = (Duration::ZERO, 0);
    for step in 0..arguments.days * STEPS {
        let now = START.plus(STEP * u32::try_from(step)?);
        // The census gives a new window's room to those who wait within a minute, before most servers are asked again.
        stage.try_again(now).await?;
        let named = Instant::now();
        stage.flood(&arguments, step % STEPS, now).await?;
        naming += named.elapsed();
        stage.honest_come(step, now).await?;
        stage.try_again(now).await?;
        if step % STEPS == 0 {
            last_day = stage.checks;
        }
        stage.check_due(now).await?;
        stage.look_for_honest(now)?;
    }
    let now = START.plus(STEP * u32::try_from(arguments.days * STEPS)?);
    stage.report(&arguments, now, naming, stage.checks - last_day)?;
    writeln!(std::io::stderr(), "{:.0?} in all", began.elapsed())?;
    Ok(())
}

impl Stage {
    async fn open(folder: &Path, arguments: &Arguments) -> Result<Self> {
        let store = store::open(&folder.join("census.db"))?;
        let of = |limit| match arguments.without {
            true => Limit::MAX,
            false => limit,
        };
        let rules = folder.join("rules");
        let per_domain = of(Limit::new(20).context("a limit")?);
        let ordinary = Limits::ORDINARY;
        std::fs::write(&rules, format!("public default {per_domain}\n"))?;
        let files = Files {
            rules: Some(rules),
            deny: None,
            allow: None,
            suffix_list: SuffixPlace::default(),
            reserved: Reserved::Refuse,
            test_domain: TestDomain::Refuse,
            limits: Limits {
                source: of(ordinary.source),
                shared_suffix: of(ordinary.shared_suffix),
                total: of(ordinary.total),
            },
        };
        let names = Names {
            suffixes: Suffixes::compiled(),
            reserved: Reserved::Refuse,
        };
        let threshold = if arguments.without { u32::MAX } else { 10 };
        store.writer().set_group_threshold(threshold).await?;
        Ok(Self {
            door: Door::open(store.writer(), names, files).await?,
            store,
            chance: StdRng::seed_from_u64(1),
            shape: arguments.shape,
            honest: HashMap::new(),
            checks: 0,
            honest_checks: 0,
        })
    }

    fn jitter(&mut self) -> Jitter {
        Jitter(self.chance.random())
    }

    fn candidate(&mut self, name: &str, now: Timestamp) -> Result<Candidate> {
        let first = Calendar::REAL.first_check(self.jitter());
        Ok(Candidate {
            host: Host::parse(name)?,
            due: now.plus(first),
            first_seen: now,
        })
    }

    /// The servers whose turn it is name their lists.
    async fn flood(&mut self, arguments: &Arguments, step: u64, now: Timestamp) -> Result<()> {
        let each = arguments.names / arguments.servers;
        for server in (0..arguments.servers).filter(|server| server % STEPS == step) {
            let by = Host::parse(&format!("social{server}.org"))?;
            let mut batch = Vec::with_capacity(BATCH);
            for number in server * each..(server + 1) * each {
                let name = match arguments.shape {
                    Shape::Below => format!("n{number}.farm-of-names.net"),
                    Shape::Apart => format!("invented{number}.net"),
                };
                batch.push(self.candidate(&name, now)?);
                if batch.len() == BATCH {
                    self.door
                        .named(std::mem::take(&mut batch), &by, now)
                        .await?;
                }
            }
            self.door.named(batch, &by, now).await?;
        }
        Ok(())
    }

    /// Honest hosts come up all day, each named by three servers that know it.
    async fn honest_come(&mut self, step: u64, now: Timestamp) -> Result<()> {
        for number in 0..HONEST_A_DAY / STEPS {
            let name = format!("honest{step}-{number}.net");
            for _ in 0..3 {
                let by = Host::parse(&format!("friend{}.org", self.chance.random_range(0..500)))?;
                let candidate = self.candidate(&name, now)?;
                self.door.named(vec![candidate], &by, now).await?;
            }
            self.honest.insert(Host::parse(&name)?, (now, None));
        }
        Ok(())
    }

    async fn try_again(&mut self, now: Timestamp) -> Result<()> {
        let first = Calendar::REAL.first_check(self.jitter());
        let candidate = |host| Candidate {
            host,
            due: now.plus(first),
            first_seen: now,
        };
        self.door.try_waiting(now, candidate).await?;
        let mut after = Some(0);
        while let Some(last) = after {
            after = self
                .store
                .writer()
                .group_new(self.door.names(), last)
                .await?;
        }
        Ok(())
    }

    /// All that is due is checked.
    async fn check_due(&mut self, now: Timestamp) -> Result<()> {
        loop {
            let jitters = (0..TAKEN_MAX).map(|_| self.jitter()).collect();
            let writer = self.store.writer();
            let (room, shares) = (Room::empty(TAKEN_MAX), Shares::default());
            let taken = writer.take_due(now, room, shares, jitters, Calendar::REAL);
            let (taken, _shares) = taken.await?;
            if taken.is_empty() {
                return Ok(());
            }
            // Many at once, so that they share a transaction.
            let mut settling = Vec::new();
            for one in taken {
                settling.push(self.settle(&one, now));
            }
            for settled in settling {
                settled.await.context("a settle")??;
            }
        }
    }

    fn settle(
        &mut self,
        taken: &Taken,
        now: Timestamp,
    ) -> tokio::task::JoinHandle<Result<(), store::StoreError>> {
        let is_honest = self.honest.contains_key(&taken.record.host);
        if is_honest {
            self.honest_checks += 1;
        } else {
            self.checks += 1;
        }
        let verdict = match self.shape {
            Shape::Apart if !is_honest => Verdict::Dead {
                reason: DeadReason::NoSuchName,
                status: None,
                to: None,
            },
            Shape::Apart | Shape::Below => Verdict::Alive {
                software: "mastodon".to_owned(),
                version: None,
                private: Private::No,
            },
        };
        let change = transition(&taken.record, &verdict, now, self.jitter(), Calendar::REAL);
        let writer = self.store.writer();
        tokio::spawn(async move { writer.settle(change).await.map(drop) })
    }

    fn look_for_honest(&mut self, now: Timestamp) -> Result<()> {
        let reader = self.store.reader()?;
        for (host, (_, is_in)) in &mut self.honest {
            if is_in.is_none() && reader.record(host)?.is_some() {
                *is_in = Some(now);
            }
        }
        Ok(())
    }

    fn report(
        &self,
        arguments: &Arguments,
        now: Timestamp,
        naming: Duration,
        last_day: u64,
    ) -> Result<()> {
        let reader = self.store.reader()?;
        let (mut listed, mut honest_listed) = (0_u64, 0_u64);
        reader.listed(now, Calendar::REAL, |row| {
            if row.host.starts_with("honest") {
                honest_listed += 1;
            } else {
                listed += 1;
            }
            anyhow::Ok(())
        })?;
        let honest_in = self.honest.values().filter(|(_, is_in)| is_in.is_some());
        let honest_in = u64::try_from(honest_in.count())?;
        let waits = self
            .honest
            .values()
            .map(|(named, is_in)| is_in.unwrap_or(now).since(*named));
        let longest = waits.max().unwrap_or_default();
        let mut out = std::io::stdout();
        writeln!(
            out,
            "| shape, rules | names named | rows | waiting | checks, last day | listed | honest: in, listed, checks | longest wait of an honest one, h | naming, µs each | memory, MB |\n|---|---|---|---|---|---|---|---|---|---|"
        )?;
        let named = arguments.names * arguments.days;
        writeln!(
            out,
            "| {:?}, {} | {named} in {} days | {} | {} | {last_day} | {listed} | {honest_in} of {}, {honest_listed}, {} | {:.0} | {:.1} | {} |",
            arguments.shape,
            if arguments.without { "without" } else { "with" },
            arguments.days,
            reader.counts()?.hosts.saturating_sub(honest_in),
            reader.waiting()?,
            self.honest.len(),
            self.honest_checks,
            longest.as_secs_f64() / 3600.0,
            naming.as_secs_f64() * 1e6 / named as f64,
            memory::most_mb("self")?,
        )?;
        Ok(())
    }
}
