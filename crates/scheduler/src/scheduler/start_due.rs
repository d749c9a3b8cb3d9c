//! Step 1 of 7: which hosts are taken, and when their checks start.

use std::time::Duration;

use census::class::PerClass;
use census::schedule::asks_peers;
use census::time::Timestamp;
use protocol::egress::Wish;
use protocol::order::AskPeers;

use super::{Check, Limit, Scheduler};
use crate::command::{CanaryTurn, Command, Notice, Released, Start, Wait};
use crate::demand::in_progress::Stage;
use crate::demand::shares::{Room, Shares};
use crate::demand::start_rate::{Load, MEASURE_EVERY, PORTION, StartRate};
use crate::event::{CheckNumber, NotAdmitted, SlotDemand, SlotHolder, Taken, Trigger};
use crate::slots::Patience;

/// When due hosts are counted next, which class is next, and how fast checks may start.
#[derive(Debug)]
pub(super) struct Demand {
    count_at: Timestamp,
    count_again_after: Duration,
    /// Hosts are being counted or taken.
    is_asking: bool,
    measured: Option<Timestamp>,
    shares: Shares,
    rate: StartRate,
    /// Why the last host since the last measurement was not dialled.
    limit: Limit,
}

impl Demand {
    pub(super) fn new(starts_per_second: u32, count_again_after: Duration, now: Timestamp) -> Self {
        Self {
            count_at: Timestamp(i64::MIN),
            count_again_after,
            is_asking: false,
            measured: None,
            shares: Shares::default(),
            rate: StartRate::new(starts_per_second, now),
            limit: Limit::Due,
        }
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate.rate()
    }

    /// Why no more hosts are opened.
    pub(super) fn limit(&self) -> Limit {
        self.limit
    }

    pub(super) fn count_at(&self) -> Timestamp {
        self.count_at
    }

    /// Counts again soon, because hosts may have become due.
    pub(super) fn count_now(&mut self) {
        self.count_at = Timestamp(i64::MIN);
    }

    pub(super) fn take_ended(&mut self) {
        self.is_asking = false;
    }

    pub(super) fn clock_was_set(&mut self, now: Timestamp) {
        self.count_now();
        self.measured = None;
        self.rate.clock_was_set(now);
    }

    /// The gateway deferred a host because of its paces, before it dialled, so that start is
    /// available again. Otherwise crowds of such hosts, which ask again and again, would use up the
    /// starts of hosts whose turn it is.
    pub(super) fn was_out_of_turn(&mut self) {
        self.limit = Limit::Paces;
        self.rate.returned();
    }

    /// The gateway had no dial to spare: more hosts were opened than it may dial.
    pub(super) fn ran_out_of_dials(&mut self, now: Timestamp) {
        self.limit = Limit::Dials;
        self.rate.lower(now);
    }
}

impl Scheduler {
    /// How many more hosts may be opened. Fewer in proportion while fewer containers are allowed,
    /// because each opened host may wait for a slot.
    pub(super) fn room(&self) -> Room {
        let (allowed, bounds) = (self.slots.allowed(), self.slots.bounds());
        let most = in_proportion(self.opens_max, allowed, bounds.most);
        self.in_progress.room(self.outage.room(most))
    }

    pub(super) fn wants_to_count(&self) -> bool {
        !self.demand.is_asking && !self.outage.is_on() && self.room().free > 0
    }

    /// Requests a count of due hosts, if it is time for one and there is room.
    pub(super) fn count_due(&mut self, now: Timestamp) {
        if !self.wants_to_count() || now < self.demand.count_at {
            return;
        }
        let most = self.room().free.min(self.demand.rate.ready(now));
        if most == 0 {
            self.demand.count_at = now.plus(self.demand.rate.wait());
            return;
        }
        let is_fresh = |at: Timestamp| now.since(at) < MEASURE_EVERY;
        let with_load = !self.demand.measured.is_some_and(is_fresh);
        self.demand.is_asking = true;
        self.commands.push(Command::CountDue { most, with_load });
    }

    /// Divides the room among the classes of due hosts.
    pub(super) fn divide(
        &mut self,
        waiting: PerClass<u32>,
        next_due: Option<Timestamp>,
        load: Option<Load>,
        now: Timestamp,
    ) {
        if let Some(load) = load {
            self.demand.measured = Some(now);
            self.demand.limit = Limit::Due;
            self.demand.rate.measured(load, self.calendar, now);
        }
        let mut room = self.room();
        room.free = room.free.min(self.demand.rate.ready(now));
        let wanted = self.demand.shares.divide(room, waiting);
        if wanted.sum() > 0 {
            self.commands.push(Command::Take { wanted });
            return;
        }
        self.demand.is_asking = false;
        let again = now.plus(self.demand.count_again_after);
        let soon = now.plus(PORTION);
        self.demand.count_at = if room.free == 0 {
            soon
        } else {
            next_due.unwrap_or(again).min(again).max(soon)
        };
    }

