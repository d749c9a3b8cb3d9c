//! The ways out of the census, one or two: what fails by each, whether it works, and which one a
//! check takes.
//!
//! Who answers from anywhere is up, so with two ways a failure counts only after the host has
//! failed by both ([`Doubts`]). Checks take the ways in turn, because each needs witnesses of its
//! own. While one way is ill, nothing that fails by it counts, and checks take the other one.

use std::hash::RandomState;
use std::time::Duration;

use census::time::Timestamp;
use protocol::Host;
use protocol::egress::Way;

use super::{Failure, Scheduler};
use crate::blame::blackout::{Blackout, NoSuccess, Scope};
use crate::blame::doubt::Doubts;
use crate::command::{Command, Notice, Released, Wait};
use crate::demand::in_progress::Stage;
use crate::scheduler::ended::{ASK_AGAIN_AFTER, OUTAGE_OVER_AFTER};

/// While no check succeeds by one way, one check in this time shows whether it works again.
const TRY_EVERY: Duration = Duration::from_secs(10);

/// Trouble that a check met lasts at least this long: a gateway that can't open may still report
/// that it works, and each check that takes its way is late by seconds.
pub(super) const MET_TROUBLE_FOR: Duration = Duration::from_secs(60);

/// A way out, as `status` and the metrics show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WayState {
    pub way: Way,
    /// What does not work, and since when.
    pub ill: Option<(String, Timestamp)>,
}

#[derive(Debug)]
pub(super) struct Ways {
    first: Side,
    second: Option<Side>,
    /// The way of the last check that could take either.
    turn: Way,
}

/// One way out.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) doubts: Doubts<Failure>,
    pub(super) blackout: Blackout,
    trouble: Option<Trouble>,
    /// Since when it is ill, if that was reported.
    reported: Option<Timestamp>,
    /// When a check last took it while no check succeeded by it.
    tried: Timestamp,
}

/// Its gateway does not answer, or says what does not work.
#[derive(Debug)]
struct Trouble {
    what: String,
    since: Timestamp,
    until: Timestamp,
}

impl Side {
    fn new(now: Timestamp, key: RandomState) -> Self {
        Self {
            doubts: Doubts::new(now, key),
            blackout: Blackout::default(),
            trouble: None,
            reported: None,
            tried: now,
        }
    }

    pub(super) fn is_ill(&self) -> bool {
        !self.works()
    }

    fn works(&self) -> bool {
        self.trouble.is_none() && !self.blackout.is_total()
    }

    fn ill(&self) -> Option<(String, Timestamp)> {
        let trouble = self.trouble.as_ref();
        let trouble = trouble.map(|trouble| (trouble.what.clone(), trouble.since));
        trouble.or_else(|| {
            let total = self
                .blackout
                .describe()
                .filter(|_| self.blackout.is_total());
            total.map(|no_success| (no_success.to_string(), Timestamp(no_success.since_ms)))
        })
    }

    fn is_tried(&mut self, now: Timestamp) -> bool {
        let is_tried = self.trouble.is_none() && now.since(self.tried) >= TRY_EVERY;
        if is_tried {
            self.tried = now;
        }
        is_tried
    }
}

impl Ways {
    pub(super) fn new(has_second: bool, now: Timestamp, key: RandomState) -> Self {
        Self {
            second: has_second.then(|| Side::new(now, key.clone())),
            first: Side::new(now, key),
            turn: Way::Second,
        }
    }

    pub(super) fn are_two(&self) -> bool {
        self.second.is_some()
    }

    pub(super) fn side(&mut self, way: Way) -> &mut Side {
        match (way, &mut self.second) {
            (Way::Second, Some(second)) => second,
            (Way::First | Way::Second, _) => &mut self.first,
        }
    }

    /// A way, and the other one if there is one that works.
    pub(super) fn pair(&mut self, way: Way) -> (&mut Side, Option<&mut Side>) {
        let Some(second) = &mut self.second else {
            return (&mut self.first, None);
        };
        let (own, other) = match way {
            Way::First => (&mut self.first, second),
            Way::Second => (second, &mut self.first),
        };
        let works = other.works();
        (own, works.then_some(other))
    }

    pub(super) fn clock_was_set(&mut self, now: Timestamp) {
        for side in std::iter::once(&mut self.first).chain(&mut self.second) {
            side.doubts.clock_was_set(now);
            side.tried = now;
            if let Some(trouble) = &mut side.trouble {
                trouble.until = now;
            }
        }
    }

