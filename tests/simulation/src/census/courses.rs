//! The course of checks: what the gateway, the engine and the checker would do.

use census::state::Verdict;
use census::time::Timestamp;
use protocol::egress::Deferral;
use protocol::order::AskPeers;
use rand::Rng as _;
use scheduler::Event;
use scheduler::blame::faults::{CheckFault, FaultScope};
use scheduler::command::Start;
use scheduler::event::{CheckNumber, CheckOutcome, SlotDemand, Taken};
use scheduler::slots::SLOT_WAIT_MAX;

use super::{Census, SECOND};
use crate::course::{self, ANSWER_SECONDS_MAX, Check, Course, Found, LOOK_UP, TIME_OUT};
use crate::plan::{Failure, Sabotage};
use crate::world::names::Name;
use crate::world::network::Shows;
use crate::world::truth::{How, Now};

/// New names in a peers list. A new host appears in many lists, and one is enough.
const PEERS_NEW: usize = 8;

impl Census {
    pub(super) fn taken(
        &mut self,
        mut taken: store::Taken,
        now: Timestamp,
    ) -> Result<Taken, Failure> {
        if self.does(Sabotage::StayDue) {
            taken.record.due = Some(now);
        }
        self.guard.taken(&taken)?;
        let host = taken.record.host.as_str();
        let name = Name::of(host).ok_or_else(|| Failure::Stranger(host.to_owned()))?;
        self.measure.counts.checks += 1;
        match name {
            Name::Host(number) => {
                self.measure.knows(number, now);
                self.waiting.remove(&number);
                self.measure.taken(number, &taken.record, &self.truth);
            }
            Name::Farm(..) | Name::Apart(_) => self.measure.counts.invented += 1,
        }
        Ok(Taken {
            record: Box::new(taken.record),
            class: taken.class,
            faults: taken.faults,
        })
    }

    /// Looks a host up and dials it.
    pub(super) fn start(&mut self, start: Start, now: Timestamp) -> Result<(), Failure> {
        let host = start.host.as_str();
        let name = Name::of(host).ok_or_else(|| Failure::Stranger(host.to_owned()))?;
        let course = if !self.has_a_turn(now) {
            Course::OutOfTurn
        } else {
            match self.network.fails_at(now) {
                Some(Shows::Told) => Course::Offline,
                Some(Shows::Silent) => Course::Closed(How::NoAnswer),
                None => course::course_of(name, &self.truth),
            }
        };
        let number = start.check;
        let opened = match course {
            Course::OutOfTurn | Course::Offline => {
                self.ends.insert((now.plus(LOOK_UP), number));
                None
            }
            Course::Closed(How::NoName) => {
                self.ends.insert((now.plus(LOOK_UP), number));
                Some(SlotDemand::None)
            }
            Course::Closed(_) => {
                self.ends.insert((now.plus(TIME_OUT), number));
                Some(SlotDemand::None)
            }
            Course::Container => {
                let (check, demand) = (number, SlotDemand::One);
                self.events.push_back(Event::Opened { check, demand });
                None
            }
        };
        let check = Check {
            host: start.host,
            peers: start.peers,
            name,
            began: now,
            course,
            opened,
        };
        self.checks.insert(number, check);
        Ok(())
    }

    /// Whether the gateway may dial once more within this second.
    fn has_a_turn(&mut self, now: Timestamp) -> bool {
        if self.dials.0 != now {
            self.dials = (now, 0);
        }
        self.dials.1 += 1;
        self.dials.1 <= self.plan.dials_a_second()
    }

    pub(super) fn start_containers(&mut self, now: Timestamp) -> Result<(), Failure> {
        while !self.starting.is_empty() && self.engine.start(now) {
            let Some(number) = self.starting.pop_front() else {
                break;
            };
            let Some(check) = self.checks.get(&number) else {
                continue;
            };
            let is_silent = matches!(
                course::now_of(check.name, &self.truth),
                Now::Down(How::Accepts) | Now::Dead(How::Accepts)
            );
            let lasts = if is_silent {
                TIME_OUT
            } else {
                SECOND
                    * u32::try_from(self.chance.random_range(1..=ANSWER_SECONDS_MAX)).unwrap_or(1)
            };
            self.ends.insert((now.plus(lasts), number));
            self.events.push_back(Event::FirstOutput { check: number });
        }
        let at_once = self.engine.at_once() + 1.0;
        let started = self.engine.started();
        self.guard
            .started(started, self.plan.capacity, at_once)
            .map_err(Failure::from)
    }

    pub(super) fn turned_away(&mut self, check: CheckNumber) {
        self.checks.remove(&check);
        self.ended(
            check,
            CheckOutcome::Deferred {
                why: Deferral::Full,
                retry_after: SLOT_WAIT_MAX,
            },
        );
    }

    pub(super) fn conclude(&mut self, number: CheckNumber, now: Timestamp) -> Result<(), Failure> {
        let Some(check) = self.checks.remove(&number) else {
            return Ok(());
        };
        if let Some(demand) = check.opened {
            let check = number;
            self.events.push_back(Event::Opened { check, demand });
        }
        let what = match check.course {
            Course::OutOfTurn => {
                let outcome = CheckOutcome::Deferred {
                    why: Deferral::DialPace,
                    retry_after: LOOK_UP,
                };
                self.ended(number, outcome);
                return Ok(());
            }
            Course::Offline => {
                self.ended(number, CheckOutcome::Offline);
                return Ok(());
            }
            Course::Closed(how) => Now::Down(how),
            Course::Container => match self.network.fails_between(check.began, now) {
                Some(Shows::Told) => {
                    let fault = CheckFault {
                        scope: FaultScope::Transient,
                        what: "the network was lost during the check".to_owned(),
                        is_engine: false,
                    };
                    self.ended(number, CheckOutcome::Fault(fault));
                    return Ok(());
                }
                Some(Shows::Silent) => Now::Down(How::Accepts),
                None => course::now_of(check.name, &self.truth),
            },
        };
        let Found { verdict, doubt } = course::found(check.name, what)?;
        let lives = matches!(verdict, Verdict::Alive(_));
        if lives && check.peers == AskPeers::Ask {
            let names = self.truth.speaks_of(PEERS_NEW, &mut self.chance);
            if !names.is_empty() {
                self.named.push((check.host.clone(), names));
            }
        }
        let outcome = CheckOutcome::Verdict {
            verdict,
            witness: lives.then(|| check.witness(now)),
            doubt,
        };
        self.ended(number, outcome);
        Ok(())
    }

    fn ended(&mut self, check: CheckNumber, outcome: CheckOutcome) {
        self.events.push_back(Event::CheckEnded { check, outcome });
    }
}
