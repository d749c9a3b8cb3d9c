//! The cost of unreachable hosts to the whole census, with its own DNS server and lab
//! (`bench/README.md`).
//!
//! It needs the release binaries, and a machine on which port 443 of loopback addresses is free and
//! may be bound. It prints a table: verdicts per second, processor time per verdict, memory, and
//! how long living hosts waited during that time.
//!
//! The database is full of dead hosts that are due. By default half of them have no name; the
//! others refuse the connection or never answer. In addition, living hosts come due one after the
//! other, and their checks run as processes. They are the witnesses without which no failure
//! counts, and show whether they have to wait. No engine is needed.

mod names;
mod process;

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bench::shared::memory;
use bench::shared::role::Role;
use census::state::{Record, State};
use census::time::Timestamp;
use clap::Parser;
use gateway::GatewayClient;
use orchestrator::services::clock::{Clock as _, SystemClock};
use protocol::Host;
use rusqlite::{Connection, OpenFlags};
use tests::world::{EGRESS, GATEWAY_SOCKET, LAUNCHER_SOCKET, RUN_FOLDERS};
use tests::write_lab_file;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::process::Command;

use crate::names::{Kind, NameServer};

/// Address of the lab, at the only port that is dialled for a name from DNS.
const LAB: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(127, 98, 0, 1)), 443);

/// Longest wait for a connection that is refused or established at once.
const AT_ONCE: Duration = Duration::from_secs(2);

/// A connection without an answer within this time gets none: on loopback an answer takes
/// microseconds.
const UNANSWERED_AFTER: Duration = Duration::from_millis(500);

/// Additional time for which living hosts come due, because the parts have to start first.
const START_SECONDS_MAX: u32 = 60;

/// Interval between two samples of the number of open hosts.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Time since dead hosts failed.
const LONG_AGO: Duration = Duration::from_hours(24 * 365);

/// Measures what hosts cost that nobody answers for.
#[derive(Debug, Parser)]
#[command(name = "bench-dead", version)]
struct Arguments {
    /// Dead hosts, all of them due
    #[arg(long, default_value_t = 60_000)]
    hosts: u32,
    /// Of a hundred dead hosts, those that have a name
    #[arg(long, default_value_t = 50)]
    named: u32,
    /// Unreachable hosts in a hundred that have a name and never answer; the others refuse
    #[arg(long, default_value_t = 25)]
    silent: u32,
    /// Living hosts that come due in a second
    #[arg(long, default_value_t = 1)]
    living: u32,
    /// Seconds before it is measured
    #[arg(long, default_value_t = 15)]
    before: u32,
    /// Seconds for which it is measured
    #[arg(long, default_value_t = 45)]
    seconds: u32,
    /// Hosts started a second at least, of the settings
    #[arg(long, default_value_t = 1000)]
    starts: u32,
    /// Dials a second, of the settings
    #[arg(long, default_value_t = 1000)]
    dials: u32,
    /// What the gateway's paces are divided by; 1 leaves those for all dials as they are
    #[arg(long, default_value_t = 1_000_000)]
    pace_divisor: u32,
    /// Checks at once, of the settings
    #[arg(long, default_value_t = 8)]
    checks: u32,
    /// Hosts opened or checked at once, of the settings
    #[arg(long, default_value_t = 64)]
    opens: u32,
    /// Folder with fedicensus, fedicensus-lab, fedicensus-checker and fedicensus-process-launcher
    #[arg(long, default_value = "target/release")]
    programs: PathBuf,
    /// Where the database lies meanwhile
    #[arg(long, default_value = "/tmp")]
    folder: PathBuf,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    ensure!(
        arguments.silent <= arguments.named && arguments.named <= 100,
        "more hosts are silent than have a name"
    );
    let folder = tempfile::tempdir_in(&arguments.folder)?;
    let path = folder.path();
    for name in ["lab", "data", "public"].iter().chain(&RUN_FOLDERS) {
        std::fs::create_dir_all(path.join(name))?;
    }
    let silence = Silence::keep().await?;
    let name_server = NameServer::start(LAB, silence.address).await?;
    refuses(names::refusing(1)).await?;
    let crowd = arguments.living * (START_SECONDS_MAX + arguments.before + arguments.seconds);
    let mut lab = start_lab(&arguments, path, crowd)?;
    lab.makes(&path.join("lab/names")).await?;
    lab.makes(&path.join("lab/ca.pem")).await?;
    let living = names::crowd(&path.join("lab/names"))?;
    let role = |name| {
        let mut command = fedicensus(&arguments, path, name_server.address)?;
        Role::start(name, command.arg(name), path)
    };
    let mut gateway = role("gateway")?;
    gateway.listens_on(&path.join(GATEWAY_SOCKET)).await?;
    let mut launcher = Role::start("launcher", &mut process_launcher(&arguments, path), path)?;
    launcher.listens_on(&path.join(LAUNCHER_SOCKET)).await?;
    let living = fill(&path.join("data/census.db"), &arguments, living).await?;
    let begins = SystemClock.now();
    let mut census = role("run")?;
    census.listens_on(&path.join("data/control.sock")).await?;
    let parts = Parts {
        gateway: GatewayClient::new(path.join(GATEWAY_SOCKET)),
        gateway_pid: gateway.id()?,
        census_pid: census.id()?,
        database: path.join("data/census.db"),
        living,
        begins,
    };
    tokio::time::sleep(Duration::from_secs(arguments.before.into())).await;
    let before = parts.look().await?;
    let open = parts
        .open_meanwhile(Duration::from_secs(arguments.seconds.into()))
        .await?;
    let after = parts.look().await?;
    report(&before, &after, open, &parts)?;
    census.stop().await?;
    launcher.stop().await?;
    gateway.stop().await?;
    lab.stop().await
}

