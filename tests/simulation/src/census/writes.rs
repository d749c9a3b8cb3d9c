//! The writes of one moment: verdicts, released hosts, learned names.

use census::state::{OptedOutBy, Record, State, Verdict};
use census::time::{Jitter, Timestamp};
use census::transition::transition;
use futures_util::future::join_all;
use orchestrator::check::commit_verdict::commit_verdict;
use protocol::Host;
use scheduler::Event;
use scheduler::command::Release;
use scheduler::event::WriteOutcome;

use super::Census;
use crate::plan::{Failure, Sabotage};
use crate::world::names::Name;

/// Writes that are given to the store together, so that they share a transaction. Fewer than the
/// store queues, so that their order is kept.
const TOGETHER: usize = 128;

#[derive(Debug)]
pub(super) struct Commit {
    pub(super) record: Box<Record>,
    pub(super) verdict: Verdict,
}

impl Commit {
    /// Whether it brings a name, which a separate task decides on.
    fn brings_a_name(&self) -> bool {
        matches!(self.verdict, Verdict::Moved { .. })
    }
}

impl Census {
    /// Writes everything. Verdicts that bring names follow the others, one by one, so that the same
    /// seed gives the same order.
    pub(super) async fn write_all(&mut self, now: Timestamp) -> Result<(), Failure> {
        self.release_all(now).await?;
        let (alone, together): (Vec<_>, Vec<_>) = std::mem::take(&mut self.commits)
            .into_iter()
            .partition(Commit::brings_a_name);
        let services = self.stage.services.clone();
        for chunk in together.chunks(TOGETHER) {
            let writes = chunk
                .iter()
                .map(|commit| commit_verdict(&commit.record, &commit.verdict, &services));
            for written in join_all(writes).await {
                written?;
            }
        }
        for commit in &alone {
            commit_verdict(&commit.record, &commit.verdict, &services).await?;
        }
        for commit in together.into_iter().chain(alone) {
            self.committed(commit, now).await?;
        }
        for (by, names) in std::mem::take(&mut self.named) {
            self.learn(&by, names).await?;
        }
        Ok(())
    }

    async fn release_all(&mut self, now: Timestamp) -> Result<(), Failure> {
        let releases = std::mem::take(&mut self.releases);
        let services = self.stage.services.clone();
        for chunk in releases.chunks(TOGETHER) {
            let writes = chunk.iter().map(|Release { host, wait, .. }| {
                let due = wait.due(now, services.random.jitter(), services.calendar);
                services.writer.release(host, due, None)
            });
            for written in join_all(writes).await {
                written?;
            }
        }
        if !releases.is_empty() {
            self.events.push_back(Event::RowsChanged);
        }
        for Release { host, .. } in releases {
            self.guard.ended(&host);
            let outcome = WriteOutcome::Released;
            self.events.push_back(Event::Written { host, outcome });
        }
        Ok(())
    }

    /// A verdict is on disk. Our own records follow the same rules, without their randomness.
    async fn committed(&mut self, commit: Commit, now: Timestamp) -> Result<(), Failure> {
        let Commit { record, verdict } = commit;
        let calendar = self.stage.services.calendar;
        let change = transition(&record, &verdict, now, Jitter(0), calendar);
        let host = &record.host;
        self.guard.ended(host);
        if change.forget && !self.does(Sabotage::ForgetQuietly) {
            self.measure.counts.forgotten += 1;
        }
        let is_refusal = verdict == Verdict::OptedOut;
        self.guard.settled(host, &change.record.state, is_refusal);
        if let Some(Name::Host(number)) = Name::of(host.as_str()) {
            self.measure
                .settled(number, &change.record, &self.truth, now);
            if let Verdict::Moved { to } = &verdict {
                self.look_for(to)?;
            }
        }
        let by_robots = State::OptedOut {
            by: OptedOutBy::Robots,
        };
        if self.does(Sabotage::DeafToRobots) && change.record.state == by_robots {
            let writer = &self.stage.services.writer;
            writer.opt_in(host, OptedOutBy::Robots, now).await?;
            self.events.push_back(Event::RowsChanged);
        }
        self.events.push_back(Event::Written {
            host: host.clone(),
            outcome: WriteOutcome::Verdict,
        });
        Ok(())
    }

    /// Names in a responding host's peers list arrive at the gate.
    async fn learn(&mut self, by: &Host, numbers: Vec<u32>) -> Result<(), Failure> {
        let mut hosts = Vec::new();
        for number in &numbers {
            hosts.push(Name::Host(*number).host()?);
        }
        self.stage.services.learn(hosts.clone(), by).await?;
        for host in &hosts {
            self.look_for(host)?;
        }
        Ok(())
    }

    /// Checks whether a named host was admitted. If not, it may wait.
    pub(super) fn look_for(&mut self, host: &Host) -> Result<(), Failure> {
        let Some(Name::Host(number)) = Name::of(host.as_str()) else {
            return Ok(());
        };
        if self.measure.is_known(number) {
            return Ok(());
        }
        if self.stage.reader.record(host)?.is_some() {
            self.measure.knows(number, self.stage.services.now());
            self.waiting.remove(&number);
            self.events.push_back(Event::RowsChanged);
        } else {
            self.waiting.insert(number);
        }
        Ok(())
    }
}
