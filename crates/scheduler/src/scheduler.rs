//! The scheduler: takes events, keeps the state, and returns commands.

mod ended;
mod recovery;
mod start_due;
mod ways;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::hash::RandomState;
use std::time::Duration;

use census::class::Class;
use census::state::{Record, Verdict};
use census::time::{Calendar, Timestamp};
use protocol::Host;
use protocol::egress::{Way, Wish};

use crate::blame::blackout::{NoSuccess, Scope};
use crate::blame::canaries::Canaries;
use crate::blame::faults::{Faulters, Lately};
use crate::blame::outage::Outage;
use crate::blame::ways::{WayState, Ways};
use crate::command::{Command, Notice, Release, Released, Wait};
use crate::demand::deferral::EarlyAsks;
use crate::demand::in_progress::{InProgress, Stage};
use crate::event::{CheckNumber, Event, SlotHolder};
use crate::publication::{Extent, Force, LastList, Publication};
use crate::slots::concurrency::Bounds;
use crate::slots::{Patience, Slots, Throttle};

use start_due::Demand;

/// Longest time between taking a host in the store and its report: a transaction waits for the disk
/// and for earlier transactions.
const TAKE_MAX: Duration = Duration::from_secs(60);

/// The operator's settings, and facts from the last run.
#[derive(Debug)]
pub struct Settings {
    /// Bounds of the number of containers at once.
    pub containers: Bounds,
    /// Hosts that may be opened or checked at once, while all containers are allowed.
    pub opens_max: u32,
    /// Checks that may start per second, whatever the load.
    pub starts_per_second: u32,
    pub canaries: Vec<Host>,
    /// Whether there are two gateways.
    pub has_second_way: bool,
    /// The first success and every n-th one after it request the peers.
    pub peers_every: u32,
    pub calendar: Calendar,
    /// The last published list, if there is one.
    pub published: Option<LastList>,
    /// The ordinary pause between two lists.
    pub publish_interval: Duration,
    /// If no host is due, hosts are counted again after this at the latest, because rows change
    /// without an event.
    pub count_again_after: Duration,
    /// Interval of ticks while anything waits.
    pub look_around_every: Duration,
    /// Secret key that hashes the names to be remembered.
    pub name_key: RandomState,
}

/// Makes the daemon's decisions. See the crate's documentation.
#[derive(Debug)]
pub struct Scheduler {
    canaries: Canaries,
    peers_every: u32,
    calendar: Calendar,
    opens_max: u32,
    look_around_every: Duration,
    demand: Demand,
    early_asks: EarlyAsks,
    in_progress: InProgress,
    slots: Slots,
    checks: HashMap<CheckNumber, Check>,
    checks_begun: u64,
    /// Hosts from being taken until their row is written, with their check while it runs.
    in_flight: HashMap<Host, Option<CheckNumber>>,
    /// Hosts whose owners opted out lately. The store may still report such a host as taken.
    opted_out: Vec<(Host, Timestamp)>,
    /// Hosts whose row the store could not write. They are released when it works again.
    unwritten: Vec<Host>,
    ways: Ways<Failure>,
    faulters: Faulters,
    outage: Outage,
    /// When the parts answered last whether they work.
    parts_answered: Timestamp,
    asks_parts: bool,
    publication: Publication,
    /// Hosts whose response is being written, while the first list is awaited.
    responding: Vec<Host>,
    commands: Vec<Command>,
}

#[derive(Debug)]
struct Check {
    record: Box<Record>,
    class: Class,
    faults: u32,
    began: Timestamp,
    way: Way,
    stage: Stage,
}

/// A failed check that waits until others succeed.
#[derive(Debug)]
enum Failure {
    Verdict {
        record: Box<Record>,
        verdict: Verdict,
    },
    /// A fault that the host may have caused.
    Fault {
        record: Box<Record>,
        what: String,
        lately: Lately,
        faults: u32,
    },
}

/// Why no more containers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    Slots,
    /// The gateway has no dial to spare.
    Dials,
    /// Hosts that are due wait for their paces.
    Paces,
    Due,
}

