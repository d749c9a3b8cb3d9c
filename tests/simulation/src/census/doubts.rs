//! What an ended check means, and what becomes of failures: as `orchestrator/src/daemon/verdicts.rs` does it.

use std::time::Duration;

use census::state::Verdict;
use census::time::Timestamp;
use gateway::control::Family;
use orchestrator::confirm::{Doubt, Outcome};
use orchestrator::outage::Seen;
use protocol::Host;
use store::StoreError;

use super::{Census, Write};
use crate::course::{Check, Course, Found, LOOK_UP, found, now_of};
use crate::names::Name;
use crate::network::Shows;
use crate::run::Failure;
use crate::truth::{CANARIES, How, Now};

/// The daemon's times of the same meaning.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(10);
const OUTAGE_OVER_AFTER: Duration = Duration::from_secs(5);

/// Names that a list of peers has of new ones: a new host is named by many, and one list that has it is enough.
const PEERS_NEW: usize = 8;

/// A failure that waits for witnesses.
#[derive(Debug)]
pub(super) struct InDoubt {
    check: Check,
    verdict: Verdict,
}

impl Census {
    /// What an ended check means: it is settled, doubted, or its host given back.
    pub(super) fn conclude(&mut self, check: Check, now: Timestamp) -> Result<(), Failure> {
        if self.aborted.remove(&check.record.host) {
            self.give_back_soon(check, now);
            return Ok(());
        }
        let what = match check.course {
            Course::OutOfTurn => {
                self.measure.counts.put_off += 1;
                let due = now.plus(self.spread(LOOK_UP));
                self.give_back(check, due);
                return Ok(());
            }
            Course::Offline => {
                self.measure.counts.ours += 1;
                self.outage
                    .begin("the gateway has no network".to_owned(), Seen::Told, now);
                let due = now.plus(self.spread(OUTAGE_OVER_AFTER));
                self.give_back(check, due);
                return Ok(());
            }
            Course::Closed(how) => Now::Down(how),
            Course::Container => match self.network.fails_between(check.began, now) {
                Some(Shows::Told) => {
                    self.broke_off(check, now);
                    return Ok(());
                }
                Some(Shows::Silent) => Now::Down(How::Accepts),
                None => now_of(check.name, &self.truth),
            },
        };
        let Found { verdict, doubt } = found(check.name, what)?;
        if let Verdict::Alive { .. } = verdict {
            self.hear_the_living(&check, now);
        }
        if verdict.is_failing() {
            self.doubt(check, verdict, doubt, now);
        } else {
            self.writes.push(Write::Settle(check, verdict));
        }
        Ok(())
    }

    /// The network went away during the check: a fault of ours.
    fn broke_off(&mut self, check: Check, now: Timestamp) {
        self.measure.counts.ours += 1;
        if let Some(count) = self.outage.fault() {
            let what = format!("{count} checks in a row failed on our side");
            self.outage.begin(what, Seen::Counted, now);
        }
        let due = now.plus(self.spread(ASK_AGAIN_AFTER));
        self.give_back(check, due);
    }

    /// One lives: what waits for a witness may be decided by it, and it names others.
    fn hear_the_living(&mut self, check: &Check, now: Timestamp) {
        let host = &check.record.host;
        self.silence.lived(Family::V4, now);
        for (failure, outcome) in self.confirm.alive(host, check.witness(now), now) {
            self.silence.witnessed(now);
            match outcome {
                Outcome::Counts => {
                    let InDoubt { check, verdict } = failure;
                    self.writes.push(Write::Settle(check, verdict));
                }
                Outcome::AskAgain => {
                    self.measure.counts.asked_again += 1;
                    let due = now.plus(self.spread(ASK_AGAIN_AFTER));
                    self.give_back(failure.check, due);
                }
            }
        }
        let every = self.stage.tools.peers_every;
        if census::schedule::asks_peers(&check.record, every) {
            let names = self.truth.speaks_of(PEERS_NEW, &mut self.chance);
            if !names.is_empty() {
                self.named.push((host.clone(), names));
            }
        }
    }

    fn doubt(&mut self, check: Check, verdict: Verdict, doubt: Doubt, now: Timestamp) {
        self.silence.fail("failed", &doubt.families, now);
        let (host, began) = (check.record.host.clone(), check.began);
        let failure = InDoubt { check, verdict };
        if let Some(oldest) = self.confirm.fail(host, failure, doubt, began, now) {
            self.drop_unconfirmed(oldest, now);
        }
    }

    fn drop_unconfirmed(&mut self, failure: InDoubt, now: Timestamp) {
        self.measure.counts.unconfirmed += 1;
        self.silence.dropped("failed", now);
        self.give_back_soon(failure.check, now);
    }

    /// What the daemon does each second: drops what has waited for too long, tells of silence, looks at an outage, asks canaries.
    pub(super) async fn look_at_doubts(&mut self, now: Timestamp) -> Result<(), Failure> {
        for failure in self.confirm.expire(now) {
            self.drop_unconfirmed(failure, now);
        }
        self.told += u64::from(self.silence.look(now).is_some());
        if self.outage.wants_look(now) {
            if self.network.fails_at(now) == Some(Shows::Told) {
                let what = "the gateway has no network".to_owned();
                self.outage.goes_on(what, now);
            } else {
                self.outage.parts_work(now);
            }
        }
        if self.outage.is_on() {
            return Ok(());
        }
        for _wish in self.confirm.wants_canaries(now) {
            self.ask_a_canary(now).await?;
        }
        Ok(())
    }

    /// Asks the next canary that is not being asked already.
    async fn ask_a_canary(&mut self, now: Timestamp) -> Result<(), Failure> {
        for _ in 0..CANARIES {
            let host = Name::Host(self.next_canary).host()?;
            self.next_canary = (self.next_canary + 1) % CANARIES;
            let tools = &self.stage.tools;
            let jitter = tools.dice.jitter();
            let taken = tools.writer.take_one(&host, now, jitter, tools.calendar);
            match taken.await {
                Ok(Some(taken)) => {
                    self.measure.counts.canaries += 1;
                    return self.open(taken, now);
                }
                Ok(None) | Err(StoreError::InFlight { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn give_back_soon(&mut self, check: Check, _now: Timestamp) {
        let due = self.stage.tools.again_soon();
        self.give_back(check, due);
    }

    fn give_back(&mut self, check: Check, due: Timestamp) {
        let host: Host = check.record.host;
        self.writes.push(Write::Release(host, due));
    }
}
