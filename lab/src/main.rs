//! `fedicensus-lab`: serves the lab, prints its table, and compares a census's findings with it.

use std::fs;
use std::io::{self, Read, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use lab::crowd::Crowd;
use lab::farm::Farm;
use lab::personas::{SEED, chosen_personas};
use lab::report::{Found, compare};
use lab::state_dir::{CA_FILE, NAMES_FILE, Table};
use lab::{ANSWER_MS_MAX, Lab, LabError, Settings, request_log};
use tokio::signal::unix::{SignalKind, signal};

/// Longest file that is read. A table with the largest crowd is shorter.
const FILE_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Timeout of a health check.
const HEALTH_SECONDS_MAX: u64 = 5;

/// A Fediverse in a box: instances of every kind, sound and hostile, behind one TLS port.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write names, CA and expectations to the state directory and serve until SIGTERM.
    Serve(Serve),
    /// Exit 0 when the lab of this state directory serves.
    Health {
        /// The state directory.
        #[arg(long)]
        state: PathBuf,
    },
    /// Print the table: name, expected verdict, what it plays.
    #[command(alias = "names")]
    Expect {
        /// As the JSON of expectations.json.
        #[arg(long)]
        json: bool,
        /// Only these personas, comma-separated, with the seed and the hosts that they lead to.
        #[arg(long, default_value = "")]
        personas: String,
    },
    /// Compare what a census found; exit 1 on any difference.
    Report(Compare),
}

#[derive(Debug, clap::Args)]
struct Serve {
    /// The state directory; it must exist.
    #[arg(long)]
    state: PathBuf,
    /// Where to listen.
    #[arg(long, default_value = "0.0.0.0:8443")]
    listen: SocketAddr,
    /// Address for the names file; default: this machine's first that is not loopback.
    #[arg(long)]
    address: Option<IpAddr>,
    /// Only these personas, comma-separated, with the seed and the hosts that they lead to.
    #[arg(long, default_value = "")]
    personas: String,
    /// Ordinary responding instances in addition to the personas.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    crowd: u32,
    /// Names of a farm below one domain, which fifty servers list, and a tenth as many customers of
    /// a hoster.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=12_500_000))]
    farm: u64,
    /// Median round trip to each host in ms, a few of which take 2 s more for each answer.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=i64::from(ANSWER_MS_MAX)))]
    answer_ms: u16,
    /// From which the crowd is made.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Further `NAME ADDRESS PORT` lines for the names file.
    #[arg(long)]
    add: Option<PathBuf>,
    /// Further certificates for the CA file.
    #[arg(long)]
    add_ca: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Compare {
    /// The lab's expectations.json.
    #[arg(long)]
    expect: PathBuf,
    /// What the census knows: an array of {"host","state","verdict","reason"}, optionally with
    /// "software" and "hidden".
    #[arg(long)]
    found: PathBuf,
    /// The published nodes.json.
    #[arg(long)]
    nodes: PathBuf,
    /// The lab's requests.ndjson, to show as well what was asked and what was not.
    #[arg(long)]
    requests: Option<PathBuf>,
}

fn main() -> anyhow::Result<ExitCode> {
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_max_level(tracing::Level::INFO)
        .init();
    match Arguments::parse().command {
        Command::Serve(serve) => runtime()?.block_on(run(serve))?,
        Command::Health { state } => runtime()?.block_on(health(&state))?,
        Command::Expect { json, personas } => expect(json, &personas)?,
        Command::Report(files) => return report(&files),
    }
    Ok(ExitCode::SUCCESS)
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
}

async fn run(serve: Serve) -> anyhow::Result<()> {
    let text = |path: &Option<PathBuf>| match path {
        Some(path) => read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned() + "\n"),
        None => Ok(String::new()),
    };
    let settings = Settings {
        listen: serve.listen,
        address: serve.address,
        personas: chosen(&serve.personas),
        crowd: Crowd::new(serve.crowd, serve.seed),
        farm: Farm::new(serve.farm),
        answer: Duration::from_millis(serve.answer_ms.into()),
        names_added: text(&serve.add)?,
        ca_added: text(&serve.add_ca)?,
        state: Some(serve.state),
    };
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let lab = Lab::start(settings).await?;
    let (personas, crowd) = (lab.table().personas.len(), lab.table().crowd.len());
    tracing::info!(address = %lab.address(), personas, crowd, "the lab serves");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    lab.stop().await;
    Ok(())
}

async fn health(state: &Path) -> anyhow::Result<()> {
    let names = String::from_utf8(read(&state.join(NAMES_FILE))?)?;
    let ca_pem = read(&state.join(CA_FILE))?;
    let place = names
        .lines()
        .find_map(|line| line.strip_prefix(SEED))
        .context("the names file does not name the seed")?;
    let (ip, port) = place
        .trim()
        .split_once(' ')
        .context("the seed's line is no NAME ADDRESS PORT")?;
    let address = SocketAddr::new(ip.parse()?, port.parse()?);
    let wait = Duration::from_secs(HEALTH_SECONDS_MAX);
    tokio::time::timeout(wait, lab::client::connect(address, SEED, &ca_pem)).await??;
    Ok(())
}

fn chosen(list: &str) -> Vec<String> {
    list.split(',')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

fn expect(json: bool, only: &str) -> anyhow::Result<()> {
    let personas = chosen_personas(&chosen(only), &[]).map_err(LabError::NoPersona)?;
    let table = Table::new(&personas, Crowd::default(), Farm::default(), "");
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, &table)?;
        writeln!(out)?;
        return Ok(());
    }
    for persona in table.personas {
        let verdict = persona.expectation.verdict.name().unwrap_or("never");
        writeln!(
            out,
            "{:34} {verdict:10} {}",
            persona.host.as_str(),
            persona.plays
        )?;
    }
    Ok(())
}

fn report(files: &Compare) -> anyhow::Result<ExitCode> {
    let table: Table = parse(&files.expect)?;
    let found: Vec<Found> = parse(&files.found)?;
    let nodes: Vec<String> = parse(&files.nodes)?;
    let asked = match &files.requests {
        Some(path) => Some(request_log::asked(path).with_context(|| path.display().to_string())?),
        None => None,
    };
    let report = compare(&table, &found, &nodes, asked.as_ref());
    io::stdout().lock().write_all(report.text.as_bytes())?;
    Ok(if report.differences.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    serde_json::from_slice(&read(path)?).with_context(|| path.display().to_string())
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes))
        .with_context(|| path.display().to_string())?;
    Ok(bytes)
}
