//! Outages of ours: when checks stop, and when they start again.

use std::time::Duration;

use census::time::Timestamp;
use protocol::Host;

use super::Scheduler;
use crate::blame::outage::{Begun, Seen};
use crate::command::{Command, Notice, Released, Wait};
use crate::event::WriteOutcome;

/// The parts are asked this often whether they work: a hanging part reports nothing, and checks
/// that it does not concern may go on ending. They have the answer ready.
const ASK_EVERY: Duration = Duration::from_secs(5);

impl Scheduler {
    pub(super) fn look_at_parts(&mut self, now: Timestamp) {
        let is_time = !self.outage.is_on() && now.since(self.parts_answered) >= ASK_EVERY;
        if !self.asks_parts && (self.outage.wants_look(now) || is_time) {
            self.asks_parts = true;
            self.commands.push(Command::AskParts);
        }
    }

    pub(super) fn part_status(&mut self, status: Result<(), String>, now: Timestamp) {
        self.asks_parts = false;
        self.parts_answered = now;
        let trouble = self.ways.trouble_of_all();
        match trouble.map_or(status, Err) {
            Err(what) if self.outage.is_on() => self.outage.goes_on(what, now),
            Err(what) => self.stop(what, now),
            Ok(()) if self.outage.is_on() => {
                if let Some(lasted) = self.outage.parts_work(now) {
                    self.report(Notice::OutageOver { lasted });
                }
                self.release_unwritten();
                self.demand.count_now();
            }
            Ok(()) => self.release_unwritten(),
        }
    }

    fn release_unwritten(&mut self) {
        for host in std::mem::take(&mut self.unwritten) {
            self.release(host, Wait::Soon, Released::StoreFailed);
        }
    }

    pub(super) fn written(&mut self, host: Host, outcome: WriteOutcome, now: Timestamp) {
        let was_responding = self.responding.extract_if(.., |one| *one == host).count() > 0;
        match outcome {
            WriteOutcome::Verdict => {
                if was_responding {
                    self.publication.responded(now);
                }
                self.in_flight.remove(&host);
                if let Some(lasted) = self.outage.works(now) {
                    self.report(Notice::OutageOver { lasted });
                }
                if !self.outage.is_on() {
                    self.release_unwritten();
                }
            }
            WriteOutcome::Released => {
                self.in_flight.remove(&host);
            }
            WriteOutcome::Failed(what) => {
                self.unwritten.push(host);
                self.stop(what, now);
            }
        }
    }

    /// A part that every check needs fails: no check starts until it works again.
    pub(super) fn stop(&mut self, what: String, now: Timestamp) {
        self.begin_outage(what, Seen::Told, now);
    }

    /// Counts a failed check on our side. One may be chance; several in a row are not, even if
    /// every part reports that it works.
    pub(super) fn count_own_failure(&mut self, what: &str, now: Timestamp) {
        if let Some(count) = self.outage.fault() {
            let what = format!(
                "{count} checks in a row failed through our own fault, the last one: {what}"
            );
            self.begin_outage(what, Seen::Counted, now);
        }
        if self.outage.is_counted() {
            self.take_blame();
        }
    }

    fn begin_outage(&mut self, what: String, seen: Seen, now: Timestamp) {
        match self.outage.begin(what.clone(), seen, now) {
            Begun::News => self.report(Notice::OutageBegan(what)),
            Begun::FirstRelapse => self.report(Notice::OutageRelapsed(what)),
            Begun::Relapse | Begun::Known => {}
        }
    }
}
