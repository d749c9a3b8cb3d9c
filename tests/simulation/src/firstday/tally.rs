//! What a first day came to: minutes, hours with what bound in each, and broken promises.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use census::state::{Record, Verdict};
use census::time::Timestamp;
use gateway::Paces;
use protocol::Host;
use protocol::egress::Deferral;
use scheduler::command::{Release, Released};
use scheduler::{Limit, Snapshot};

use super::FirstDay;
use super::known::KnownWorld;
use crate::guard::GROUP_THRESHOLD;

/// Memory of a check in flight and of all that runs besides checks, in MiB, as measured.
const CHECK_MIB: u32 = 11;
const STACK_MIB: u32 = 280;

/// A promised turn is a quarter later than its pace allows.
const PROMISED_PACE: Duration = Duration::from_millis(12_500);

/// Within this time no host is judged twice.
const JUDGED_ONCE_IN: Duration = Duration::from_secs(20 * 3600);

/// Goals: of the living, the share that is listed; until the first list; a canary's visits a day.
const LISTED_MIN: f64 = 0.99;
const FIRST_LIST_MAX: Duration = Duration::from_secs(120);
const CANARY_VISITS_MAX: u32 = 48;

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy)]
struct Minute {
    judged: usize,
    listed: usize,
    rows: u64,
}

/// What bound in an hour, in looks of a second, and what was done.
#[derive(Debug, Clone, Copy, Default)]
struct Hour {
    processor: u32,
    containers: u32,
    dials: u32,
    paces: u32,
    due: u32,
    in_containers: u32,
    judged: u32,
    again: u32,
    by_domain: u32,
    by_address: u32,
    other: u32,
}

#[derive(Debug)]
pub(super) struct Tally {
    plan: FirstDay,
    start: Timestamp,
    judged: HashMap<Host, Timestamp>,
    minutes: Vec<Minute>,
    hours: Vec<Hour>,
    first_list: Option<Duration>,
    lists_made: u32,
    pub(super) lists: u32,
    listed: Vec<String>,
    containers_most: u32,
    canaries: HashMap<Host, u32>,
    floods: HashMap<Host, u64>,
    killed: u64,
    /// The last visits, which a killed gateway forgets.
    domains: HashMap<Box<str>, Timestamp>,
    addresses: HashMap<IpAddr, Timestamp>,
    blocks: HashMap<[u8; 3], Timestamp>,
    proven: HashSet<IpAddr>,
}

impl Tally {
    pub(super) fn new(plan: &FirstDay, start: Timestamp) -> Self {
        Self {
            plan: plan.clone(),
            start,
            judged: HashMap::new(),
            minutes: Vec::new(),
            hours: Vec::new(),
            first_list: None,
            lists_made: 0,
            lists: 0,
            listed: Vec::new(),
            containers_most: 0,
            canaries: HashMap::new(),
            floods: HashMap::new(),
            killed: 0,
            domains: HashMap::new(),
            addresses: HashMap::new(),
            blocks: HashMap::new(),
            proven: HashSet::new(),
        }
    }

