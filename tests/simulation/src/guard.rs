//! Invariants, checked at every step. The first broken one ends the run.
//!
//! The guard observes what the census does, and reports what it must never do. It keeps its own
//! records, separate from the store's, and does not rely on the store's answers.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use census::group::PLACES_MAX;
use census::state::{OptedOutBy, State, Verdict};
use census::time::{Calendar, Jitter, Timestamp};
use protocol::Host;
use store::{Stored, Taken};
use thiserror::Error;

use crate::world::truth::{Being, Now};

/// Most listed hosts of one registered domain without a decision: the daemon's default threshold.
pub const GROUP_THRESHOLD: u32 = 10;

/// No evidence frees a host sooner: sources that were listed at the start have to name it for a
/// week.
const NO_EVIDENCE_BEFORE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Longer than any check takes, with the wait until its result counts.
const CHECKED_WITHIN: Duration = Duration::from_secs(3600);

/// A check may wait for hours while the engine can't do the work; none waits for a day.
const LOST_AFTER: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Rule {
    #[error("is in flight already")]
    TwoInFlight,
    /// A checked host's next time has moved on. Otherwise a crash would make it loop.
    #[error("is checked before its next time has moved on")]
    NotMovedOn,
    #[error("is asked although its owner opted it out")]
    AskedDespiteWord,
    /// A host whose robots.txt forbids checks is not checked again within a week.
    #[error("is asked within a week of its robots.txt's refusal")]
    AskedTooSoon,
    #[error("is listed although it has not lived for 14 days")]
    ListedTooLong,
    #[error("is listed although its group is held")]
    ListedThoughHeld,
    #[error("was lost")]
    Lost,
    /// Invariant I5: our own failures never count.
    #[error("responds, and a failure was counted against it")]
    Wronged,
    #[error("were picked, which is more than there was room for")]
    PickedTooMany,
    #[error("containers were started, which is more than the engine can")]
    StartedTooMany,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("step {step}, {hours} h after the start: {subject} {rule}")]
pub struct Broken {
    pub rule: Rule,
    /// The host or object that broke it.
    pub subject: String,
    pub step: u64,
    pub hours: u64,
}

#[derive(Debug)]
pub(crate) struct Guard {
    start: Timestamp,
    now: Timestamp,
    step: u64,
    /// Hosts in flight, with the times since when.
    in_flight: HashMap<Host, Timestamp>,
    words: HashSet<Host>,
    /// When each host's robots.txt last forbade checks.
    refused: HashMap<Host, Timestamp>,
    known: u64,
}

impl Guard {
    pub(crate) fn new(start: Timestamp) -> Self {
        Self {
            start,
            now: start,
            step: 0,
            in_flight: HashMap::new(),
            words: HashSet::new(),
            refused: HashMap::new(),
            known: 0,
        }
    }

    pub(crate) fn step(&mut self, now: Timestamp) {
        self.now = now;
        self.step += 1;
    }

    /// Number of steps so far.
    pub(crate) fn steps(&self) -> u64 {
        self.step
    }

    /// Checks that `count` taken hosts fit into `room`.
    pub(crate) fn picked(&self, count: usize, room: u32) -> Result<(), Broken> {
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        self.hold(count <= room, Rule::PickedTooMany, || count.to_string())
    }

    /// Records that a host was taken, and is in flight from now on.
    pub(crate) fn taken(&mut self, taken: &Taken) -> Result<(), Broken> {
        let host = &taken.record.host;
        let name = || host.to_string();
        let is_new = self.in_flight.insert(host.clone(), self.now).is_none();
        self.hold(is_new, Rule::TwoInFlight, name)?;
        self.hold(!self.words.contains(host), Rule::AskedDespiteWord, name)?;
        let moved_on = taken.record.due.is_some_and(|due| due > self.now);
        self.hold(moved_on, Rule::NotMovedOn, name)?;
        let week = Calendar::REAL.week(Jitter(0));
        let refused = self.refused.get(host);
        let is_early = refused.is_some_and(|at| self.now.since(*at) < week);
        self.hold(!is_early, Rule::AskedTooSoon, name)
    }

    /// Checks the row of a host that was just taken.
    pub(crate) fn row(&self, host: &Host, row: Option<&Stored>) -> Result<(), Broken> {
        let name = || host.to_string();
        self.hold(row.is_some(), Rule::Lost, name)?;
        let is_marked = row.is_some_and(|row| row.in_flight && row.record.due > Some(self.now));
        self.hold(is_marked, Rule::NotMovedOn, name)
    }

    /// Records that a host is no longer in flight.
    pub(crate) fn ended(&mut self, host: &Host) {
        self.in_flight.remove(host);
    }

    /// Records that an owner opted a host out, and that the store has confirmed it.
    pub(crate) fn word(&mut self, host: Host) {
        self.words.insert(host);
    }

    /// Records a committed verdict and the host's new state.
    pub(crate) fn settled(&mut self, host: &Host, state: &State, is_refusal: bool) {
        let by_robots = State::OptedOut {
            by: OptedOutBy::Robots,
        };
        if *state != by_robots {
            self.refused.remove(host);
        } else if is_refusal {
            self.refused.insert(host.clone(), self.now);
        }
    }

    /// Checks a committed verdict about a host that is like `being` now.
    pub(crate) fn judged(
        &self,
        host: &Host,
        verdict: &Verdict,
        being: Option<Being>,
    ) -> Result<(), Broken> {
        let is_up = being.is_some_and(|being| {
            being.now == Now::Up && self.now.since(being.since) > CHECKED_WITHIN
        });
        let is_wronged = is_up && verdict.is_failing();
        self.hold(!is_wronged, Rule::Wronged, || host.to_string())
    }

