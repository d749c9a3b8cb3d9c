//! The maximum memory of a process.

use anyhow::{Context as _, Result};

/// The maximum memory of a process so far, in megabytes. `process` is its id, or `self`.
pub fn most_mb(process: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .context("VmHWM")?
        .trim()
        .parse()?;
    Ok(kib * 1024 / 1_000_000)
}