    fn hour(&mut self, now: Timestamp) -> &mut Hour {
        let hour = usize::try_from(now.since(self.start).as_secs() / 3600).unwrap_or(0);
        if self.hours.len() <= hour {
            self.hours.resize(hour + 1, Hour::default());
        }
        #[expect(
            clippy::indexing_slicing,
            reason = "invariant: it was just made long enough"
        )]
        &mut self.hours[hour]
    }

    /// Notes what binds. Returns whether a minute is over.
    pub(super) fn look(&mut self, snapshot: &Snapshot, idle: f64, now: Timestamp) -> bool {
        let running = snapshot.containers_running;
        self.containers_most = self.containers_most.max(running);
        let hour = self.hour(now);
        hour.in_containers += running;
        match snapshot.limit {
            Limit::Slots if idle < 0.1 => hour.processor += 1,
            Limit::Slots => hour.containers += 1,
            Limit::Dials => hour.dials += 1,
            Limit::Paces => hour.paces += 1,
            Limit::Due => hour.due += 1,
        }
        let minutes = u32::try_from(self.minutes.len()).unwrap_or(u32::MAX);
        now.since(self.start) >= MINUTE.saturating_mul(minutes)
    }

    pub(super) fn minute(&mut self, listed: &[String], rows: u64, _now: Timestamp) {
        self.listed = listed.to_vec();
        self.minutes.push(Minute {
            judged: self.judged.len(),
            listed: listed.len(),
            rows,
        });
    }

    pub(super) fn published(&mut self, names: u64, now: Timestamp) {
        self.lists_made += 1;
        if names > 0 {
            self.first_list.get_or_insert(now.since(self.start));
        }
    }

    pub(super) fn canary(&mut self, host: &Host) {
        *self.canaries.entry(host.clone()).or_default() += 1;
    }

    pub(super) fn killed(&mut self, recovered: u64) {
        self.killed += recovered;
        self.domains.clear();
        self.addresses.clear();
        self.blocks.clear();
        self.proven.clear();
    }

    pub(super) fn released(&mut self, release: &Release, now: Timestamp) {
        let hour = self.hour(now);
        match &release.why {
            Released::Deferred(Deferral::GroupPace) => hour.by_domain += 1,
            Released::Deferred(Deferral::AddressPace | Deferral::BlockPace) => hour.by_address += 1,
            Released::FailedOnce(_) | Released::Unconfirmed(_) => hour.again += 1,
            Released::Deferred(_)
            | Released::Offline
            | Released::Fault(_)
            | Released::CountedFault(_)
            | Released::HitOthers(_)
            | Released::OptedOut
            | Released::StoreFailed
            | Released::NotAdmitted(_) => hour.other += 1,
        }
    }

    /// # Errors
    /// The host was judged less than 20 hours before.
    pub(super) fn committed(
        &mut self,
        record: &Record,
        _verdict: &Verdict,
        now: Timestamp,
    ) -> anyhow::Result<()> {
        self.hour(now).judged += 1;
        let host = &record.host;
        let is_canary = self.canaries.contains_key(host);
        let last = self.judged.insert(host.clone(), now);
        let is_early = last.is_some_and(|last| now.since(last) < JUDGED_ONCE_IN);
        anyhow::ensure!(
            !is_early || is_canary,
            "{host} was judged twice in 20 hours"
        );
        Ok(())
    }

    /// # Errors
    /// The domain's name servers were asked faster than its pace.
    pub(super) fn looked_up(&mut self, domain: &str, now: Timestamp) -> anyhow::Result<()> {
        let last = self.domains.insert(domain.into(), now);
        let is_early = last.is_some_and(|last| now.since(last) < Paces::default().group);
        anyhow::ensure!(!is_early, "{domain} was asked twice within its pace");
        Ok(())
    }

    pub(super) fn prove(&mut self, address: IpAddr) {
        self.proven.insert(address);
    }

    /// # Errors
    /// The address or its block was dialled faster than its pace.
    pub(super) fn dialled(&mut self, address: Option<IpAddr>, at: Timestamp) -> anyhow::Result<()> {
        let Some(IpAddr::V4(address)) = address else {
            return Ok(());
        };
        let paces = Paces::default();
        let [a, b, c, _] = address.octets();
        let by_address = self.addresses.insert(address.into(), at);
        let by_block = self.blocks.insert([a, b, c], at);
        let is_early =
            |last: Option<Timestamp>, pace| last.is_some_and(|last| at.since(last) < pace);
        let is_proven = self.proven.contains(&address.into());
        anyhow::ensure!(
            is_proven || !is_early(by_address, paces.address),
            "{address} was dialled twice within its pace"
        );
        anyhow::ensure!(
            !is_early(by_block, paces.block),
            "the block of {address} was dialled twice within its pace"
        );
        Ok(())
    }

    /// Which part of a flood's names this host lists, if it is one of its sources: the first hosts
    /// that are read.
    pub(super) fn flood_part(&mut self, by: &Host) -> Option<u64> {
        let next = self.floods.len() as u64;
        if next >= u64::from(self.plan.flood) || self.floods.contains_key(by) {
            return None;
        }
        self.floods.insert(by.clone(), next);
        Some(next)
    }

    pub(super) fn report(self, world: &KnownWorld, waiting: u64, held: u64, bytes: u64) -> Report {
        let turns = self.plan.span().as_millis() / PROMISED_PACE.as_millis();
        let listed: HashSet<&str> = self.listed.iter().map(String::as_str).collect();
        let [mut due, mut small, mut all, mut hosters] = [Share::default(); 4];
        for known in world.living() {
            let is_listed = listed.contains(known.host.as_str());
            all.count(is_listed);
            let names = world.names_of_domain(&known.domain);
            let is_hoster = known.group.starts_with("hoster:");
            if u128::from(names) <= turns {
                small.count(is_listed);
                if is_hoster || names <= GROUP_THRESHOLD {
                    due.count(is_listed);
                }
            }
            if is_hoster {
                hosters.count(is_listed);
            }
        }
        let mut missed = Vec::new();
        if due.of_one() < LISTED_MIN {
            missed.push(format!("of the living, {due} are listed"));
        }
        if self.first_list.is_none_or(|after| after > FIRST_LIST_MAX) {
            missed.push("the first list came too late".to_owned());
        }
        if let Some((host, visits)) = self.canaries.iter().max_by_key(|(_, visits)| **visits)
            && *visits > CANARY_VISITS_MAX
        {
            missed.push(format!("the canary {host} was visited {visits} times"));
        }
        Report {
            tally: self,
            due,
            small,
            all,
            hosters,
            waiting,
            held,
            bytes,
            missed,
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Share {
    part: u32,
    whole: u32,
}

impl Share {
    fn count(&mut self, counts: bool) {
        self.whole += 1;
        self.part += u32::from(counts);
    }

    fn of_one(self) -> f64 {
        f64::from(self.part) / f64::from(self.whole.max(1))
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = self.of_one() * 100.0;
        write!(f, "{percent:.2} % ({} of {})", self.part, self.whole)
    }
}

/// A first day's result.
#[derive(Debug)]
pub struct Report {
    tally: Tally,
    due: Share,
    small: Share,
    all: Share,
    hosters: Share,
    waiting: u64,
    held: u64,
    bytes: u64,
    /// Goals that were missed, one a line.
    pub missed: Vec<String>,
}

impl Report {
    /// The result and its hours, in Markdown.
    pub fn table(&self) -> String {
        let tally = &self.tally;
        let first = tally.first_list.map_or_else(
            || "none".to_owned(),
            |after| format!("after {} s", after.as_secs()),
        );
        let reached = tally.minutes.iter().position(|minute| {
            let enough = f64::from(self.all.whole) * LISTED_MIN;
            minute.listed as f64 >= enough
        });
        let rows = tally.minutes.last().map_or(0, |minute| minute.rows);
        let visits = tally.canaries.values().max().copied().unwrap_or(0);
        let mut text = String::from("| what became of it | |\n|---|---|\n");
        for (what, value) in [
            (
                "living listed, but for domains too large for their pace and undecided groups",
                self.due.to_string(),
            ),
            ("the same with undecided groups", self.small.to_string()),
            ("all living listed", self.all.to_string()),
            ("living of hosters listed", self.hosters.to_string()),
            (
                "99 % of all living listed after",
                reached.map_or_else(|| "–".to_owned(), |minute| format!("{minute} min")),
            ),
            ("first list with a name", first),
            ("lists made", tally.lists_made.to_string()),
            ("peers lists read", tally.lists.to_string()),
            (
                "names known, held, waiting",
                format!("{rows}, {}, {}", self.held, self.waiting),
            ),
            ("names judged", tally.judged.len().to_string()),
            (
                "containers at once at most; memory with the stack",
                format!(
                    "{}; {} MiB",
                    tally.containers_most,
                    STACK_MIB + CHECK_MIB * tally.containers_most
                ),
            ),
            ("visits of one canary at most", visits.to_string()),
            ("lost by kills", tally.killed.to_string()),
            ("database", format!("{} MB", self.bytes / 1_000_000)),
        ] {
            writeln!(text, "| {what} | {value} |").unwrap_or(());
        }
        text.push_str(&self.hours());
        text
    }

    fn hours(&self) -> String {
        let mut text = String::from(
            "\n| hour | judged | asked again | containers busy | bound by processor | containers | dials | paces | nothing due | put off by domain | by address or block | otherwise |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        for (number, hour) in self.tally.hours.iter().enumerate() {
            let looks = hour.processor + hour.containers + hour.dials + hour.paces + hour.due;
            let share = |part: u32| 100 * part / looks.max(1);
            writeln!(
                text,
                "| {} | {} | {} | {} | {} % | {} % | {} % | {} % | {} % | {} | {} | {} |",
                number + 1,
                hour.judged,
                hour.again,
                hour.in_containers / looks.max(1),
                share(hour.processor),
                share(hour.containers),
                share(hour.dials),
                share(hour.paces),
                share(hour.due),
                hour.by_domain,
                hour.by_address,
                hour.other,
            )
            .unwrap_or(());
        }
        text
    }

    /// Writes the minutes as CSV.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn write_minutes(&self, path: &Path) -> std::io::Result<()> {
        let mut text = String::from("minute,names,judged,listed\n");
        for (number, minute) in self.tally.minutes.iter().enumerate() {
            let Minute {
                judged,
                listed,
                rows,
            } = minute;
            writeln!(text, "{number},{rows},{judged},{listed}").unwrap_or(());
        }
        std::fs::write(path, text)
    }
}
