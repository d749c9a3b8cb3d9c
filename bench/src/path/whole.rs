//! The whole path: a separate census to which all hosts are added at once.
//!
//! The clock runs from just before `fedicensus add` until the launcher has run this many containers
//! and none is left. The dump then shows whether every host was found alive.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use bench::shared::processes::Processes;
use bench::shared::role::Role;
use bench::shared::stage::Stage;
use launcher::LauncherClient;
use protocol::Host;

/// Interval between two reads of the launcher's counters.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A run that takes longer is stuck: the slowest known engine takes 2 s per check.
const CHECK_WAIT_MAX: Duration = Duration::from_secs(10);

/// A running census that is idle.
#[derive(Debug)]
pub(crate) struct Whole<'stage> {
    stage: &'stage Stage,
    in_flight: usize,
    home: tempfile::TempDir,
    orchestrator: Role,
}

impl<'stage> Whole<'stage> {
    /// Starts a census with an empty database and this many checks in parallel.
    pub(crate) async fn prepare(stage: &'stage Stage, in_flight: usize) -> Result<Self> {
        let home = tempfile::tempdir_in(stage.folder())?;
        for name in ["data", "public"] {
            std::fs::create_dir(home.path().join(name))?;
        }
        let mut command = stage.fedicensus(home.path(), Some(in_flight), &full_speed(in_flight))?;
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

    pub(crate) fn processes(&self) -> Result<Processes> {
        self.stage.processes(Some(&self.orchestrator))
    }

    /// Adds `hosts`, and waits until the last container has ended.
    pub(crate) async fn run(&self, hosts: &[Host]) -> Result<()> {
        let launcher = LauncherClient::socket(self.stage.launcher_socket());
        let before = launcher.status().await?.launches_total;
        let wanted = before + u64::try_from(hosts.len())?;
        let names = hosts.iter().map(Host::as_str);
        let added = self.command("add")?.args(names).output().await?;
        let told = String::from_utf8_lossy(&added.stderr);
        ensure!(added.status.success(), "fedicensus add: {told}");
        let began = Instant::now();
        let wait_max = CHECK_WAIT_MAX * u32::try_from(hosts.len())?;
        loop {
            let status = launcher.status().await?;
            if status.launches_total >= wanted && status.running == 0 {
                return Ok(());
            }
            if began.elapsed() > wait_max {
                bail!("stuck: {status:?} after {wait_max:?}");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Stops the census, after checking that it found all of `hosts` alive.
    pub(crate) async fn finish(self, hosts: &[Host]) -> Result<()> {
        let dumped = self.command("dump")?.arg("--force").output().await?;
        ensure!(
            dumped.status.success(),
            "fedicensus dump: {}",
            String::from_utf8_lossy(&dumped.stderr)
        );
        let listed = listed(&self.home.path().join("public/current/nodes.json"))?;
        for host in hosts {
            ensure!(
                listed.binary_search(host).is_ok(),
                "{host}: did not come out alive"
            );
        }
        self.orchestrator.stop().await
    }

    fn command(&self, name: &str) -> Result<tokio::process::Command> {
        let mut command = self.stage.fedicensus(
            self.home.path(),
            Some(self.in_flight),
            &full_speed(self.in_flight),
        )?;
        command.arg(name).kill_on_drop(true);
        Ok(command)
    }
}

/// Lab settings for a census at full speed from the start.
fn full_speed(in_flight: usize) -> [(&'static str, String); 2] {
    [
        ("checks_min", in_flight.to_string()),
        ("starts_per_second", "1000".to_owned()),
    ]
}

fn listed(path: &Path) -> Result<Vec<Host>> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_slice(&bytes)?)
}
