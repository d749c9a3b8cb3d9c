//! The writes of one moment: verdicts, released hosts, learned names.

use census::state::Verdict;
use futures_util::future::try_join_all;
use orchestrator::check::commit_verdict::commit_verdict;
use scheduler::Event;
use scheduler::command::Release;
use scheduler::event::WriteOutcome;

use super::Shell;
use super::story::Story;

/// Writes that are given to the store together, so that they share a transaction. Fewer than the
/// store queues, so that their order is kept.
const TOGETHER: usize = 128;

impl<S: Story> Shell<S> {
    /// Writes everything. Verdicts that bring names, on which a separate task decides, follow the
    /// others one by one, so that the same seed gives the same order.
    pub(super) async fn write_all(&mut self) -> anyhow::Result<()> {
        let services = self.parts.stage.services.clone();
        let (alone, together): (Vec<_>, Vec<_>) = std::mem::take(&mut self.commits)
            .into_iter()
            .partition(|(_, verdict)| matches!(verdict, Verdict::Moved { .. }));
        for chunk in together.chunks(TOGETHER).chain(alone.chunks(1)) {
            let writes = chunk
                .iter()
                .map(|(record, verdict)| commit_verdict(record, verdict, &services));
            try_join_all(writes).await?;
        }
        for (record, verdict) in together.into_iter().chain(alone) {
            S::committed(self, &record, &verdict).await?;
            self.events.push_back(Event::Written {
                host: record.host,
                outcome: WriteOutcome::Verdict,
            });
        }
        let releases = std::mem::take(&mut self.releases);
        for chunk in releases.chunks(TOGETHER) {
            let writes = chunk.iter().map(|Release { host, wait, why }| {
                let due = wait.due(self.now, services.random.jitter(), services.calendar);
                services.writer.release(host, due, Some(why.to_string()))
            });
            try_join_all(writes).await?;
        }
        for release in releases {
            self.story.released(&release, self.now);
            let (host, outcome) = (release.host, WriteOutcome::Released);
            self.events.push_back(Event::Written { host, outcome });
            self.events.push_back(Event::RowsChanged);
        }
        for (by, id) in std::mem::take(&mut self.lists) {
            S::read_peers(self, by, id).await?;
        }
        Ok(())
    }
}