    fn sides(&self) -> impl Iterator<Item = (Way, &Side)> {
        let second = self.second.as_ref();
        std::iter::once((Way::First, &self.first)).chain(second.map(|side| (Way::Second, side)))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Way> + use<> {
        let has_second = self.are_two();
        Way::ALL
            .into_iter()
            .filter(move |way| has_second || *way == Way::First)
    }

    /// The way that the next check of this host takes.
    pub(super) fn next(&mut self, host: &Host, now: Timestamp) -> Way {
        let Some(second) = &mut self.second else {
            return Way::First;
        };
        let first = &mut self.first;
        match (first.works(), second.works()) {
            (true, false) => return either(second.is_tried(now), Way::Second),
            (false, true) => return either(first.is_tried(now), Way::First),
            (true, true) | (false, false) => {}
        }
        let doubts = [&first.doubts, &second.doubts];
        let [blind, suspect] = [Doubts::is_blind, Doubts::is_suspect]
            .map(|is_so| doubts.map(|doubts| is_so(doubts, host)));
        let [not_first, not_second] = if blind[0] == blind[1] { suspect } else { blind };
        match (not_first, not_second) {
            (true, false) => Way::Second,
            (false, true) => Way::First,
            (true, true) | (false, false) => {
                self.turn = self.turn.other();
                self.turn
            }
        }
    }

    /// Whether this host failed by one of the ways: its name is then looked up afresh.
    pub(super) fn suspect(&self, host: &Host) -> bool {
        self.sides().any(|(_, side)| side.doubts.is_suspect(host))
    }

    pub(super) fn waiting(&self) -> usize {
        self.sides().map(|(_, side)| side.doubts.waiting()).sum()
    }

    pub(super) fn is_any_ill(&self) -> bool {
        self.are_two() && self.sides().any(|(_, side)| !side.works())
    }

    /// The blackout that no way out escapes.
    pub(super) fn blackout(&self) -> Option<NoSuccess> {
        let others = self.are_two();
        self.sides().find_map(|(way, side)| {
            let escaped = others && self.works(way.other());
            let blackout = side.blackout.describe();
            blackout.filter(|blackout| blackout.scope != Scope::Anywhere || !escaped)
        })
    }

    fn works(&self, way: Way) -> bool {
        self.sides()
            .any(|(other, side)| other == way && side.works())
    }

    /// The state of both; empty if there is only one.
    pub(super) fn states(&self) -> Vec<WayState> {
        let states = self.sides().map(|(way, side)| WayState {
            way,
            ill: side.ill(),
        });
        states.filter(|_| self.are_two()).collect()
    }

    /// What does not work, if all gateways have trouble.
    pub(super) fn trouble_of_all(&self) -> Option<String> {
        let mut whats = self.sides().map(|(_, side)| side.trouble.as_ref());
        let first = whats.next().flatten()?;
        let all = whats.all(|trouble| trouble.is_some());
        all.then(|| first.what.clone())
    }
}

/// The ill way if it is tried now, else the other one.
fn either(is_tried: bool, ill: Way) -> Way {
    if is_tried { ill } else { ill.other() }
}

impl Scheduler {
    /// A way's gateway fails, for at least this long. If it is the only one that worked, this is an
    /// outage.
    pub(super) fn way_failed(&mut self, way: Way, what: String, lasts: Duration, now: Timestamp) {
        if !self.ways.are_two() {
            self.stop(what, now);
            return;
        }
        let side = self.ways.side(way);
        let since = side.trouble.take().map_or(now, |trouble| trouble.since);
        let until = now.plus(lasts);
        let trouble = Trouble {
            what: format!("{} way out: {what}", way.as_str()),
            since,
            until,
        };
        side.trouble = Some(trouble);
        if let Some(what) = self.ways.trouble_of_all() {
            self.stop(what, now);
        }
        self.report_ways(now);
    }

    pub(super) fn way_status(&mut self, way: Way, status: Result<(), String>, now: Timestamp) {
        let is_all = self.ways.trouble_of_all().is_some();
        match status {
            Err(what) => {
                self.way_failed(way, what, Duration::ZERO, now);
                self.abort_openings(way);
            }
            Ok(()) => {
                let trouble = &mut self.ways.side(way).trouble;
                trouble.take_if(|trouble| is_all || now >= trouble.until);
                self.report_ways(now);
            }
        }
    }

    /// A gateway that hangs holds the checks that it should open for a minute.
    fn abort_openings(&mut self, way: Way) {
        let opening = self.checks.iter().filter(|(_, check)| {
            self.ways.are_two() && check.way == way && check.stage == Stage::Opening
        });
        let opening: Vec<_> = opening
            .map(|(number, check)| (*number, check.record.host.clone()))
            .collect();
        for (check, host) in opening {
            self.forget_check(check);
            self.in_flight.insert(host.clone(), None);
            self.commands.push(Command::Abort { check });
            self.release(host, Wait::spread(OUTAGE_OVER_AFTER), Released::Offline);
        }
    }

    /// Reports, once each, that one of two ways became ill or well. What waited for witnesses by an
    /// ill way is checked by the other one.
    pub(super) fn report_ways(&mut self, now: Timestamp) {
        for state in self.ways.states() {
            let (side, other) = self.ways.pair(state.way);
            let has_other = other.is_some();
            let notice = match (state.ill, side.reported) {
                (Some((what, since)), None) => {
                    side.reported = Some(since);
                    side.tried = now;
                    Notice::WayIll {
                        way: state.way,
                        what,
                    }
                }
                (None, Some(since)) => {
                    side.reported = None;
                    Notice::WayWell {
                        way: state.way,
                        lasted: now.since(since),
                    }
                }
                (Some(_), Some(_)) | (None, None) => continue,
            };
            let is_ill = matches!(notice, Notice::WayIll { .. });
            let failures = if is_ill && has_other {
                side.doubts.give_up(|_| true)
            } else {
                Vec::new()
            };
            self.report(notice);
            for failure in failures {
                let why = Released::Unconfirmed(failure.what());
                self.release(failure.host(), Wait::spread(ASK_AGAIN_AFTER), why);
            }
        }
    }
}
