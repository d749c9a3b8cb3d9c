//! One of two ways out fails, or works again.

use std::time::Duration;

use census::time::Timestamp;
use protocol::egress::Way;

use super::Scheduler;
use super::ended::{ASK_AGAIN_AFTER, OUTAGE_OVER_AFTER};
use crate::blame::ways::Trouble;
use crate::command::{Command, Notice, Released, Wait};
use crate::demand::in_progress::Stage;

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
