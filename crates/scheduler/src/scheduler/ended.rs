//! Handles an ended check: commits or doubts its verdict, or releases its host.

use std::time::Duration;

use census::listing;
use census::state::{Record, Verdict};
use census::time::Timestamp;
use protocol::egress::{Deferral, Family, Way};
use protocol::{DeadReason, Host};

use super::{Check, Failure, Scheduler};
use crate::blame::blackout::Scope;
use crate::blame::doubt::{Dns, Doubt, Ruling, Witness};
use crate::blame::faults::{Attribution, CheckFault, FAULTS_UNTIL_DEAD, FaultScope};
use crate::blame::ways::MET_TROUBLE_FOR;
use crate::command::{Command, Notice, Released, Wait};
use crate::demand::deferral::is_pace;
use crate::event::{CheckNumber, CheckOutcome, SlotHolder};

/// A host whose failure is in doubt is checked again after this, and up to twice as much: if its
/// paces allow it, and while the earlier witnesses still count.
pub(super) const ASK_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// A host that met an outage is due again after this and up to ten seconds more. No host is taken
/// before the outage is over.
pub(super) const OUTAGE_OVER_AFTER: Duration = Duration::from_secs(5);

impl Failure {
    fn record(&self) -> &Record {
        match self {
            Self::Verdict { record, .. } | Self::Fault { record, .. } => record,
        }
    }

    pub(super) fn host(&self) -> Host {
        self.record().host.clone()
    }

    /// The kind of this failure, for the statistics of a blackout.
    fn kind(&self) -> &'static str {
        match self {
            Self::Verdict { verdict, .. } => kind(verdict),
            Self::Fault { .. } => "fault",
        }
    }

    pub(super) fn what(&self) -> String {
        match self {
            Self::Verdict { verdict, .. } => verdict.to_string(),
            Self::Fault { what, .. } => what.clone(),
        }
    }
}

/// The kind of this verdict: the reason without a status or a target.
fn kind(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Dead { reason, .. } => reason.as_str(),
        Verdict::Alive(_)
        | Verdict::Moved { .. }
        | Verdict::OptedOut
        | Verdict::Gone
        | Verdict::Refused { .. } => verdict.as_str(),
    }
}

impl Scheduler {
    pub(super) fn check_ended(
        &mut self,
        number: CheckNumber,
        outcome: CheckOutcome,
        now: Timestamp,
    ) {
        if let CheckOutcome::Fault(fault) = &outcome
            && fault.is_engine
        {
            self.slots.engine_failed(SlotHolder::Check(number), now);
        }
        // An aborted check may have ended at the same moment.
        let Some(check) = self.forget_check(number) else {
            return;
        };
        let host = check.record.host.clone();
        self.in_flight.insert(host.clone(), None);
        match outcome {
            CheckOutcome::Verdict {
                verdict,
                witness,
                doubt,
            } => self.judge(check, verdict, witness, doubt, now),
            CheckOutcome::Deferred { why, retry_after } => {
                self.defer(&check, why, retry_after, now);
            }
            CheckOutcome::Offline => {
                let what = "the gateway has no network".to_owned();
                self.way_failed(check.way, what, Duration::ZERO, now);
                let wait = Wait::spread(OUTAGE_OVER_AFTER);
                self.release(host, wait, Released::Offline);
            }
            CheckOutcome::Fault(fault) => self.fault(check, fault, now),
        }
    }

    fn judge(
        &mut self,
        check: Check,
        verdict: Verdict,
        witness: Option<Witness>,
        doubt: Doubt,
        now: Timestamp,
    ) {
        let (record, way) = (check.record, check.way);
        if let Some(witness) = witness {
            self.succeeded(&record.host, witness, way, now);
        }
        if verdict.is_failing() {
            let blackout = &mut self.ways.side(way).blackout;
            blackout.fail(kind(&verdict), &doubt.families, now);
            let failure = Failure::Verdict { record, verdict };
            self.doubt(failure, doubt, way, check.began, now);
        } else {
            self.commit(record, verdict, now);
        }
    }

    pub(super) fn commit(&mut self, record: Box<Record>, verdict: Verdict, now: Timestamp) {
        // At the earliest; an ordinary list is at most this old.
        let made = now.minus(self.publication.interval);
        if listing::withdraws(&verdict) && listing::may_be_on_list(&record, made, self.calendar) {
            self.publication.withdrawn(now);
        }
        if self.publication.is_first_awaited() && matches!(verdict, Verdict::Alive(_)) {
            self.responding.push(record.host.clone());
        }
        let commit = Command::CommitVerdict { record, verdict };
        self.commands.push(commit);
    }

    /// A container found that a host responds, which decides the failures that waited for it.
    fn succeeded(&mut self, host: &Host, witness: Witness, way: Way, now: Timestamp) {
        let family = Family::of(witness.address);
        let (side, other) = self.ways.pair(way);
        let mut overs = side.blackout.lived(family, now);
        overs.retain(|over| over.scope != Scope::Anywhere || other.is_none());
        let others = other.map(|side| &mut side.doubts);
        let decided = side.doubts.alive(host, witness, others, now);
        let witnessed = (!decided.is_empty()).then(|| side.blackout.witnessed(now));
        overs.extend(witnessed.flatten());
        if self.ways.are_two() {
            let alone = self.ways.side(way.other()).doubts.clear(host);
            let (host, by) = (host.clone(), way);
            self.commands.push(Command::RememberWay { host, by, alone });
        }
        for over in overs {
            self.report(Notice::BlackoutOver(over));
        }
        for (failure, ruling) in decided {
            match ruling {
                Ruling::Counts => self.confirm(failure, now),
                Ruling::AskAgain => {
                    let why = Released::FailedOnce(failure.what());
                    self.release(failure.host(), Wait::spread(ASK_AGAIN_AFTER), why);
                }
            }
        }
    }

