//! Checks that run: their tasks, and what is logged and counted when they end.

use std::collections::HashMap;

use census::time::Timestamp;
use scheduler::Event;
use scheduler::blame::faults::{CheckFault, FaultScope};
use scheduler::command::Start;
use scheduler::event::{CheckNumber, CheckOutcome, Trigger};
use tokio::task::{AbortHandle, Id, JoinSet};

use super::Daemon;
use crate::check::fault::Fault;
use crate::check::{self, Check};
use crate::meters::labels::EndedAs;

/// Checks that run.
#[derive(Debug, Default)]
pub(super) struct Running {
    tasks: JoinSet<(Box<Check>, Result<CheckOutcome, Fault>)>,
    aborts: HashMap<CheckNumber, AbortHandle>,
    numbers: HashMap<Id, CheckNumber>,
}

/// A check whose task has ended.
#[derive(Debug)]
pub(super) enum Finished {
    /// With this outcome.
    Ended(Box<Check>, Result<CheckOutcome, Fault>),
    /// By a panic of ours.
    Panicked(CheckNumber),
}

impl Running {
    fn start(
        &mut self,
        number: CheckNumber,
        task: impl Future<Output = (Box<Check>, Result<CheckOutcome, Fault>)> + Send + 'static,
    ) {
        let abort = self.tasks.spawn(task);
        self.numbers.insert(abort.id(), number);
        self.aborts.insert(number, abort);
    }

    /// Ends a check: its container and its egress with it.
    pub(super) fn abort(&mut self, number: CheckNumber) {
        if let Some(abort) = self.aborts.remove(&number) {
            abort.abort();
        }
    }

    /// The next one that ends; `None` if none runs. The inner `None` is one that was aborted.
    pub(super) async fn next(&mut self) -> Option<Option<Finished>> {
        let joined = self.tasks.join_next_with_id().await?;
        let id = joined
            .as_ref()
            .map_or_else(tokio::task::JoinError::id, |(id, _)| *id);
        let number = self.numbers.remove(&id);
        if let Some(number) = number {
            self.aborts.remove(&number);
        }
        Some(match joined {
            Ok((_, (check, ended))) => Some(Finished::Ended(check, ended)),
            Err(error) if error.is_cancelled() => None,
            Err(_panic) => number.map(Finished::Panicked),
        })
    }

    /// Whether it runs.
    pub(super) fn has(&self, number: CheckNumber) -> bool {
        self.aborts.contains_key(&number)
    }

    /// Ends all of them.
    pub(super) async fn end_all(&mut self) {
        self.tasks.shutdown().await;
    }
}

impl Daemon {
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
                tracing::error!("a check's task panicked; nothing is counted against its host");
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
        match ended {
            Ok(CheckOutcome::Verdict { verdict, .. }) => {
                let reason = verdict.detail();
                tracing::info!(%host, check.id = %check.id, verdict = verdict.as_str(), reason, duration_ms, "checked");
                self.count(now);
                meters.verdict(verdict, now);
                let unless = if verdict.is_failing() {
                    "; it counts once other hosts have come out alive"
                } else {
                    ""
                };
                check.step(|| format!("verdict: {verdict}{unless}"));
            }
            Ok(CheckOutcome::Deferred { why, retry_after }) => {
                tracing::debug!(%host, ?why, retry_after_ms = retry_after.as_millis(), "deferred");
                meters.deferral(*why);
                check.step(|| "deferred: no verdict, asked again soon".to_owned());
            }
            Ok(CheckOutcome::Offline) => {
                meters.offline();
                check.step(|| "offline: no verdict, asked again soon".to_owned());
            }
            // No check gives one: its faults are errors.
            Ok(CheckOutcome::Fault(_)) => {}
            Err(fault) => {
                self.count(now);
                meters.fault(fault);
                check.step(|| format!("fault of ours, nothing counted: {fault}"));
                match fault.scope() {
                    // The outage is logged, and not each check that met it.
                    FaultScope::Global => {}
                    FaultScope::Transient | FaultScope::HostSuspected => {
                        tracing::warn!(%host, check.id = %check.id, %fault, "a check failed on our side; nothing is counted");
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
