//! Starts and stops the processes of a benchmark.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

/// Longest wait for a process to start or stop: the orchestrator waits for running checks.
const WAIT_MAX: Duration = Duration::from_secs(90);

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A process of the benchmark. Dropping it kills the process.
#[derive(Debug)]
pub struct Role {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Role {
    /// Starts a process. Its output goes to `<name>.log` in `logs`.
    pub fn start(name: &'static str, command: &mut Command, logs: &Path) -> Result<Self> {
        let log = logs.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{name}: can't be started"))?;
        Ok(Self { name, child, log })
    }

    /// Waits until it accepts connections on `socket`.
    pub async fn listens_on(&mut self, socket: &Path) -> Result<()> {
        let began = Instant::now();
        while UnixStream::connect(socket).await.is_err() {
            self.must_run(began)?;
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Waits until it has created `file`.
    pub async fn makes(&mut self, file: &Path) -> Result<()> {
        let began = Instant::now();
        while !file.exists() {
            self.must_run(began)?;
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    pub fn id(&self) -> Result<u32> {
        let name = self.name;
        self.child
            .id()
            .with_context(|| format!("{name}: has ended"))
    }

    /// Sends it a signal to stop, and waits for its end.
    pub async fn stop(mut self) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.id()?)?).context("a process's id")?;
        kill_process(pid, Signal::TERM)?;
        tokio::time::timeout(WAIT_MAX, self.child.wait())
            .await
            .with_context(|| format!("{}: does not end", self.name))??;
        Ok(())
    }

    fn must_run(&mut self, began: Instant) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!(
                "{}: ended with {status}; it said:\n{}",
                self.name,
                self.tail()
            );
        }
        if began.elapsed() > WAIT_MAX {
            bail!(
                "{}: is not ready after {WAIT_MAX:?}; it said:\n{}",
                self.name,
                self.tail()
            );
        }
        Ok(())
    }

    fn tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let skipped = lines.len().saturating_sub(20);
        lines
            .into_iter()
            .skip(skipped)
            .collect::<Vec<_>>()
            .join("\n")
    }
}