    /// The host was the cause: others responded around that time, or it failed again after others
    /// had responded.
    fn confirm(&mut self, failure: Failure, now: Timestamp) {
        match failure {
            Failure::Verdict { record, verdict } => self.commit(record, verdict, now),
            Failure::Fault {
                record,
                what,
                lately: _,
                faults,
            } => {
                let due = Attribution::Host.due(record.due);
                if !self.faulters.is_alone(&record.host, now) {
                    self.release(record.host.clone(), due, Released::HitOthers(what));
                } else if faults.saturating_add(1) < FAULTS_UNTIL_DEAD {
                    self.release(record.host.clone(), due, Released::CountedFault(what));
                } else {
                    let verdict = Verdict::Dead {
                        reason: DeadReason::Faulting,
                        status: None,
                        to: None,
                    };
                    self.commit(record, verdict, now);
                }
            }
        }
    }

    /// Defers a host: the gateway or the engine had no capacity, or DNS had no answer.
    fn defer(&mut self, check: &Check, why: Deferral, retry_after: Duration, now: Timestamp) {
        let Check { record, way, .. } = check;
        if is_pace(why) {
            self.demand.was_out_of_turn();
        }
        if why == Deferral::DialPace {
            self.demand.ran_out_of_dials(now);
        }
        if why == Deferral::Dns {
            self.ways.side(*way).blackout.fail("dns", &[], now);
        }
        let (side, other) = self.ways.pair(*way);
        if why == Deferral::NoFamily
            && other.is_some_and(|other| !other.doubts.is_blind(&record.host))
        {
            side.doubts.note_blind(&record.host, now);
            let wait = Wait::spread(ASK_AGAIN_AFTER);
            self.release(record.host.clone(), wait, Released::Deferred(why));
            return;
        }
        let wait = self.early_asks.wait(record, why, retry_after, now);
        self.release(record.host.clone(), wait, Released::Deferred(why));
    }

    fn fault(&mut self, check: Check, fault: CheckFault, now: Timestamp) {
        let Check {
            record,
            faults,
            began,
            way,
            ..
        } = check;
        let (host, what) = (record.host.clone(), fault.what);
        match fault.scope {
            FaultScope::Global | FaultScope::Way => {
                if fault.scope == FaultScope::Way {
                    self.way_failed(way, what.clone(), MET_TROUBLE_FOR, now);
                } else {
                    self.stop(what.clone(), now);
                }
                // The outage delays it further.
                let wait = Wait::spread(OUTAGE_OVER_AFTER);
                self.release(host, wait, Released::Fault(what));
            }
            FaultScope::Transient => {
                self.count_own_failure(&what, now);
                let wait = Wait::spread(ASK_AGAIN_AFTER);
                self.release(host, wait, Released::Fault(what));
            }
            FaultScope::HostSuspected => {
                self.ways.side(way).blackout.fail("fault", &[], now);
                let lately = self.faulters.note(&host, now);
                let failure = Failure::Fault {
                    record,
                    what: what.clone(),
                    lately,
                    faults,
                };
                let doubt = Doubt {
                    families: Vec::new(),
                    dns: Dns::Sound,
                };
                self.doubt(failure, doubt, way, began, now);
                self.count_own_failure(&what, now);
            }
        }
    }

    fn doubt(
        &mut self,
        failure: Failure,
        doubt: Doubt,
        way: Way,
        began: Timestamp,
        now: Timestamp,
    ) {
        let host = failure.host();
        let (side, other) = self.ways.pair(way);
        if side.is_ill() && other.is_some() {
            let why = Released::Unconfirmed(failure.what());
            self.release(host, Wait::spread(ASK_AGAIN_AFTER), why);
        } else if let Some(oldest) = side.doubts.fail(host, failure, doubt, began, now) {
            self.drop_unconfirmed(oldest, way, now);
        }
    }

    /// Drops a failure: no other check succeeded in time, so we may be the cause.
    pub(super) fn drop_unconfirmed(&mut self, failure: Failure, way: Way, now: Timestamp) {
        self.ways.side(way).blackout.dropped(failure.kind(), now);
        let wait = match &failure {
            Failure::Verdict { .. } => Wait::Soon,
            Failure::Fault { record, lately, .. } => Attribution::Unknown(*lately).due(record.due),
        };
        let why = Released::Unconfirmed(failure.what());
        self.release(failure.host(), wait, why);
    }

    /// A fault that hit every host proves nothing about any host: all waiting faults are ours.
    pub(super) fn take_blame(&mut self) {
        let is_fault = |failure: &Failure| matches!(failure, Failure::Fault { .. });
        let ways = self.ways.all();
        let faults: Vec<_> = ways
            .iter()
            .flat_map(|way| self.ways.side(*way).doubts.give_up(is_fault))
            .collect();
        for failure in faults {
            let wait = Attribution::Us.due(failure.record().due);
            let why = Released::HitOthers(failure.what());
            self.release(failure.host(), wait, why);
        }
    }
}