/// A server that never answers: its queue of connections is full, and the kernel drops further
/// packets.
#[derive(Debug)]
struct Silence {
    address: SocketAddr,
    _listener: TcpListener,
    _queued: Vec<TcpStream>,
}

impl Silence {
    async fn keep() -> Result<Self> {
        let address = SocketAddr::from((names::SILENT, LAB.port()));
        let socket = TcpSocket::new_v4()?;
        socket.bind(address).with_context(|| {
            format!("{address} can't be bound; who may not bind low ports needs net.ipv4.ip_unprivileged_port_start=443")
        })?;
        let listener = socket.listen(0)?;
        let mut queued = Vec::new();
        while let Ok(stream) =
            tokio::time::timeout(UNANSWERED_AFTER, TcpStream::connect(address)).await
        {
            queued.push(stream?);
            ensure!(queued.len() < 16, "{address} goes on to answer");
        }
        Ok(Self {
            address,
            _listener: listener,
            _queued: queued,
        })
    }
}

async fn refuses(address: Ipv4Addr) -> Result<()> {
    let address = SocketAddr::from((address, LAB.port()));
    let tried = tokio::time::timeout(AT_ONCE, TcpStream::connect(address)).await;
    let refused =
        matches!(&tried, Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused);
    ensure!(
        refused,
        "somebody serves {address}: {tried:?}; this port has to be free"
    );
    Ok(())
}

/// Fills the database with dead hosts, all overdue, and living hosts, which come due one after the
/// other from now on.
async fn fill(
    database: &Path,
    arguments: &Arguments,
    living: Vec<Host>,
) -> Result<Vec<(Host, Timestamp)>> {
    let store = store::open(database)?;
    let now = SystemClock.now();
    let mut records = Vec::new();
    for number in 0..arguments.hosts {
        let kind = Kind::of(number, arguments.named, arguments.silent);
        let host = Host::parse(&kind.name())?;
        let long_ago = now.minus(LONG_AGO);
        let due = now.minus(Duration::from_millis((arguments.hosts - number).into()));
        records.push(Record {
            state: State::Dead,
            // It responded once: hosts that never did are given up, and their rows deleted.
            last_alive: Some(long_ago),
            last_checked: Some(now.minus(LONG_AGO / 12)),
            ..Record::discovered(host, long_ago, due)
        });
    }
    store.writer().import(std::mem::take(&mut records)).await?;
    // Filling took some time, so no host may be overdue yet.
    let begins = SystemClock.now();
    let pause = Duration::from_secs(1) / arguments.living.max(1);
    let mut known = Vec::new();
    for (host, number) in living.into_iter().zip(0..) {
        let due = begins.plus(pause * number);
        known.push((host.clone(), due));
        let day_ago = now.minus(Duration::from_hours(29));
        records.push(Record {
            state: State::Alive,
            software: Some("mastodon".to_owned()),
            last_alive: Some(day_ago),
            last_checked: Some(day_ago),
            // Between two requests for its peers.
            alive_count: 1,
            ..Record::discovered(host, now.minus(LONG_AGO), due)
        });
    }
    store.writer().import(records).await?;
    store.close();
    Ok(known)
}

