//! The memory of a process with an open census: the store with all known names, and the gate for
//! new names. Measured in a separate process, because otherwise the remains of other measurements
//! would count too.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use admission::{Limit, Limits, Names, Reserved, Suffixes};
use anyhow::{Context as _, Result, ensure};
use census::time::Timestamp;
use orchestrator::admit::gate::{NameGate, Origin};
use orchestrator::admit::policy::Files;
use protocol::Host;
use serde::{Deserialize, Serialize};

use crate::checks::{Arrival, Census};

const LIST: u64 = 5000;

/// Memory in KiB, and the known names' part of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Held {
    pub(crate) names: usize,
    pub(crate) filter_bytes: usize,
    pub(crate) opened_kib: u64,
    pub(crate) checked_kib: u64,
    pub(crate) junk_kib: u64,
    pub(crate) most_kib: u64,
}

/// Runs this program again for a census that no process has open.
pub(crate) fn by_another_process(path: &Path, checks: u32, junk: u64) -> Result<Held> {
    let own = std::env::current_exe()?;
    let mut command = Command::new(own);
    command.arg("--hold").arg(path);
    command.args(["--checks", &checks.to_string()]);
    command.args(["--junk", &junk.to_string()]);
    let output = command.output().context("this program, once more")?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {told}", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The work of the other process.
pub(crate) async fn hold(path: &Path, checks: u32, junk: u64) -> Result<()> {
    let mut census = Census::open(path)?;
    let gate = gate(&census).await?;
    let (names, filter_bytes) = census.store().writer().recognised();
    let opened_kib = status_kib("VmRSS:")?;
    for arrival in Arrival::ALL {
        census.round(arrival, checks).await?;
    }
    let checked_kib = status_kib("VmRSS:")?;
    name_junk(&gate, junk, census.now()).await?;
    let held = Held {
        names,
        filter_bytes,
        opened_kib,
        checked_kib,
        junk_kib: status_kib("VmRSS:")?,
        most_kib: status_kib("VmHWM:")?,
    };
    Ok(serde_json::to_writer(std::io::stdout().lock(), &held)
        .and_then(|()| std::io::stdout().flush().map_err(serde_json::Error::io))?)
}

async fn gate(census: &Census) -> Result<NameGate> {
    let limit = |number| Limit::new(number).context("a limit");
    let files = Files {
        limits: Limits {
            source: limit(2000)?,
            shared_suffix: limit(1000)?,
            total: limit(50_000)?,
        },
        ..Files::default()
    };
    let names = Names {
        suffixes: Suffixes::compiled(),
        reserved: Reserved::Refuse,
    };
    Ok(NameGate::open(census.store().writer(), names, files).await?)
}

/// One source names all of them, each below its own registered domain.
async fn name_junk(gate: &NameGate, junk: u64, now: Timestamp) -> Result<()> {
    let by = Host::parse("social.example.org")?;
    for begin in (0..junk).step_by(usize::try_from(LIST)?) {
        let numbers = begin..junk.min(begin + LIST);
        let hosts = numbers.map(|number| Host::parse(&format!("invented{number}.net")));
        let list = hosts.collect::<Result<_, _>>()?;
        gate.named(list, &by, Origin::Stranger, now).await?;
    }
    Ok(())
}

fn status_kib(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kib.context("memory in /proc/self/status")?.parse()?)
}