    /// Starts the hosts that the store has taken; they are in flight from now on.
    pub(super) fn taken(
        &mut self,
        hosts: Vec<Taken>,
        not_admitted: Vec<NotAdmitted>,
        now: Timestamp,
    ) {
        self.demand.is_asking = false;
        let count = hosts.len().saturating_add(not_admitted.len());
        self.demand
            .rate
            .spend(u32::try_from(count).unwrap_or(u32::MAX));
        // One write for all hosts that find room within this time, instead of one for each.
        self.demand.count_at = now.plus(self.demand.rate.wait().max(PORTION));
        for NotAdmitted { host, due, why } in not_admitted {
            self.in_flight.insert(host.clone(), None);
            let wait = due.map_or(Wait::Soon, Wait::Until);
            self.release(host, wait, Released::NotAdmitted(why));
        }
        for taken in hosts {
            self.start_unless_stopped(taken, Trigger::Scheduled, now);
        }
    }

    pub(super) fn taken_one(&mut self, taken: Taken, trigger: Trigger, now: Timestamp) {
        if let Trigger::Canary(wish) = trigger
            && !self.outage.is_on()
        {
            self.report(Notice::CanaryAsked {
                host: taken.record.host.clone(),
                family: wish.family,
                waiting: self.ways.waiting(),
            });
        }
        self.start_unless_stopped(taken, trigger, now);
    }

    /// The owner may have opted out, or an outage may have begun, while the store took the host.
    fn start_unless_stopped(&mut self, taken: Taken, trigger: Trigger, now: Timestamp) {
        let host = taken.record.host.clone();
        let why = if self.opted_out.iter().any(|(other, _)| *other == host) {
            Released::OptedOut
        } else if let Some((what, _since)) = self.outage() {
            Released::Fault(what)
        } else {
            self.start(taken, trigger, now);
            return;
        };
        self.in_flight.insert(host.clone(), None);
        self.release(host, Wait::Soon, why);
    }

    pub(super) fn ask_canary(&mut self, wish: Wish, left: usize, now: Timestamp) {
        if let Some(left) = left.checked_sub(1)
            && let Some(host) = self.canaries.take_turn(now)
        {
            let turn = CanaryTurn { host, wish, left };
            self.commands.push(Command::TakeCanary(turn));
        }
    }

    fn start(&mut self, taken: Taken, trigger: Trigger, now: Timestamp) {
        let Taken {
            record,
            class,
            faults,
        } = taken;
        let host = record.host.clone();
        let check = CheckNumber(self.checks_begun);
        self.checks_begun = self.checks_begun.saturating_add(1);
        // A host that failed before is looked up in DNS again, so that its failure may count.
        let mut wish = Wish {
            family: None,
            fresh: self.ways.suspect(&host),
            way: self.ways.next(&host, now),
        };
        let mut asks = asks_peers(&record, self.peers_every);
        if let Trigger::Canary(needed) = trigger {
            wish.family = needed.family;
            wish.fresh |= needed.fresh;
            wish.way = needed.way;
            asks = asks && self.canaries.may_ask_peers(&host, now);
        }
        self.in_progress.enter(class);
        self.in_flight.insert(host.clone(), Some(check));
        self.checks.insert(
            check,
            Check {
                record,
                class,
                faults,
                began: now,
                way: wish.way,
                stage: Stage::Opening,
            },
        );
        self.commands.push(Command::Start(Start {
            check,
            host,
            class,
            wish,
            peers: if asks { AskPeers::Ask } else { AskPeers::Skip },
            trigger,
        }));
    }

    /// The gateway has answered. If the host accepted a connection, the check waits for a slot.
    pub(super) fn opened(&mut self, number: CheckNumber, demand: SlotDemand, now: Timestamp) {
        let Some(check) = self.checks.get_mut(&number) else {
            return;
        };
        check.stage = self.in_progress.opened(check.class, demand);
        if check.stage == Stage::Opening {
            return;
        }
        let patience = match check.class {
            census::class::Class::Living => Patience::Waits,
            census::class::Class::New
            | census::class::Class::Retry
            | census::class::Class::Dead => Patience::TurnedAway,
        };
        let holder = SlotHolder::Check(number);
        if !self.slots.ask(holder, patience, now) {
            self.commands.push(Command::TurnAway(holder));
        }
    }
}

/// Scales `whole` by `part` / `all`. The result is at least `part`, because the settings make
/// `whole` at least `all`.
fn in_proportion(whole: u32, part: u32, all: u32) -> u32 {
    let scaled = u64::from(whole)
        .saturating_mul(u64::from(part))
        .checked_div(u64::from(all))
        .unwrap_or_else(|| u64::from(whole).saturating_mul(u64::from(part)));
    u32::try_from(scaled).unwrap_or(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_opened_in_proportion_to_the_containers_and_one_per_container_at_least() {
        assert_eq!(in_proportion(16, 4, 4), 16);
        assert_eq!(in_proportion(16, 1, 4), 4);
        assert_eq!(in_proportion(5, 3, 5), 3);
        assert_eq!(in_proportion(64, 5, 64), 5);
        assert_eq!(in_proportion(9, 2, 0), 18);
    }
}
