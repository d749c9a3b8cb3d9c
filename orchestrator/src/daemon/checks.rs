//! Starts and ends checks, and logs and counts their ends.

use census::time::Timestamp;
use protocol::Host;
use scheduler::Event;
use scheduler::blame::faults::{CheckFault, FaultScope};
use scheduler::command::Start;
use scheduler::event::{CheckOutcome, Trigger};
use tokio::sync::mpsc;

use super::orders::Ordered;
use super::running::Finished;
use super::state::Daemon;
use super::take;
use crate::check::{self, Check};
use crate::ground::fault::Fault;
use crate::ground::meters::labels::EndedAs;

/// Answer to an ordered check whose host was given back at once.
const NOT_STARTED: &str = "not checked: it opted out within the last minute, or an outage has begun; try again in a minute";

/// Ends the verdict of an ordered check that is not written yet.
pub const COUNTS_LATER: &str = "; it counts once other hosts have responded";

impl Daemon {
    /// Takes the host of a check that the operator ordered.
    pub(super) fn check_now(&mut self, host: Host, watcher: mpsc::Sender<String>) {
        if let Some((what, _since)) = self.scheduler.outage() {
            let why = format!("not checked, because of an outage: {what}");
            watcher.try_send(why).ok();
            return;
        }
        let (services, now) = (self.services.clone(), self.services.now());
        self.ordered.spawn(async move {
            let taken = take::take_one(host, &services, now).await;
            Ordered { watcher, taken }
        });
    }

    /// Starts an ordered check once its host was taken, or answers why it could not be.
    pub(super) fn start_ordered(&mut self, Ordered { watcher, taken }: Ordered) {
        match taken {
            Ok(taken) => {
                self.watcher = Some(watcher);
                let trigger = Trigger::Manual;
                self.handle(Event::TakenOne { taken, trigger });
                // The scheduler gave the host back. Nobody may wait for a check that never begins.
                if let Some(watcher) = self.watcher.take() {
                    watcher.try_send(NOT_STARTED.to_owned()).ok();
                }
            }
            Err(why_not) => {
                watcher.try_send(format!("not checked: {why_not}")).ok();
            }
        }
    }

    pub(super) fn start_check(&mut self, start: Start) {
        let watcher = match start.trigger {
            Trigger::Manual => self.watcher.take(),
            Trigger::Scheduled | Trigger::Canary(_) => None,
        };
        let number = start.check;
        let check = Box::new(Check::new(start, &self.services, watcher));
        let services = self.services.clone();
        self.checks.start(number, async move {
            let ended = check::run(&check, &services).await;
            (check, ended)
        });
    }

    pub(super) fn check_ended(&mut self, finished: Finished) {
        let (number, outcome) = match finished {
            Finished::Panicked(number) => {
                tracing::error!("a check's task panicked; nothing counts against its host");
                let fault = CheckFault {
                    scope: FaultScope::Transient,
                    what: "the check's task panicked".to_owned(),
                    is_engine: false,
                };
                (number, CheckOutcome::Fault(fault))
            }
            Finished::Ended(check, ended) => {
                self.note(&check, &ended);
                let outcome =
                    ended.unwrap_or_else(|fault| CheckOutcome::Fault(fault.for_scheduler()));
                (check.number, outcome)
            }
        };
        self.desk.forget(number);
        self.handle(Event::CheckEnded {
            check: number,
            outcome,
        });
    }

    /// Logs and counts an end, and shows it to the operator who watches the check.
    fn note(&self, check: &Check, ended: &Result<CheckOutcome, Fault>) {
        let (host, now) = (&check.host, self.services.now());
        let duration = now.since(check.began);
        let duration_ms = duration.as_millis();
        let meters = &self.services.meters;
        meters.check(ended_as(ended), duration);
        meters.way(check.wish.way, ended_as(ended));
        match ended {
            Ok(CheckOutcome::Verdict { verdict, .. }) => {
                let reason = verdict.detail();
                tracing::debug!(%host, check.id = %check.id, verdict = verdict.as_str(), reason, duration_ms, "checked");
                self.count(now);
                meters.verdict(verdict, now);
                let unless = if verdict.is_failing() {
                    COUNTS_LATER
                } else {
                    ""
                };
                check.step(|| format!("verdict: {verdict}{unless}"));
            }
            Ok(CheckOutcome::Deferred { why, retry_after }) => {
                tracing::debug!(%host, ?why, retry_after_ms = retry_after.as_millis(), "deferred");
                meters.deferral(*why);
                check.step(|| "deferred: no verdict; the host is checked again soon".to_owned());
            }
            Ok(CheckOutcome::Offline) => {
                meters.offline();
                check.step(|| "offline: no verdict; the host is checked again soon".to_owned());
            }
            // Never happens: a check reports its faults as errors.
            Ok(CheckOutcome::Fault(_)) => {}
            Err(fault) => {
                self.count(now);
                meters.fault(fault);
                check
                    .step(|| format!("our own fault, so nothing counts against the host: {fault}"));
                match fault.scope() {
                    // The outage is logged, not each check that failed because of it.
                    FaultScope::Global | FaultScope::Way => {}
                    FaultScope::Transient | FaultScope::HostSuspected => {
                        tracing::warn!(%host, check.id = %check.id, %fault, "a check failed through our own fault; nothing counts against its host");
                    }
                }
            }
        }
    }

    fn count(&self, now: Timestamp) {
        self.live.count(now);
    }
}

fn ended_as(ended: &Result<CheckOutcome, Fault>) -> EndedAs {
    match ended {
        Ok(CheckOutcome::Verdict { .. }) => EndedAs::Verdict,
        Ok(CheckOutcome::Deferred { .. }) => EndedAs::Deferred,
        Ok(CheckOutcome::Offline) => EndedAs::Offline,
        Ok(CheckOutcome::Fault(_)) | Err(_) => EndedAs::Fault,
    }
}
