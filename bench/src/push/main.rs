//! What the push service holds and delivers (`bench/README.md`).

mod delivery;
mod idle;

use std::path::PathBuf;

use clap::Parser;

/// Measures the push service.
#[derive(Debug, Parser)]
#[command(name = "bench-push", version)]
struct Arguments {
    /// Clients that are connected and do nothing
    #[arg(long, default_value_t = 20_000)]
    idle: usize,
    /// Messages of each kind that are sent
    #[arg(long, default_value_t = 30_000)]
    messages: usize,
    /// Folder below which the databases are made; the system's for temporary files unless set
    #[arg(long)]
    folder: Option<PathBuf>,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let below = arguments.folder.unwrap_or_else(std::env::temp_dir);
    idle::measure(&below, arguments.idle).await?;
    delivery::measure(&below, arguments.messages).await
}

/// Prints a line of what was found.
fn say(text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    Ok(writeln!(std::io::stdout(), "{text}")?)
}

/// The value below which this share of the samples is; 0 for none.
fn quantile(samples: &mut [f64], share: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let place = (samples.len() as f64 * share) as usize;
    let last = samples.len().saturating_sub(1);
    samples.get(place.min(last)).copied().unwrap_or_default()
}
