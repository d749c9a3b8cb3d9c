//! The first day of a census: how soon it has checked and listed what the known Fediverse holds.
//!
//! It takes a world file, an engine, floods and restarts. It returns a table of the hours, with
//! what bound in each, and the goals that were missed.
//!
//! Scheduler, paces, gate, groups, store and transitions are the product's. Engine, network and
//! clock are simulated, in steps of 20 ms.

mod course;
mod known;
mod machine;
mod shell;
mod tally;

use std::path::PathBuf;
use std::time::Duration;

pub use machine::Engine;
pub use tally::Report;

/// Everything that happens within this time happens at once, so that the store's writes share
/// transactions.
const STEP: Duration = Duration::from_millis(20);

/// A first day to be simulated.
#[derive(Debug, Clone, clap::Args)]
pub struct FirstDay {
    /// World: one host a line of JSON
    #[arg(long)]
    pub world: PathBuf,
    #[arg(long, value_enum, default_value = "docker28")]
    pub engine: Engine,
    /// Most containers at once
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub containers: u32,
    /// Hours; without it those in which the engine should have listed the living
    #[arg(long)]
    pub hours: Option<u32>,
    /// Sources that share ten million invented names
    #[arg(long, default_value_t = 0)]
    pub flood: u32,
    /// Minutes after which the daemon is killed and started again
    #[arg(long)]
    pub kill: Vec<u32>,
    /// File for the minutes, as CSV
    #[arg(long)]
    pub minutes: Option<PathBuf>,
}

impl FirstDay {
    fn span(&self) -> Duration {
        Duration::from_secs(3600) * self.hours.unwrap_or_else(|| self.engine.hours())
    }
}

/// Simulates a first day, with its database below `below`.
///
/// # Errors
/// The world can't be read, the store failed, or a host was asked too often.
pub fn first_day(plan: &FirstDay, seed: u64, below: &std::path::Path) -> anyhow::Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let mut shell = shell::Shell::open(plan.clone(), seed, below).await?;
        shell.run().await?;
        shell.close()
    })
}
