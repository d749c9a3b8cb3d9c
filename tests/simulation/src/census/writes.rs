//! What a moment has to be written: verdicts, hosts given back, names learned.

use census::state::{OptedOutBy, State, Verdict};
use census::time::{Jitter, Timestamp};
use census::transition::transition;
use futures_util::future::join_all;
use orchestrator::settle::settle;
use orchestrator::tools::Tools;
use protocol::Host;
use store::StoreError;

use super::Census;
use crate::course::Check;
use crate::names::Name;
use crate::run::{Failure, Sabotage};

/// Writes that are given to the store at once, so that they share a transaction: fewer than wait for it at most, so that their order is this one's.
const TOGETHER: usize = 128;

/// What becomes of a host in flight.
#[derive(Debug)]
pub(super) enum Write {
    /// Its verdict is settled.
    Settle(Check, Verdict),
    /// No verdict: it is due at this time.
    Release(Host, Timestamp),
}

impl Write {
    fn host(&self) -> &Host {
        match self {
            Self::Settle(check, _) => &check.record.host,
            Self::Release(host, _) => host,
        }
    }

    /// Whether it brings a name, which the door decides on in a task of its own.
    fn brings_a_name(&self) -> bool {
        match self {
            Self::Settle(_, verdict) => matches!(verdict, Verdict::Moved { .. }),
            Self::Release(..) => false,
        }
    }

    async fn perform(&self, tools: &Tools) -> Result<(), StoreError> {
        match self {
            Self::Settle(check, verdict) => settle(&check.record, verdict, tools).await,
            Self::Release(host, due) => tools.writer.release(host, *due, None).await,
        }
    }
}

impl Census {
    /// Writes all of it. What needs the door comes after what does not, one after the other, so that the same seed gives the same order.
    pub(super) async fn write_all(&mut self, now: Timestamp) -> Result<(), Failure> {
        let (alone, together): (Vec<_>, Vec<_>) = std::mem::take(&mut self.writes)
            .into_iter()
            .partition(Write::brings_a_name);
        for chunk in together.chunks(TOGETHER) {
            let tools = &self.stage.tools;
            for written in join_all(chunk.iter().map(|write| write.perform(tools))).await {
                written?;
            }
        }
        for write in &alone {
            write.perform(&self.stage.tools).await?;
        }
        for write in together.into_iter().chain(alone) {
            self.guard.ended(write.host());
            match write {
                Write::Settle(check, verdict) => self.settled(&check, &verdict, now).await?,
                Write::Release(_, due) => {
                    self.look_at = self.look_at.map(|known| known.min(due));
                }
            }
        }
        for (by, names) in std::mem::take(&mut self.named) {
            self.learn(&by, names, now).await?;
        }
        Ok(())
    }

    /// A verdict is on disk. Our own book has it by the same rules, less the chance in them.
    async fn settled(
        &mut self,
        check: &Check,
        verdict: &Verdict,
        now: Timestamp,
    ) -> Result<(), Failure> {
        self.outage.works(now);
        let calendar = self.stage.tools.calendar;
        let change = transition(&check.record, verdict, now, Jitter(0), calendar);
        let host = &check.record.host;
        if change.forget && !self.does(Sabotage::ForgetQuietly) {
            self.measure.counts.forgotten += 1;
        }
        let is_refusal = *verdict == Verdict::OptedOut;
        self.guard.settled(host, &change.record.state, is_refusal);
        if let Name::Host(number) = check.name {
            self.measure
                .settled(number, &change.record, &self.truth, now);
            if let Verdict::Moved { to } = verdict {
                self.look_for(to)?;
            }
        }
        let by_robots = State::OptedOut {
            by: OptedOutBy::Robots,
        };
        if self.does(Sabotage::DeafToRobots) && change.record.state == by_robots {
            let writer = &self.stage.tools.writer;
            writer.opt_in(host, OptedOutBy::Robots, now).await?;
            self.look_at = None;
        }
        Ok(())
    }

    /// Names that a living host has in its list of peers come to the door.
    pub(super) async fn learn(
        &mut self,
        by: &Host,
        numbers: Vec<u32>,
        _now: Timestamp,
    ) -> Result<(), Failure> {
        let mut hosts = Vec::new();
        for number in &numbers {
            hosts.push(Name::Host(*number).host()?);
        }
        self.stage.tools.learn(hosts.clone(), by).await?;
        for host in &hosts {
            self.look_for(host)?;
        }
        Ok(())
    }

    /// Whether a host that was named is in by now; if not, it may wait.
    pub(super) fn look_for(&mut self, host: &Host) -> Result<(), Failure> {
        let Some(Name::Host(number)) = Name::of(host.as_str()) else {
            return Ok(());
        };
        if self.measure.is_known(number) {
            return Ok(());
        }
        match self.stage.reader.record(host)? {
            Some(stored) => {
                self.measure.knows(number, self.stage.tools.now());
                self.waiting.remove(&number);
                let due = stored.record.due;
                self.look_at = self
                    .look_at
                    .map(|known| due.map_or(known, |due| known.min(due)));
            }
            None => {
                self.waiting.insert(number);
            }
        }
        Ok(())
    }
}
