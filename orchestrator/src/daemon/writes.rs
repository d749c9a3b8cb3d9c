//! What the loop writes of a host in flight, each in a task of its own, so that the writer can put many into one transaction.

use std::time::Duration;

use census::state::{Record, Verdict};
use census::time::{Jitter, Timestamp};
use protocol::{DeadReason, Host};
use store::StoreError;

use super::{Daemon, RELEASE_WITHIN};
use crate::fault::Fault;
use crate::settle::settle;
use crate::tools::Tools;

/// A host that alone keeps causing faults while others are checked well becomes dead at this one (design §5).
const FAULTS_UNTIL_DEAD: u32 = 3;

/// Hosts that were put off for the same reason come back spread over at least this, not all at once.
const SPREAD_MIN: Duration = Duration::from_secs(10);

/// What becomes of a host in flight.
#[derive(Debug)]
pub(super) enum Write {
    /// Its verdict is settled.
    Settle(Box<Record>, Verdict),
    /// A fault is counted; the third is settled as dead.
    CountFault { record: Box<Record>, note: String },
    /// No verdict: it is due at the given time.
    Release { due: Timestamp, note: String },
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Outcome {
    host: Host,
    result: Result<(), StoreError>,
}

/// `at_least`, and up to as much again (or [`SPREAD_MIN`]) more.
pub(super) fn spread(at_least: Duration, jitter: Jitter) -> Duration {
    let width = at_least.max(SPREAD_MIN);
    let part = u128::from(jitter.0).saturating_mul(width.as_millis()) >> 32;
    at_least.saturating_add(Duration::from_millis(u64::try_from(part).unwrap_or(0)))
}

impl Daemon {
    pub(super) fn write(&mut self, host: Host, write: Write) {
        let tools = self.tools.clone();
        self.writes.spawn(async move {
            let result = perform(&host, write, &tools).await;
            Outcome { host, result }
        });
    }

    pub(super) fn give_back(&mut self, host: Host, due: Timestamp, note: &str) {
        self.write(
            host,
            Write::Release {
                due,
                note: note.to_owned(),
            },
        );
    }

    pub(super) fn give_back_soon(&mut self, host: Host, note: &str) {
        let due = self.tools.again_soon();
        self.give_back(host, due, note);
    }

    pub(super) fn written(&mut self, Outcome { host, result }: Outcome) -> anyhow::Result<()> {
        match result {
            Ok(()) => {
                self.in_flight.remove(&host);
            }
            Err(error @ StoreError::Closed) => anyhow::bail!("{error}"),
            Err(error) => {
                self.stuck.push(host);
                self.fail_everything(&Fault::Store(error));
            }
        }
        Ok(())
    }

    /// A fault that reaches further than one check: nothing is started until it is mended.
    pub(super) fn fail_everything(&mut self, fault: &Fault) {
        self.pause(fault.to_string());
    }

    pub(super) fn pause(&mut self, what: String) {
        let now = self.tools.now();
        if self.outage.begin(what.clone(), now) {
            tracing::error!(
                what,
                "nothing is checked until this is mended; nothing is counted against any host"
            );
        }
    }

    /// Looks whether gateway, launcher, engine and store work again.
    pub(super) async fn look_at_outage(&mut self, now: Timestamp) {
        match self.trouble().await {
            Some(what) => {
                tracing::debug!(what, "the outage goes on");
                self.outage.goes_on(what, now);
            }
            None => {
                let lasted_s = self.outage.end(now).unwrap_or_default().as_secs();
                tracing::info!(lasted_s, "the outage is over");
                self.due.poke();
            }
        }
    }

    async fn trouble(&mut self) -> Option<String> {
        match self.tools.gateway.status().await {
            Err(error) => return Some(Fault::Gateway(error).to_string()),
            Ok(status) if status.families.is_empty() => {
                return Some("the gateway has no network".to_owned());
            }
            Ok(_) => {}
        }
        match self.tools.launcher.status().await {
            Err(error) => return Some(Fault::Launcher(error).to_string()),
            Ok(status) => {
                if let Some(trouble) = status.trouble {
                    return Some(format!("launcher: {trouble}"));
                }
            }
        }
        if let Err(error) = self.tools.writer.try_write().await {
            return Some(Fault::Store(error).to_string());
        }
        while let Some(host) = self.stuck.last().cloned() {
            let due = self.tools.again_soon();
            if let Err(error) = self
                .tools
                .writer
                .release(
                    &host,
                    due,
                    Some("the store could not be written".to_owned()),
                )
                .await
            {
                return Some(Fault::Store(error).to_string());
            }
            self.stuck.pop();
            self.in_flight.remove(&host);
        }
        None
    }

    /// Ends all checks and gives their hosts back. Dropping a check ends its container and its egress.
    pub(super) async fn release_all(&mut self) {
        tracing::info!(in_flight = self.in_flight.len(), "shutting down");
        self.checks.shutdown().await;
        let writing = async {
            while let Some(outcome) = self.writes.join_next().await {
                if let Ok(Outcome {
                    host,
                    result: Ok(()),
                }) = outcome
                {
                    self.in_flight.remove(&host);
                }
            }
            for host in std::mem::take(&mut self.in_flight).into_keys() {
                let due = self.tools.again_soon();
                self.tools
                    .writer
                    .release(&host, due, Some("interrupted by our own end".to_owned()))
                    .await
                    .ok();
            }
        };
        if tokio::time::timeout(RELEASE_WITHIN, writing).await.is_err() {
            tracing::warn!("the store is slow; some hosts are found in flight at the next start");
        }
    }
}

async fn perform(host: &Host, write: Write, tools: &Tools) -> Result<(), StoreError> {
    match write {
        Write::Settle(record, verdict) => settle(&record, &verdict, tools).await,
        Write::Release { due, note } => tools.writer.release(host, due, Some(note)).await,
        Write::CountFault { record, note } => {
            if tools.writer.count_fault(host).await? >= FAULTS_UNTIL_DEAD {
                let faulting = Verdict::Dead {
                    reason: DeadReason::Faulting,
                    status: None,
                    to: None,
                };
                settle(&record, &faulting, tools).await
            } else {
                tools
                    .writer
                    .release(host, tools.again_soon(), Some(note))
                    .await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_put_off_together_come_back_apart() {
        let least = spread(Duration::from_secs(1), Jitter(0));
        let most = spread(Duration::from_secs(1), Jitter(u32::MAX));
        assert_eq!(least, Duration::from_secs(1));
        assert!(most > Duration::from_millis(10_990) && most <= Duration::from_secs(11));
        assert!(spread(Duration::from_secs(60), Jitter(u32::MAX)) <= Duration::from_secs(120));
    }
}
