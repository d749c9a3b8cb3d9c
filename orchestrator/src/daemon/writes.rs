//! What the loop writes of a host in flight, each in a task of its own, so that the writer can put many into one transaction.

use std::time::Duration;

use census::state::{Record, Verdict};
use census::time::{Jitter, Timestamp};
use protocol::{DeadReason, Host};
use store::StoreError;

use super::{Daemon, InDoubt, RELEASE_WITHIN};
use crate::fault::{Fault, Whose};
use crate::outage::{Begun, Seen};
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
    result: Result<Written, StoreError>,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    /// A verdict: the whole path works.
    Verdict,
    /// Anything else.
    Other,
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
            Ok(written) => {
                self.in_flight.remove(&host);
                if written == Written::Verdict
                    && let Some(lasted) = self.outage.works(self.tools.now())
                {
                    tracing::info!(
                        lasted_s = lasted.as_secs(),
                        "the outage is over: a check has come to a verdict"
                    );
                }
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
        // What a write or a reading failed of may be that the file has gone, which says more.
        let gone = matches!(fault, Fault::Store(_))
            .then(|| self.store.is_in_place().err())
            .flatten();
        self.pause(gone.map_or_else(|| fault.to_string(), |gone| Fault::Store(gone).to_string()));
    }

    /// A check failed on our side. One is chance; one after the other is not, though every part may say that it is well.
    pub(super) fn count_own_failure(&mut self, what: &str) {
        if let Some(count) = self.outage.fault() {
            self.begin_outage(
                format!("{count} checks in a row failed on our side, the last one so: {what}"),
                Seen::Counted,
            );
        }
        if self.outage.is_counted() {
            self.take_blame();
        }
    }

    /// What hit every host says nothing about any: the faults that wait for others to live are ours, all of them.
    fn take_blame(&mut self) {
        for failure in self
            .confirm
            .give_up(|failure| matches!(failure, InDoubt::Fault(..)))
        {
            let note = format!(
                "not counted, because it hit others as well: {}",
                failure.words()
            );
            let record = failure.record();
            let due = Whose::Ours.due(record.due, self.tools.again_soon());
            self.give_back(record.host.clone(), due, &note);
        }
    }

    pub(super) fn pause(&mut self, what: String) {
        self.begin_outage(what, Seen::Told);
    }

    fn begin_outage(&mut self, what: String, seen: Seen) {
        let now = self.tools.now();
        match self.outage.begin(what.clone(), seen, now) {
            Begun::News => tracing::error!(
                what,
                "nothing is checked until this is mended; nothing is counted against any host"
            ),
            Begun::FirstRelapse => tracing::error!(
                what,
                "the outage is not over; it is tried again and again, and the log stays silent until it is"
            ),
            Begun::Relapse | Begun::Known => tracing::debug!(what, "the outage goes on"),
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
                if let Some(lasted) = self.outage.parts_work(now) {
                    tracing::info!(lasted_s = lasted.as_secs(), "the outage is over");
                }
                self.due.poke();
            }
        }
    }

    pub(super) async fn trouble(&mut self) -> Option<String> {
        if let Err(error) = self.store.is_in_place() {
            return Some(Fault::Store(error).to_string());
        }
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
            let note = "the store could not be written".to_owned();
            match self.tools.writer.release(&host, due, Some(note)).await {
                // A row that somebody took away meanwhile has nothing to be released.
                Ok(()) | Err(StoreError::Unknown { .. }) => {}
                Err(error) => return Some(Fault::Store(error).to_string()),
            }
            self.stuck.pop();
            self.in_flight.remove(&host);
        }
        None
    }

    /// Ends all checks and gives their hosts back. Dropping a check ends its container and its egress.
    pub(super) async fn release_all(&mut self) {
        tracing::info!(in_flight = self.in_flight.len(), "shutting down");
        self.dumps.stop.say();
        self.checks.shutdown().await;
        let writing = async {
            while let Some(outcome) = self.writes.join_next().await {
                if let Ok(Outcome {
                    host,
                    result: Ok(_written),
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

async fn perform(host: &Host, write: Write, tools: &Tools) -> Result<Written, StoreError> {
    match write {
        Write::Settle(record, verdict) => {
            settle(&record, &verdict, tools).await?;
            Ok(Written::Verdict)
        }
        Write::Release { due, note } => {
            tools.writer.release(host, due, Some(note)).await?;
            Ok(Written::Other)
        }
        Write::CountFault { record, note } => {
            if tools.writer.count_fault(host).await? >= FAULTS_UNTIL_DEAD {
                let faulting = Verdict::Dead {
                    reason: DeadReason::Faulting,
                    status: None,
                    to: None,
                };
                settle(&record, &faulting, tools).await?;
            } else {
                let due = Whose::Theirs.due(record.due, tools.again_soon());
                tools.writer.release(host, due, Some(note)).await?;
            }
            Ok(Written::Other)
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
