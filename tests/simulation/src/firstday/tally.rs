//! What a first day came to: minutes, hours with what bound in each, and broken promises.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use census::state::Record;
use census::time::Timestamp;
use protocol::Host;
use protocol::egress::Deferral;
use scheduler::command::{Release, Released};
use scheduler::{Limit, Snapshot};

use super::FirstDay;
use crate::guard::GROUP_THRESHOLD;
use crate::world::known::KnownWorld;

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

#[derive(Debug, Default)]
pub(super) struct Tally {
    start: Timestamp,
    judged: HashMap<Host, Timestamp>,
    minutes: Vec<Minute>,
    hours: Vec<Hour>,
    first_list: Option<Duration>,
    lists_made: u32,
    pub(super) lists: u32,
    listed: Vec<String>,
    containers_most: u32,
    /// Visits of each canary, by day.
    canaries: HashMap<Host, BTreeMap<u64, u32>>,
    floods: HashMap<Host, u64>,
    killed: u64,
}

impl Tally {
    pub(super) fn new(start: Timestamp) -> Self {
        Self {
            start,
            ..Self::default()
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

    pub(super) fn minute(&mut self, listed: Vec<String>, rows: u64) {
        self.minutes.push(Minute {
            judged: self.judged.len(),
            listed: listed.len(),
            rows,
        });
        self.listed = listed;
    }

    pub(super) fn published(&mut self, names: u64, now: Timestamp) {
        self.lists_made += 1;
        if names > 0 {
            self.first_list.get_or_insert(now.since(self.start));
        }
    }

    pub(super) fn canary(&mut self, host: &Host, now: Timestamp) {
        let day = now.since(self.start).as_secs() / 86_400;
        let days = self.canaries.entry(host.clone()).or_default();
        *days.entry(day).or_default() += 1;
    }

    /// The canary with the most visits within a day, and those.
    fn most_visited(&self) -> Option<(&Host, u32)> {
        let most = |(host, days): (_, &BTreeMap<_, u32>)| (host, days.values().max().copied());
        let canaries = self.canaries.iter().map(most);
        canaries
            .filter_map(|(host, visits)| Some((host, visits?)))
            .max_by_key(|(_, visits)| *visits)
    }

    pub(super) fn killed(&mut self, recovered: u64) {
        self.killed += recovered;
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
    pub(super) fn committed(&mut self, record: &Record, now: Timestamp) -> anyhow::Result<()> {
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

    /// Which part of a flood's names this host lists, if it is one of its sources: the first hosts
    /// that are read.
    pub(super) fn flood_part(&mut self, by: &Host, sources: u32) -> Option<u64> {
        let next = self.floods.len() as u64;
        if next >= u64::from(sources) || self.floods.contains_key(by) {
            return None;
        }
        self.floods.insert(by.clone(), next);
        Some(next)
    }

    pub(super) fn report(
        self,
        plan: &FirstDay,
        world: &KnownWorld,
        waiting: u64,
        held: u64,
        bytes: u64,
    ) -> Report {
        let turns = plan.span().as_millis() / PROMISED_PACE.as_millis();
        let mut names_of = HashMap::<&str, u32>::new();
        for known in &world.hosts {
            *names_of.entry(&known.domain).or_default() += 1;
        }
        let listed: HashSet<&str> = self.listed.iter().map(String::as_str).collect();
        let [mut due, mut small, mut all, mut hosters] = [Share::default(); 4];
        for known in world.living() {
            let is_listed = listed.contains(known.host.as_str());
            all.count(is_listed);
            let names = names_of.get(&*known.domain).copied().unwrap_or(0);
            if u128::from(names) <= turns {
                small.count(is_listed);
                if known.is_of_hoster() || names <= GROUP_THRESHOLD {
                    due.count(is_listed);
                }
            }
            if known.is_of_hoster() {
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
        if let Some((host, visits)) = self.most_visited()
            && visits > CANARY_VISITS_MAX
        {
            missed.push(format!(
                "the canary {host} was visited {visits} times in a day"
            ));
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
        let enough = f64::from(self.all.whole) * LISTED_MIN;
        let mut minutes = tally.minutes.iter();
        let reached = minutes.position(|minute| minute.listed as f64 >= enough);
        let reached = reached.map_or_else(|| "–".to_owned(), |minute| format!("{minute} min"));
        let names = tally.minutes.last().map_or(0, |minute| minute.rows);
        let most = tally.containers_most;
        format!(
            "\
| what became of it | |
|---|---|
| living listed, but for domains too large for their pace and undecided groups | {} |
| the same with undecided groups | {} |
| all living listed | {} |
| living of hosters listed | {} |
| 99 % of all living listed after | {reached} |
| first list with a name | {first} |
| lists made | {} |
| peers lists read | {} |
| names known, held, waiting | {names}, {}, {} |
| names judged | {} |
| containers at once at most; memory with the stack | {most}; {} MiB |
| visits of one canary in a day at most | {} |
| lost by kills | {} |
| database | {} MB |
{}",
            self.due,
            self.small,
            self.all,
            self.hosters,
            tally.lists_made,
            tally.lists,
            self.held,
            self.waiting,
            tally.judged.len(),
            STACK_MIB + CHECK_MIB * most,
            tally.most_visited().map_or(0, |(_, visits)| visits),
            tally.killed,
            self.bytes / 1_000_000,
            self.hours(),
        )
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