/// A command of `fedicensus`, with the settings of all roles.
fn fedicensus(arguments: &Arguments, folder: &Path, resolver: SocketAddr) -> Result<Command> {
    let at = |name: &str| folder.join(name).display().to_string();
    let lab = [
        ("extra_ca", at("lab/ca.pem")),
        ("allow_private", "true".to_owned()),
        ("reserved_suffixes", "true".to_owned()),
        ("pace_divisor", arguments.pace_divisor.to_string()),
        ("checks_min", arguments.checks.to_string()),
        ("opens_max", arguments.opens.to_string()),
        ("starts_per_second", arguments.starts.to_string()),
    ];
    let mut command = Command::new(arguments.programs.join("fedicensus"));
    command.env("FEDICENSUS_CONFIG", write_lab_file(folder, lab)?);
    command.envs([
        ("FEDICENSUS_CONTACT", "bench@census.test".to_owned()),
        ("FEDICENSUS_SEEDS", String::new()),
        ("FEDICENSUS_CANARIES", String::new()),
        ("FEDICENSUS_CHECKS_MAX", arguments.checks.to_string()),
        ("FEDICENSUS_DIALS_PER_SECOND", arguments.dials.to_string()),
        ("FEDICENSUS_DATA_DIR", at("data")),
        ("FEDICENSUS_PUBLIC_DIR", at("public")),
        ("FEDICENSUS_RUN_DIR", at("run")),
        ("FEDICENSUS_EGRESS_VOLUME", String::new()),
        ("FEDICENSUS_RESOLVERS", resolver.to_string()),
        // The lab's crowd is below few registered domains.
        ("FEDICENSUS_GROUP_THRESHOLD", "1000000".to_owned()),
        // One log line per check would be most of the disk writes.
        ("FEDICENSUS_LOG", "warn".to_owned()),
    ]);
    if arguments.pace_divisor == 1 {
        // All hosts are in one block, so only the pace of all dials remains.
        let spacings = ["GROUP", "ADDRESS"];
        command.envs(spacings.map(|of| (format!("FEDICENSUS_{of}_PACE_MS"), "0")));
    }
    Ok(command)
}

/// The lab, with a crowd of this size.
fn start_lab(arguments: &Arguments, folder: &Path, crowd: u32) -> Result<Role> {
    let mut command = Command::new(arguments.programs.join("fedicensus-lab"));
    command
        .arg("serve")
        .arg("--state")
        .arg(folder.join("lab"))
        .args(["--listen", &LAB.to_string()])
        .args(["--address", &LAB.ip().to_string()])
        .args(["--crowd", &crowd.to_string()]);
    Role::start("lab", &mut command, folder)
}

/// The launcher with an engine that runs containers as plain processes.
fn process_launcher(arguments: &Arguments, folder: &Path) -> Command {
    let mut command = Command::new(arguments.programs.join("fedicensus-process-launcher"));
    command
        .arg(folder.join(LAUNCHER_SOCKET))
        .arg(folder.join(EGRESS))
        .arg(arguments.checks.to_string())
        .arg(arguments.programs.join("fedicensus-checker"))
        .arg(folder.join("no-trouble"));
    command
}

/// The parts that are measured.
#[derive(Debug)]
struct Parts {
    gateway: GatewayClient,
    gateway_pid: u32,
    census_pid: u32,
    database: PathBuf,
    /// Living hosts, and when each of them comes due.
    living: Vec<(Host, Timestamp)>,
    begins: Timestamp,
}

/// A sample.
#[derive(Debug)]
struct Look {
    at: Timestamp,
    /// Verdicts about dead hosts until then.
    dead: u32,
    opens: u64,
    dials: u64,
    gateway_cpu_s: f64,
    census_cpu_s: f64,
}