/// The scheduler's state for `status`, `health` and the metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Hosts that are being checked, or whose row is being written.
    pub in_flight: usize,
    /// Failures that wait for confirmation.
    pub waiting: usize,
    /// Containers that may run at once now.
    pub containers_allowed: u32,
    pub containers: Bounds,
    pub containers_running: u32,
    pub limit: Limit,
    /// Checks that may start per second.
    pub start_rate: f64,
    /// Hosts being opened or checked, by class.
    pub in_progress: BTreeMap<&'static str, u32>,
    /// Which part of ours does not work, and since when.
    pub outage: Option<(String, Timestamp)>,
    /// The current blackout: no check has succeeded for a while, most likely because of us.
    pub blackout: Option<NoSuccess>,
    /// Both ways out; empty if there is only one.
    pub ways: Vec<WayState>,
}

impl Scheduler {
    /// A scheduler at the start of a census, with nothing in flight.
    pub fn new(settings: Settings, now: Timestamp) -> Self {
        Self {
            canaries: Canaries::new(settings.canaries),
            peers_every: settings.peers_every,
            calendar: settings.calendar,
            opens_max: settings.opens_max,
            look_around_every: settings.look_around_every,
            demand: Demand::new(settings.starts_per_second, settings.count_again_after, now),
            early_asks: EarlyAsks::default(),
            in_progress: InProgress::default(),
            slots: Slots::new(settings.containers, now),
            checks: HashMap::new(),
            checks_begun: 0,
            in_flight: HashMap::new(),
            opted_out: Vec::new(),
            unwritten: Vec::new(),
            ways: Ways::new(settings.has_second_way, now, settings.name_key),
            faulters: Faulters::default(),
            outage: Outage::default(),
            parts_answered: now,
            asks_parts: false,
            publication: Publication::new(
                now,
                settings.published,
                settings.calendar,
                settings.publish_interval,
            ),
            responding: Vec::new(),
            commands: Vec::new(),
        }
    }

    /// Handles an event. The commands have to be carried out in this order.
    pub fn on(&mut self, event: Event, now: Timestamp) -> Vec<Command> {
        match event {
            Event::Tick => self.tick(now),
            Event::Pressure(pressure) => self.slots.pressure(pressure, now),
            Event::ClockSet => self.clock_was_set(now),
            Event::RowsChanged => self.demand.count_now(),
            Event::Demand {
                waiting,
                next_due,
                load,
            } => self.divide(waiting, next_due, load, now),
            Event::Taken {
                hosts,
                not_admitted,
            } => self.taken(hosts, not_admitted, now),
            Event::TakenOne { taken, trigger } => self.taken_one(taken, trigger, now),
            Event::CanaryRefused { wish, left } => self.ask_canary(wish, left, now),
            Event::StoreFailed { what } => {
                self.demand.take_ended();
                self.stop(what, now);
            }
            Event::Opened { check, demand } => self.opened(check, demand, now),
            Event::SlotWanted { reading } => {
                let holder = SlotHolder::Reading(reading);
                self.slots.ask(holder, Patience::Waits, now);
            }
            Event::SlotReturned { reading } => self.slots.give_back(SlotHolder::Reading(reading)),
            Event::FirstOutput { check } => self.slots.started(SlotHolder::Check(check), now),
            Event::CheckEnded { check, outcome } => self.check_ended(check, outcome, now),
            Event::Written { host, outcome } => self.written(host, outcome, now),
            Event::PartStatus(status) => self.part_status(status, now),
            Event::WayStatus { way, status } => self.way_status(way, status, now),
            Event::PartFailed { what } => self.stop(what, now),
            Event::OptedOut { host } => self.opted_out(&host, now),
            Event::Withdrawn => self.publication.withdrawn(now),
            Event::PagesOutdated => self.publication.pages_outdated(now),
            Event::PublishAsked(force) => {
                let publication = self.publication.ask(force, now);
                self.publish(publication);
            }
            Event::Published {
                again,
                has_pages,
                has_names,
                interval,
            } => {
                if has_names {
                    self.publication.listed();
                }
                let publication = self.publication.ended(again, has_pages, interval, now);
                self.publish(publication);
            }
        }
        self.grant_slots(now);
        self.count_due(now);
        std::mem::take(&mut self.commands)
    }

    /// When [`Event::Tick`] should be sent, if no other event comes before.
    pub fn wakes_at(&self, now: Timestamp) -> Timestamp {
        let mut wakes_at = Timestamp(i64::MAX);
        if !self.publication.is_in_progress() {
            wakes_at = self.publication.next();
        }
        if self.wants_to_count() {
            wakes_at = wakes_at.min(self.demand.count_at());
        }
        let something_waits = self.ways.waiting() > 0
            || self.ways.is_any_ill()
            || self.outage.is_any()
            || self.slots.are_waited_for()
            || self.publication.is_in_progress();
        if something_waits {
            wakes_at = wakes_at.min(now.plus(self.look_around_every));
        }
        wakes_at
    }