    /// Checks that no check has lasted too long: it was lost.
    pub(crate) fn none_stuck(&self) -> Result<(), Broken> {
        let is_stuck = |at: &Timestamp| self.now.since(*at) > LOST_AFTER;
        let stuck = self.in_flight.iter().find(|(_, at)| is_stuck(at));
        self.hold(stuck.is_none(), Rule::Lost, || {
            stuck.map_or_else(String::new, |(host, _)| host.to_string())
        })
    }

    /// Checks a listed host, which last responded at these times by its row and by our own records.
    pub(crate) fn listed(
        &self,
        host: &str,
        by_row: Timestamp,
        by_book: Option<Timestamp>,
    ) -> Result<(), Broken> {
        let since = self.now.minus(Calendar::REAL.unlisted_after());
        let lived = by_row >= since && by_book.is_none_or(|at| at >= since);
        self.hold(lived, Rule::ListedTooLong, || host.to_owned())
    }

    /// Checks the number of listed hosts of a group without a decision.
    pub(crate) fn group(&self, domain: &str, listed: u32) -> Result<(), Broken> {
        let most = if self.now < self.start.plus(NO_EVIDENCE_BEFORE) {
            GROUP_THRESHOLD
        } else {
            PLACES_MAX
        };
        self.hold(listed <= most, Rule::ListedThoughHeld, || {
            format!("one of {listed} below {domain}")
        })
    }

    /// Checks the number of rows against the hosts forgotten by the rules since the start and the
    /// hosts added by our own records. There may be more rows, because invented names are not
    /// recorded.
    pub(crate) fn known(&mut self, rows: u64, forgotten: u64, by_book: u64) -> Result<(), Broken> {
        let least = self.known.max(by_book);
        self.hold(rows + forgotten >= least, Rule::Lost, || {
            format!(
                "one of {least} hosts, {forgotten} of whom were forgotten and {rows} have rows,"
            )
        })?;
        self.known = rows + forgotten;
        Ok(())
    }

    /// Checks that a known host still exists, or was forgotten by the rules.
    pub(crate) fn is_there(&self, host: &Host, is_there: bool) -> Result<(), Broken> {
        self.hold(is_there, Rule::Lost, || host.to_string())
    }

    /// Checks the number of containers started since the start, for an engine that starts this
    /// number a second.
    pub(crate) fn started(&self, containers: u64, capacity: f64) -> Result<(), Broken> {
        // The container of the present second, and a thousandth for rounding errors in sums.
        let most = self.elapsed().as_secs_f64() * capacity + 1.0;
        let is_less = containers as f64 <= most * 1.001;
        self.hold(is_less, Rule::StartedTooMany, || containers.to_string())
    }

    fn elapsed(&self) -> Duration {
        self.now.since(self.start)
    }

    fn hold(
        &self,
        holds: bool,
        rule: Rule,
        subject: impl FnOnce() -> String,
    ) -> Result<(), Broken> {
        if holds {
            return Ok(());
        }
        Err(Broken {
            rule,
            subject: subject(),
            step: self.step,
            hours: self.elapsed().as_secs() / 3600,
        })
    }
}

#[cfg(test)]
mod tests {
    use census::state::Record;

    use census::class::Class;

    use super::*;
    use kit::host;

    const START: Timestamp = Timestamp(1_800_000_000_000);
    const HOUR: Duration = Duration::from_secs(3600);

    fn taken(name: &str, due: Timestamp) -> Taken {
        Taken {
            record: Record::discovered(host(name), START, due),
            interruptions: 0,
            faults: 0,
            class: Class::New,
        }
    }

    fn guard() -> Guard {
        let mut guard = Guard::new(START);
        guard.step(START);
        guard
    }

    fn rule<T: std::fmt::Debug>(outcome: Result<T, Broken>) -> Rule {
        outcome.unwrap_err().rule
    }

    #[test]
    fn a_refusal_by_robots_is_left_alone_for_a_week() {
        let mut guard = guard();
        let state = State::OptedOut {
            by: OptedOutBy::Robots,
        };
        guard.settled(&host("a.example"), &state, true);
        guard.step(START.plus(HOUR * 155));
        let early = taken("a.example", START.plus(HOUR * 999));
        assert_eq!(rule(guard.taken(&early)), Rule::AskedTooSoon);
        guard.ended(&early.record.host);
        guard.step(START.plus(HOUR * 156));
        guard.taken(&early).unwrap();
        guard.ended(&early.record.host);
        // The host is silent, which is not a refusal, so its next check may follow at once.
        guard.settled(&early.record.host, &state, false);
        guard.taken(&early).unwrap();
    }

    #[test]
    fn no_more_is_picked_or_started_than_there_is_room_for() {
        let mut guard = guard();
        guard.picked(3, 3).unwrap();
        assert_eq!(rule(guard.picked(4, 3)), Rule::PickedTooMany);
        guard.step(START.plus(HOUR));
        guard.started(37, 0.01).unwrap();
        assert_eq!(rule(guard.started(38, 0.01)), Rule::StartedTooMany);
    }

    #[test]
    fn what_was_broken_says_by_whom_and_when() {
        let mut guard = guard();
        guard.step(START.plus(HOUR * 30));
        let broken = guard.picked(4, 3).unwrap_err();
        assert_eq!(
            broken.to_string(),
            "step 2, 30 h after the start: 4 were picked, which is more than there was room for"
        );
    }
}
