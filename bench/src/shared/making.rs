//! Creates a census of any size at once. The schema is the store's own, with all constraints, and
//! the rows are what the store would have written.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use census::time::{Calendar, DOUBLINGS_MAX, Jitter, Timestamp};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use rusqlite::{CachedStatement, Connection, params};
use store::Depth;

/// A time in the middle of a long census.
pub const NOW: Timestamp = Timestamp(1_795_000_000_000);

const A_DOMAIN: u64 = 3;

/// Of a hundred hosts: how many are living, dying and new. All others are dead, and half of these
/// responded once.
const LIVING: u32 = 25;
const DYING: u32 = 1;
const NEW: u32 = 5;

/// Days since a host was added, for the last and the first one.
const KNOWN_FOR_DAYS: std::ops::Range<u32> = 40..300;

/// Verdicts that the store keeps for a host that has responded, and for one that has not.
const VERDICTS: u32 = 10;
const VERDICTS_NEVER_ALIVE: u32 = 3;

/// Page cache while rows are inserted, so that inserting in the order of names needs no reads:
/// three indexes have another order than the rows.
const CACHE_BYTES_A_ROW: u64 = 128;

/// Most rows for which each index is compared with its table. That takes a minute for a million
/// rows on a slow machine.
const COMPARED_MAX: u64 = 1_000_000;

/// Checking ten million rows takes a few minutes.
const LOOK_WITHIN: Duration = Duration::from_secs(3600);

const DAY: Duration = Duration::from_secs(24 * 3600);

const HOST: &str = "INSERT INTO hosts (id, name, state, since, state_before, count, software, version, first_seen, last_alive, last_checked, due, \
     doublings, alive_count, group_id, open_registrations) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";

const GROUP: &str = "INSERT INTO groups (id, domain, hosts) VALUES (?1, ?2, ?3)";

const TRIGGERS: &str = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name IN ('hosts', 'groups') ORDER BY rowid";

const VERDICT: &str =
    "INSERT INTO history (host_id, seq, at, verdict, reason) VALUES (?1, ?2, ?3, ?4, ?5)";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum World {
    /// A quarter is living and checked daily, most of the others are dead and checked every four
    /// weeks, some are new.
    MiddleOfLife,
    Living,
}

/// The name of a host. Names with successive numbers are far apart in sorted order, like names in
/// peers lists.
pub fn name(number: u64) -> String {
    let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    format!("{spread:08x}.{}", domain(number / A_DOMAIN))
}

fn domain(number: u64) -> String {
    format!("example-{number}.net")
}

/// Creates a census with this many rows in its state at [`NOW`], all of them due after it.
pub fn make(path: &Path, rows: u64, world: World) -> Result<()> {
    store::open(path)?.close();
    let connection = Connection::open(path)?;
    let word = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
    connection.pragma_update_and_check(None, "journal_mode", "off", word)?;
    connection.pragma_update(None, "synchronous", "off")?;
    connection.pragma_update_and_check(None, "locking_mode", "exclusive", word)?;
    let cache_kib = (rows * CACHE_BYTES_A_ROW / 1024).max(64 * 1024);
    connection.pragma_update(None, "cache_size", -i64::try_from(cache_kib)?)?;
    connection.execute_batch("BEGIN")?;
    let triggers = take_triggers(&connection)?;
    {
        let mut making = Making {
            host: connection.prepare_cached(HOST)?,
            group: connection.prepare_cached(GROUP)?,
            verdict: connection.prepare_cached(VERDICT)?,
            chance: StdRng::seed_from_u64(1),
            world,
        };
        for number in 0..rows {
            let to_its_end = A_DOMAIN.min(rows - number);
            making.host(number, to_its_end)?;
        }
    }
    connection.execute_batch(&triggers)?;
    connection.execute_batch("COMMIT")?;
    connection.close().map_err(|(_open, error)| error)?;
    Ok(())
}

/// Drops the triggers that maintain the sizes of groups, which are written directly: otherwise each
/// row would be written three times. Returns the statements that restore them.
fn take_triggers(connection: &Connection) -> Result<String> {
    let mut statement = connection.prepare(TRIGGERS)?;
    let triggers = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut again = String::new();
    for trigger in triggers.collect::<Result<Vec<(String, String)>, _>>()? {
        let (name, sql) = trigger;
        connection.execute_batch(&format!("DROP TRIGGER {name}"))?;
        again.push_str(&sql);
        again.push_str(";\n");
    }
    Ok(again)
}

/// Runs the checks of `fedicensus db check`. Returns how thorough they were.
///
/// # Errors
/// Returns the fault that was found, or fails if the database can't be checked.
pub fn look_for_faults(path: &Path, rows: u64) -> Result<&'static str> {
    let (depth, looked_at) = if rows <= COMPARED_MAX {
        (Depth::Whole, "`db check` finds nothing")
    } else {
        (Depth::Quick, "`db check --quick` finds nothing")
    };
    let found = store::open_read_only(path)?.soundness(depth, LOOK_WITHIN)?;
    let wrong: Vec<_> = found.findings.iter().map(|one| one.what.as_str()).collect();
    ensure!(wrong.is_empty(), "the census that was made: {wrong:?}");
    let left = found.unfinished;
    ensure!(left.is_empty(), "not looked at in time: {left:?}");
    Ok(looked_at)
}

