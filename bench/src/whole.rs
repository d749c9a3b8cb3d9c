//! The whole path: a census of its own, to which all hosts are added at once.
//!
//! The clock runs from the moment before `fedicensus add` until the launcher has run as many containers and none is left; that every host came
//! out alive is then read off the dump.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use protocol::Host;

use crate::processes::Processes;
use crate::role::Role;
use crate::stage::Stage;
use crate::wire;

/// Between two looks at the launcher's counters.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A run that takes longer is stuck: the slowest engine seen takes 2 s a check.
const CHECK_WAIT_MAX: Duration = Duration::from_secs(10);

/// A census, running, with nothing to do yet.
#[derive(Debug)]
pub(crate) struct Whole<'stage> {
    stage: &'stage Stage,
    in_flight: usize,
    home: tempfile::TempDir,
    orchestrator: Role,
}

impl<'stage> Whole<'stage> {
    /// Starts a census with an empty database and so many checks at the same time.
    pub(crate) async fn prepare(stage: &'stage Stage, in_flight: usize) -> Result<Self> {
        let home = tempfile::tempdir_in(stage.folder())?;
        for name in ["data", "public"] {
            std::fs::create_dir(home.path().join(name))?;
        }
        let mut command = stage.fedicensus(home.path(), in_flight);
        let mut orchestrator = Role::start("run", command.arg("run"), stage.folder())?;
        orchestrator
            .listens_on(&home.path().join("data/control.sock"))
            .await?;
        Ok(Self {
            stage,
            in_flight,
            home,
            orchestrator,
        })
    }

    /// All processes that have a part in its checks.
    pub(crate) fn processes(&self) -> Result<Processes> {
        self.stage.processes(Some(&self.orchestrator))
    }

    /// Has `hosts` checked, and waits for the last one's container to end.
    pub(crate) async fn run(&self, hosts: &[Host]) -> Result<()> {
        let launcher = self.stage.launcher_socket();
        let before = wire::launcher_status(&launcher).await?.launches_total;
        let wanted = before + u64::try_from(hosts.len())?;
        let names = hosts.iter().map(Host::as_str);
        let added = self.command("add").args(names).output().await?;
        ensure!(
            added.status.success(),
            "fedicensus add: {}",
            String::from_utf8_lossy(&added.stderr)
        );
        let began = Instant::now();
        let wait_max = CHECK_WAIT_MAX * u32::try_from(hosts.len())?;
        loop {
            let status = wire::launcher_status(&launcher).await?;
            if status.launches_total >= wanted && status.running == 0 {
                return Ok(());
            }
            if began.elapsed() > wait_max {
                bail!("stuck: {status:?} after {wait_max:?}");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Ends the census, after it has shown that it found all of `hosts` alive.
    pub(crate) async fn finish(self, hosts: &[Host]) -> Result<()> {
        let dumped = self.command("dump").arg("--force").output().await?;
        ensure!(
            dumped.status.success(),
            "fedicensus dump: {}",
            String::from_utf8_lossy(&dumped.stderr)
        );
        let listed = listed(&self.home.path().join("public/nodes.json"))?;
        for host in hosts {
            ensure!(
                listed.binary_search(host).is_ok(),
                "{host}: did not come out alive"
            );
        }
        self.orchestrator.stop().await
    }

    fn command(&self, name: &str) -> tokio::process::Command {
        let mut command = self.stage.fedicensus(self.home.path(), self.in_flight);
        command.arg(name).kill_on_drop(true);
        command
    }
}

fn listed(path: &Path) -> Result<Vec<Host>> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_slice(&bytes)?)
}