    /// Which part of ours does not work and since when, if no check may start.
    pub fn outage(&self) -> Option<(String, Timestamp)> {
        self.outage
            .is_on()
            .then(|| self.outage.describe())
            .flatten()
    }

    /// Hosts in flight, which a daemon has to release when it ends.
    pub fn in_flight(&self) -> impl Iterator<Item = &Host> {
        self.in_flight.keys()
    }

    pub fn snapshot(&self) -> Snapshot {
        let counts = self.in_progress.counts();
        Snapshot {
            in_flight: self.in_flight.len(),
            waiting: self.ways.waiting(),
            containers_allowed: self.slots.allowed(),
            containers: self.slots.bounds(),
            containers_running: self.slots.taken(),
            limit: if self.slots.are_waited_for() {
                Limit::Slots
            } else {
                self.demand.limit()
            },
            start_rate: self.demand.rate(),
            in_progress: Class::ALL
                .into_iter()
                .map(|class| (class.as_str(), *counts.of(class)))
                .collect(),
            outage: self.outage.describe(),
            blackout: self.ways.blackout(),
            ways: self.ways.states(),
        }
    }

    fn tick(&mut self, now: Timestamp) {
        self.opted_out
            .retain(|(_, at)| now.since(*at) < TAKE_MAX && *at <= now);
        for &way in self.ways.all() {
            for failure in self.ways.side(way).doubts.expire(now) {
                self.drop_unconfirmed(failure, way, now);
            }
            let (side, other) = self.ways.pair(way);
            let is_escaped =
                |no_success: &NoSuccess| no_success.scope == Scope::Anywhere && other.is_some();
            if let Some(no_success) = side.blackout.look(now)
                && !is_escaped(&no_success)
            {
                self.report(Notice::BlackoutBegan(no_success));
            }
        }
        self.report_ways(now);
        for holder in self.slots.expire(now) {
            self.commands.push(Command::TurnAway(holder));
        }
        self.look_at_parts(now);
        if !self.outage.is_on() {
            for &way in self.ways.all() {
                for wish in self.ways.side(way).doubts.wants_canaries(now) {
                    self.ask_canary(Wish { way, ..wish }, self.canaries.count(), now);
                }
            }
        }
        let publication = self.publication.due(now);
        self.publish(publication);
        let throttle = if self.publication.throttles(now) {
            Throttle::On
        } else {
            Throttle::Off
        };
        self.slots.throttle(throttle);
    }

    fn clock_was_set(&mut self, now: Timestamp) {
        self.publication.clock_was_set(now);
        self.demand.clock_was_set(now);
        self.ways.clock_was_set(now);
        self.slots.clock_was_set(now);
        self.parts_answered = now;
    }

    /// The host's owner opted out: its check ends at once.
    fn opted_out(&mut self, host: &Host, now: Timestamp) {
        self.opted_out.push((host.clone(), now));
        if let Some(check) = self.in_flight.get_mut(host).and_then(Option::take) {
            self.forget_check(check);
            self.commands.push(Command::Abort { check });
            self.release(host.clone(), Wait::Soon, Released::OptedOut);
        }
    }

    fn grant_slots(&mut self, now: Timestamp) {
        for holder in self.slots.grant(now) {
            self.commands.push(Command::GrantSlot(holder));
        }
    }

    /// Removes the check, and frees its slot.
    fn forget_check(&mut self, number: CheckNumber) -> Option<Check> {
        self.slots.give_back(SlotHolder::Check(number));
        let check = self.checks.remove(&number)?;
        self.in_progress.leave(check.class, check.stage);
        Some(check)
    }

    fn publish(&mut self, publication: Option<(Extent, Force)>) {
        if let Some((extent, force)) = publication {
            self.commands.push(Command::Publish { extent, force });
        }
    }

    fn release(&mut self, host: Host, wait: Wait, why: Released) {
        let release = Release { host, wait, why };
        self.commands.push(Command::Release(release));
    }

    fn report(&mut self, notice: Notice) {
        self.commands.push(Command::Report(notice));
    }
}