struct Making<'c> {
    host: CachedStatement<'c>,
    group: CachedStatement<'c>,
    verdict: CachedStatement<'c>,
    chance: StdRng,
    world: World,
}

struct Row {
    state: &'static str,
    /// When it entered its state. `None` if that is when its name was added.
    since: Option<Timestamp>,
    failures: u32,
    last_alive: Option<Timestamp>,
    last_checked: Option<Timestamp>,
    due: Timestamp,
    doublings: u8,
    alive_count: u32,
    interval: Duration,
}

/// Half of the hosts that publish the setting are open, and one in ten does not publish it.
fn registrations(number: u64) -> Option<bool> {
    match number % 10 {
        0 => None,
        rest => Some(rest.is_multiple_of(2)),
    }
}

impl Making<'_> {
    /// `to_its_end`: number of hosts in its group from this one on.
    fn host(&mut self, number: u64, to_its_end: u64) -> Result<()> {
        let group = i64::try_from(number / A_DOMAIN)? + 1;
        if number.is_multiple_of(A_DOMAIN) {
            let domain = domain(number / A_DOMAIN);
            let hosts = i64::try_from(to_its_end)?;
            self.group.execute(params![group, domain, hosts])?;
        }
        let id = i64::try_from(number)? + 1;
        let first_seen = NOW.minus(DAY * self.chance.random_range(KNOWN_FOR_DAYS));
        let kind = self.chance.random_range(0..100);
        let row = match self.world {
            World::Living => self.living(),
            World::MiddleOfLife if kind < DYING => self.dying(),
            World::MiddleOfLife if kind < LIVING => self.living(),
            World::MiddleOfLife if kind < LIVING + NEW => self.new_one(),
            World::MiddleOfLife => self.dead(),
        };
        let has_lived = row.last_alive.is_some();
        let software = has_lived.then(|| self.software());
        let (software, version) = software.unzip();
        self.host.execute(params![
            id,
            name(number),
            row.state,
            row.since.unwrap_or(first_seen).0,
            (row.state == "dying").then_some("alive"),
            row.failures,
            software,
            version,
            first_seen.0,
            row.last_alive.map(|at| at.0),
            row.last_checked.map(|at| at.0),
            row.due.0,
            row.doublings,
            row.alive_count,
            group,
            has_lived.then(|| registrations(number)).flatten(),
        ])?;
        match row.last_checked {
            Some(last) => self.verdicts(id, &row, last),
            None => Ok(()),
        }
    }

    fn living(&mut self) -> Row {
        let interval = Calendar::REAL.day(self.jitter());
        let last = self.within(interval);
        Row {
            state: "alive",
            since: None,
            failures: 0,
            last_alive: Some(last),
            last_checked: Some(last),
            due: last.plus(interval),
            doublings: 0,
            alive_count: self.chance.random_range(10..100),
            interval,
        }
    }

    /// A host that responded until it failed once or a few times.
    fn dying(&mut self) -> Row {
        let living = self.living();
        let failures = self.chance.random_range(1..6);
        let before = |times| {
            living
                .last_checked
                .map(|last| last.minus(living.interval * times))
        };
        Row {
            state: "dying",
            since: before(failures - 1),
            failures,
            last_alive: before(failures),
            ..living
        }
    }

    fn new_one(&mut self) -> Row {
        let interval = Calendar::REAL.second_check(self.jitter());
        Row {
            state: "discovered",
            since: None,
            failures: 0,
            last_alive: None,
            last_checked: None,
            due: NOW.plus(interval),
            doublings: 0,
            alive_count: 0,
            interval,
        }
    }

    fn dead(&mut self) -> Row {
        let interval = Calendar::REAL.weeks(DOUBLINGS_MAX, self.jitter());
        let last = self.within(interval);
        let has_lived: bool = self.chance.random();
        let since = NOW.minus(DAY * 39);
        Row {
            state: "dead",
            since: Some(since),
            failures: 0,
            last_alive: has_lived.then(|| since.minus(DAY * 8)),
            last_checked: Some(last),
            due: last.plus(interval),
            doublings: DOUBLINGS_MAX,
            alive_count: if has_lived {
                self.chance.random_range(1..100)
            } else {
                0
            },
            interval,
        }
    }

    /// A random time within the interval that ends now, or its end.
    fn within(&mut self, interval: Duration) -> Timestamp {
        NOW.minus(interval.mul_f64(self.chance.random()))
    }

    fn jitter(&mut self) -> Jitter {
        Jitter(self.chance.random())
    }

    /// Some are common, most are rare.
    fn software(&mut self) -> (String, String) {
        let software = self
            .chance
            .random_range(0..300)
            .min(self.chance.random_range(0..300));
        let version = self.chance.random_range(0..40);
        (
            format!("software-{software}"),
            format!("4.{version}.1+build-{}", version % 7),
        )
    }

    fn verdicts(&mut self, id: i64, row: &Row, last: Timestamp) -> Result<()> {
        let most = match row.last_alive {
            Some(_) => VERDICTS,
            None => VERDICTS_NEVER_ALIVE,
        };
        for back in (0..most).rev() {
            let failed = row.state == "dead" || back < row.failures;
            let (verdict, reason) = if failed {
                ("dead", Some("no such name"))
            } else {
                ("alive", None)
            };
            let at = last.minus(row.interval * back);
            self.verdict
                .execute(params![id, most - back, at.0, verdict, reason])
                .context("a verdict")?;
        }
        Ok(())
    }
}
