//! What an attacker can measure at the console's login, and what a flood of logins costs logged-in
//! moderators (`bench/README.md`).

mod client;
mod flood;
mod samples;
mod timing;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Measures the console's login.
#[derive(Debug, Parser)]
#[command(name = "bench-login", version)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Compares how long refusals take, by their reason
    Timing {
        /// Samples of each reason at least
        #[arg(long, default_value_t = 500)]
        samples: usize,
        /// File of the plot
        #[arg(long)]
        plot: Option<PathBuf>,
    },
    /// Loads a moderator's pages while many logins come at once through the web server
    Flood {
        /// Logins
        #[arg(long, default_value_t = 2000)]
        logins: usize,
        /// Addresses that they come from, at most 250
        #[arg(long, default_value_t = 200)]
        addresses: usize,
    },
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    match Arguments::parse().what {
        What::Timing { samples, plot } => timing::measure(samples, plot.as_deref()).await,
        What::Flood { logins, addresses } => flood::measure(logins, addresses).await,
    }
}

/// Prints a line of results.
fn say(text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    Ok(writeln!(std::io::stdout(), "{text}")?)
}
