//! The command line: runs a check, a public list, a walk, a delivery, a probe or a wait.
//!
//! Prints events on stdout and refuses to start without an order. Exit codes: 0 done, 64 wrong
//! usage, 70 a fault of ours, which is one line on stderr.
#![warn(
    clippy::as_conversions,
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm
)]

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::SystemTime;

use checker::emit::Emitter;
use checker::fetch::{Fetcher, Route, Start};
use checker::limits::Limits;
use checker::order::{self, ExtraRoots, by_hand, delivery};
use checker::sandbox::{probe, rlimits};
use checker::{check, list, walk};
use clap::Parser;
use protocol::limits::{EGRESS_MOUNT, PEERS_MAX};
use protocol::order::AskPeers;
use protocol::{CheckOrder, Host, ListFormat, ListOrder, ListPath, WalkOrder};
use tokio::time::Instant;

/// `EX_USAGE` of sysexits.h.
const EXIT_USAGE: u8 = 64;

/// `EX_SOFTWARE` of sysexits.h.
const EXIT_OWN_FAILURE: u8 = 70;

/// Checks one host, reads a public list of it or walks through its public conversations, and prints
/// what it found, a JSON object a line.
///
/// Exit codes: 0 done, whatever was found; 64 wrong usage; 70 a failure of our own.
#[derive(Debug, Parser)]
#[command(name = "fedicensus-checker", version)]
struct Arguments {
    /// The host to check.
    #[arg(required_unless_present_any = ["probe", "hold"])]
    host: Option<Host>,

    /// Directory with the egress socket and the order.
    #[arg(long, value_name = "DIR", default_value = EGRESS_MOUNT, conflicts_with_all = ["direct", "probe"])]
    egress: PathBuf,

    /// Trust the roots that lie in that directory as well. Only a launcher whose settings are the
    /// lab's passes it.
    #[arg(long, conflicts_with_all = ["direct", "probe"])]
    extra_roots: bool,

    /// Debug by hand: over the ordinary network, with the system's resolver and no order.
    #[arg(long, conflicts_with = "probe")]
    direct: bool,

    /// Who asks, for the user agent.
    #[arg(
        long,
        value_name = "TEXT",
        requires = "direct",
        default_value = "a check by hand"
    )]
    contact: String,

    /// Ask for no peers.
    #[arg(long, requires = "direct")]
    no_peers: bool,

    /// Read the public list at this path of the host instead of checking it.
    #[arg(long, value_name = "PATH", requires_all = ["direct", "format"], conflicts_with = "no_peers")]
    list: Option<ListPath>,

    /// How that list is written: lines, json, ndjson, csv or suffixes; or that it is a host's
    /// proof: proof.
    #[arg(long, value_name = "FORMAT", requires = "list")]
    format: Option<ListFormat>,

    /// Walk through the host's public conversations for names of other hosts instead of checking
    /// it. The seed of its random choices may follow: the same one makes the same walk.
    #[arg(
        long,
        value_name = "SEED",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "0",
        requires = "direct",
        conflicts_with_all = ["no_peers", "list"]
    )]
    walk: Option<u64>,

    /// Further trust roots, a file of PEM certificates.
    #[arg(long, value_name = "FILE", requires = "direct")]
    ca: Option<PathBuf>,

    /// Print the limits found in force and end.
    #[arg(long, conflicts_with = "host")]
    probe: bool,

    /// Wait until killed: a container that runs keeps its image.
    #[arg(long, conflicts_with_all = ["host", "probe", "egress", "direct"])]
    hold: bool,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program's entry is the one place that reads the wall clock"
)]
fn main() -> ExitCode {
    let start = Start {
        instant: Instant::now(),
        wall: SystemTime::now(),
    };
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors. If they can't be printed, there is nobody to report
            // that to.
            error.print().ok();
            return match error.exit_code() {
                0 => ExitCode::SUCCESS,
                _ => ExitCode::from(EXIT_USAGE),
            };
        }
    };
    match run(arguments, start) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(io::stderr(), "fedicensus-checker: {}", chain(&*error)).ok();
            ExitCode::from(EXIT_OWN_FAILURE)
        }
    }
}

fn run(arguments: Arguments, start: Start) -> Result<(), Box<dyn Error>> {
    if arguments.hold {
        rlimits::lower_limits()?;
        loop {
            thread::park();
        }
    }
    let Some(host) = arguments.host.clone() else {
        // Before the limits are lowered, so that the report shows the engine's.
        let report = serde_json::to_string(&probe::probe())?;
        writeln!(io::stdout(), "{report}")?;
        return Ok(());
    };
    rlimits::lower_limits()?;
    let limits = Limits::default();
    let (mut fetcher, order) = if arguments.direct {
        directly(&arguments, &host, limits, start)?
    } else {
        let roots = match arguments.extra_roots {
            true => ExtraRoots::Trust,
            false => ExtraRoots::Refuse,
        };
        through_egress(&arguments.egress, roots, &host, limits, start)?
    };
    let emitter = Emitter::new(Box::new(io::stdout()), limits.stdout_bytes);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()?;
    let ended = runtime.block_on(async {
        match (&order.list, order.walk, &order.delivery) {
            (Some(list), _, _) => list::run(&mut fetcher, emitter, list).await,
            (None, Some(walk), _) => walk::run(&mut fetcher, emitter, walk).await,
            (None, None, Some(order)) => delivery::run(&mut fetcher, emitter, order).await,
            (None, None, None) => check::run(&mut fetcher, emitter, order.peers).await,
        }
    });
    // A look-up or parser that still hangs is abandoned: all events are printed.
    runtime.shutdown_background();
    Ok(ended?)
}

fn directly(
    arguments: &Arguments,
    host: &Host,
    limits: Limits,
    start: Start,
) -> Result<(Fetcher, CheckOrder), Box<dyn Error>> {
    let ca = arguments.ca.as_deref();
    let ca = ca.map(by_hand::read_ca).transpose()?;
    by_hand::reach(host)?;
    let contact = &arguments.contact;
    let fetcher = Fetcher::new(Route::Network, host, contact, ca.as_deref(), limits, start)?;
    let list = arguments.list.clone().zip(arguments.format);
    let order = CheckOrder {
        contact: contact.clone(),
        peers: match arguments.no_peers {
            true => AskPeers::Skip,
            false => AskPeers::Ask,
        },
        list: list.map(|(path, format)| {
            Box::new(ListOrder {
                path,
                format,
                names_max: u32::try_from(PEERS_MAX).unwrap_or(u32::MAX),
            })
        }),
        walk: arguments.walk.map(|seed| WalkOrder { seed }),
        // Only a program makes messages.
        delivery: None,
    };
    Ok((fetcher, order))
}

fn through_egress(
    directory: &Path,
    roots: ExtraRoots,
    host: &Host,
    limits: Limits,
    start: Start,
) -> Result<(Fetcher, CheckOrder), Box<dyn Error>> {
    let egress = order::read(directory, roots)?;
    let route = Route::Socket(&egress.socket);
    let contact = &egress.order.contact;
    let ca = egress.ca_pem.as_deref();
    let fetcher = Fetcher::new(route, host, contact, ca, limits, start)?;
    Ok((fetcher, egress.order))
}

/// An error and its causes in one line.
fn chain(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    line
}
