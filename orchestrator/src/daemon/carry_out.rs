//! Carries out the scheduler's commands.

pub(super) mod hour;
mod notice;

use census::state::Verdict;
use census::time::Timestamp;
use protocol::egress::Way;
use protocol::{DeadReason, Host};
use scheduler::command::{Command, Release, Released};
use scheduler::event::{Event, WriteOutcome};
use store::StoreError;

use super::parts::store_trouble;
use super::state::Daemon;
use crate::check::commit_verdict::commit_verdict;

impl Daemon {
    pub(super) fn carry_out(&mut self, command: Command, now: Timestamp) {
        match command {
            Command::CountDue { most, with_load } => self.count_due(most, with_load),
            Command::Take { wanted } => self.take_due(wanted),
            Command::TakeCanary(turn) => self.take_canary(turn),
            Command::Start(start) => self.start_check(start),
            Command::GrantSlot(holder) => self.desk.grant(holder),
            Command::TurnAway(holder) => self.desk.turn_away(holder),
            Command::Abort { check } => {
                self.checks.abort(check);
                self.desk.forget(check);
            }
            Command::CommitVerdict { record, verdict } => {
                let services = self.services.clone();
                // A verdict concluded from faults is no evidence that anything works.
                let written = match &verdict {
                    Verdict::Dead {
                        reason: DeadReason::Faulting,
                        ..
                    } => WriteOutcome::Released,
                    _ => WriteOutcome::Verdict,
                };
                self.write(record.host.clone(), written, async move {
                    commit_verdict(&record, &verdict, &services).await
                });
            }
            Command::Release(release) => self.release(release, now),
            Command::RememberWay { host, by, alone } => self.remember_way(host, by, alone, now),
            Command::AskParts => self.ask_parts(),
            Command::Publish { extent, force } => self.publish(extent, force),
            Command::Report(notice) => notice::log(&notice),
        }
    }

    fn release(&mut self, release: Release, now: Timestamp) {
        let Release { host, wait, why } = release;
        if matches!(why, Released::Unconfirmed(_)) {
            self.services.meters.unconfirmed();
        }
        if matches!(
            why,
            Released::Unconfirmed(_) | Released::FailedOnce(_) | Released::HitOthers(_)
        ) {
            self.hour.failure_did_not_count();
        }
        let due = wait.due(now, self.services.random.jitter(), self.services.calendar);
        let (services, of) = (self.services.clone(), host.clone());
        self.write(host, WriteOutcome::Released, async move {
            if matches!(why, Released::CountedFault(_)) {
                services.writer.count_fault(&of).await?;
            }
            services
                .writer
                .release(&of, due, Some(why.to_string()))
                .await
        });
    }

    /// A failure to store it is harmless: the next check notes it again.
    fn remember_way(&mut self, host: Host, by: Way, alone: bool, now: Timestamp) {
        let writer = self.services.writer.clone();
        self.work.spawn(async move {
            if let Err(error) = writer.remember_way(&host, by, alone, now).await {
                tracing::debug!(%host, %error, "by which way it responds could not be written");
            }
            Ok(Event::Tick)
        });
    }

    /// Writes a host's row in a task, so that the writer can put many into one transaction.
    fn write(
        &mut self,
        host: Host,
        written: WriteOutcome,
        writing: impl Future<Output = Result<(), StoreError>> + Send + 'static,
    ) {
        let location = self.store.location().clone();
        self.work.spawn(async move {
            let outcome = match writing.await {
                Ok(()) => written,
                // The row was removed while the check ran: there is nothing to write.
                Err(StoreError::Unknown { .. }) => WriteOutcome::Released,
                Err(error) => WriteOutcome::Failed(store_trouble(error, &location)?),
            };
            Ok(Event::Written { host, outcome })
        });
    }
}