impl Parts {
    async fn look(&self) -> Result<Look> {
        let status = self.gateway.status().await?;
        let dead = self.reader()?.query_row(
            "SELECT count(*) FROM hosts WHERE state = 'dead' AND last_checked >= ?1",
            [self.begins.0],
            |row| row.get(0),
        )?;
        Ok(Look {
            at: SystemClock.now(),
            dead,
            opens: status.opens_total,
            dials: status.dials_total,
            gateway_cpu_s: process::cpu_seconds(self.gateway_pid)?,
            census_cpu_s: process::cpu_seconds(self.census_pid)?,
        })
    }

    /// The number of hosts that the gateway had open during `span`: average and maximum.
    async fn open_meanwhile(&self, span: Duration) -> Result<(f64, u32)> {
        let ends = SystemClock.now().plus(span);
        let (mut looks, mut sum, mut most) = (0_u32, 0_u32, 0);
        while SystemClock.now() < ends {
            let open = self.gateway.status().await?.open;
            looks += 1;
            sum += open;
            most = most.max(open);
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok((f64::from(sum) / f64::from(looks.max(1)), most))
    }

    /// For living hosts that came due at or after `from` and before `until`: how long each waited
    /// for its verdict, shortest first, and how many still wait.
    fn waits(&self, from: Timestamp, until: Timestamp) -> Result<(Vec<Duration>, usize)> {
        let reader = self.reader()?;
        let mut statement = reader.prepare("SELECT last_checked FROM hosts WHERE name = ?1")?;
        let (mut waits, mut unsettled) = (Vec::new(), 0);
        for (host, due) in &self.living {
            if *due < from || *due >= until {
                continue;
            }
            let checked: i64 = statement.query_row([host.as_str()], |row| row.get(0))?;
            if Timestamp(checked) >= *due {
                waits.push(Timestamp(checked).since(*due));
            } else {
                unsettled += 1;
            }
        }
        waits.sort_unstable();
        Ok((waits, unsettled))
    }

    fn reader(&self) -> Result<Connection> {
        Ok(Connection::open_with_flags(
            &self.database,
            OpenFlags::SQLITE_OPEN_READ_ONLY,
        )?)
    }
}

fn report(before: &Look, after: &Look, open: (f64, u32), parts: &Parts) -> Result<()> {
    let seconds = after.at.since(before.at).as_secs_f64();
    let verdicts = f64::from(after.dead - before.dead);
    let opens = (after.opens - before.opens) as f64;
    let dials = (after.dials - before.dials) as f64;
    let gateway_s = after.gateway_cpu_s - before.gateway_cpu_s;
    let census_s = after.census_cpu_s - before.census_cpu_s;
    let (waits, unsettled) = parts.waits(before.at, after.at)?;
    let wait = |place: usize| {
        waits.get(place).map_or("none".to_owned(), |wait| {
            format!("{:.1} s", wait.as_secs_f64())
        })
    };
    let rows = [
        (
            "verdicts on the dead",
            format!("{:.1} a second", verdicts / seconds),
        ),
        ("hosts opened", format!("{:.1} a second", opens / seconds)),
        ("dials", format!("{:.1} a second", dials / seconds)),
        (
            "open at once, mean and most",
            format!("{:.0}, {}", open.0, open.1),
        ),
        (
            "processor time for each host opened: census, gateway",
            format!(
                "{:.2} ms, {:.2} ms",
                census_s * 1000.0 / opens,
                gateway_s * 1000.0 / opens
            ),
        ),
        (
            "hosts opened in a second of their processor time",
            format!("{:.0}", opens / (census_s + gateway_s)),
        ),
        (
            "most memory: census, gateway",
            format!(
                "{} MB, {} MB",
                memory::most_mb(&parts.census_pid.to_string())?,
                memory::most_mb(&parts.gateway_pid.to_string())?
            ),
        ),
        (
            "living hosts that came due and were settled, and were not yet",
            format!("{}, {unsettled}", waits.len()),
        ),
        (
            "their wait from then until that: median, longest",
            format!(
                "{}, {}",
                wait(waits.len() / 2),
                wait(waits.len().saturating_sub(1))
            ),
        ),
    ];
    let mut out = std::io::stdout();
    writeln!(out, "| what | in {seconds:.0} s |\n|---|---|")?;
    for (what, measured) in rows {
        writeln!(out, "| {what} | {measured} |")?;
    }
    Ok(())
}
