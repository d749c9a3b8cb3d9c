//! The attacker tries to get out (invariants I1, I4, I9): each attempt that
//! `fixtures/adversary/expected.toml` lists is compared with its result.

use std::hash::{BuildHasher as _, Hasher as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use gateway::{Egress, GatewayClient, Opened};
use launcher::{Frame, LauncherClient};
use protocol::container::{End, Killed};
use protocol::egress::{Account, Budget, Wish};
use protocol::order::AskPeers;
use protocol::{CheckId, CheckOrder, Host, limits};
use tests::world::{EGRESS, GATEWAY_SOCKET, LAUNCHER_SOCKET};
use tests::{Listed, Options, Role, World};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::expected::{Attempt, Attempts, compare, read};
use super::standin::Image;
use super::targets::Targets;
use crate::confinement::containers::engine;

const SOON: Duration = tests::PATIENCE;

/// Most tries to open a host: the lab's paces defer by microseconds.
const OPENS_MAX: u32 = 1000;
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The attacked host, whose egress the attacker has.
const HOST: &str = "pleroma.lab.test";

/// A host that answers at the same address, and that the attacker must not reach.
const OTHER_HOST: &str = "mastodon.lab.test";

/// Accepts everything it is sent, and counts the bytes.
const SINK: &str = "sink.standin.test";

const SPRING: &str = "spring.standin.test";

/// More stdout than any attacker's list of attempts, in bytes.
const STDOUT_KEPT_MAX: usize = 1 << 20;

/// The exit code of a process that the kernel ended for a call in another convention: 128 and
/// SIGSYS.
const EXIT_CODE_BAD_CALL: i64 = 128 + 31;

pub(super) struct Outcome {
    attempts: Attempts,
    pub(super) stdout: String,
    pub(super) end: End,
    account: Account,
}

/// Starts attackers like the orchestrator starts checks: an egress from the gateway, a container
/// from the launcher, nothing more.
#[derive(Clone)]
pub(super) struct Starter {
    pub(super) gateway: GatewayClient,
    pub(super) launcher: LauncherClient,
}

impl Starter {
    /// Starts an attack, and returns the check's id at once.
    pub(super) fn attack(
        &self,
        host: &str,
        order: &str,
    ) -> (CheckId, JoinHandle<anyhow::Result<Outcome>>) {
        let check = new_id();
        let (starter, host, order) = (self.clone(), host.to_owned(), order.to_owned());
        let id = check.clone();
        let task = tokio::spawn(async move {
            let ran = starter.run(check, &host, &order).await;
            ran.with_context(|| format!("{order} at {host}"))
        });
        (id, task)
    }

    /// Opens the host. With ten at once, the lab's pace of a microsecond may defer some: these try
    /// again, as a census does.
    async fn open(
        &self,
        check: &CheckId,
        host: &Host,
        order: CheckOrder,
    ) -> anyhow::Result<Egress> {
        for _ in 0..OPENS_MAX {
            let group = host.to_string();
            let (id, host) = (check.clone(), host.clone());
            let opened = self
                .gateway
                .open(id, host, group, order.clone(), Wish::default());
            match opened.await? {
                Opened::Ready(egress) => return Ok(egress),
                Opened::Deferred { .. } => tokio::task::yield_now().await,
                other @ (Opened::Unreachable { .. } | Opened::Offline) => {
                    bail!("not opened: {other:?}")
                }
            }
        }
        bail!("out of turn {OPENS_MAX} times")
    }

    async fn run(&self, check: CheckId, host: &str, order: &str) -> anyhow::Result<Outcome> {
        let host = Host::parse(host)?;
        let order = CheckOrder::check(format!("adversary {order}"), AskPeers::Skip);
        let egress = self.open(&check, &host, order).await?;
        let mut container = self.launcher.launch(&check, &host).await?;
        let mut stdout = Vec::new();
        let mut stderr = Vec::new();
        let end = loop {
            match container.next().await? {
                Frame::Stdout(bytes) if stdout.len() < STDOUT_KEPT_MAX => stdout.extend(bytes),
                Frame::Stderr(bytes) if stderr.len() < STDOUT_KEPT_MAX => stderr.extend(bytes),
                Frame::Stdout(_) | Frame::Stderr(_) => {}
                Frame::End(end) => break end,
                Frame::Fault(fault) => bail!("not launched: {}", fault.message),
            }
        };
        let account = egress.close(false).await?;
        let stdout = String::from_utf8_lossy(&stdout).into_owned();
        if !stderr.is_empty() {
            eprintln!("{host}: {}", String::from_utf8_lossy(&stderr));
        }
        Ok(Outcome {
            attempts: read(&stdout),
            stdout,
            end,
            account,
        })
    }
}

fn new_id() -> CheckId {
    let chance = || {
        let state = std::collections::hash_map::RandomState::new();
        u128::from(state.build_hasher().finish())
    };
    CheckId::from_random(chance() << 64 | chance())
}

/// A host that is the attacker's accomplice: it sends without end, or accepts everything. Returns
/// its address, the number of received bytes, and its task.
async fn accomplice(sends: bool) -> anyhow::Result<(SocketAddr, Arc<AtomicU64>, JoinHandle<()>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let came = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&came);
    let task = tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let counter = Arc::clone(&counter);
            connections.spawn(async move {
                let mut block = vec![0; 64 * 1024];
                if sends {
                    while stream.write_all(&block).await.is_ok() {}
                }
                while let Ok(count @ 1..) = stream.read(&mut block).await {
                    counter.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
                }
            });
        }
    });
    Ok((address, came, task))
}

/// A world with gateway and launcher, and without orchestrator: the test replaces it.
async fn besieged(image: &Image, sink: SocketAddr, spring: SocketAddr) -> anyhow::Result<World> {
    let mut options = Options::new(&[]);
    options.checker = Some(image.name.clone());
    options.settings = vec![("checks_max", "16".to_owned())];
    let mut world = World::prepare(options).await?;
    let names = world.path("lab/names");
    let mut lines = std::fs::read_to_string(&names)?;
    for (name, address) in [(SINK, sink), (SPRING, spring)] {
        lines.push_str(&format!("{name} {} {}\n", address.ip(), address.port()));
    }
    std::fs::write(&names, lines)?;
    for role in [Role::Gateway, Role::Launcher] {
        world.begin(role).await?;
    }
    Ok(world)
}

/// Waits until checks can start: the launcher may look at an engine before the engine is
/// ready.
pub(crate) async fn fit(world: &World, launcher: &LauncherClient) -> anyhow::Result<()> {
    let ready = |world: &World| Ok(world.listens(GATEWAY_SOCKET));
    let what = "the gateway's gate is open";
    world.until(what, SOON, ready).await?;
    let deadline = Instant::now() + tests::patient(SOON);
    loop {
        let trouble = match launcher.status().await {
            Ok(status) if status.engine.is_some() && status.trouble.is_none() => return Ok(()),
            Ok(status) => format!("{:?}", status.trouble),
            Err(error) => error.to_string(),
        };
        if Instant::now() > deadline {
            bail!("no check can start: {trouble}");
        }
        tokio::time::sleep(tests::patient(LOOK_EVERY)).await;
    }
}

/// Tries every part of the confinement from inside, by a program that knows everything there is to
/// know.
#[tokio::test(flavor = "multi_thread")] // S6 S7 S9 I1
async fn hostile_checker_stays_in_its_container() -> anyhow::Result<()> {
    let Some(engine) = engine()? else {
        return Ok(());
    };
    let image = Image::build(&engine, "roams")?;
    let (sink, sunk, _sink_task) = accomplice(false).await?;
    let (spring, _, _spring_task) = accomplice(true).await?;
    let world = besieged(&image, sink, spring).await?;
    let targets = Targets::open(&world, &engine, &image.name).await?;
    let starter = Starter {
        gateway: GatewayClient::new(world.path(GATEWAY_SOCKET)),
        launcher: LauncherClient::socket(world.path(LAUNCHER_SOCKET)),
    };
    fit(&world, &starter.launcher).await?;

    let until_deadline = starter.attack(HOST, "stays").1;
    let stays = starter.attack(HOST, "stays");
    let neighbour = starter.attack(HOST, "neighbours");
    let order = format!(
        "roams port={} bridge={} other={} lab={} abstract={} else={OTHER_HOST} id={} root={}",
        targets.port,
        targets.bridge,
        targets.other,
        world.lab().address(),
        targets.abstract_name,
        neighbour.0,
        world.path(EGRESS).display(),
    );
    let roams = starter.attack(HOST, &order).1;
    let others = [
        (HOST, "eats-memory"),
        (HOST, "calls-int80"),
        (HOST, "calls-x32"),
        (HOST, "spends-connections"),
        (SINK, "spends-bytes-up"),
        (SPRING, "spends-bytes-down"),
    ]
    .map(|(host, mode)| starter.attack(host, mode).1);

    let roams = roams.await??;
    let is_over = roams.stdout.ends_with("over\n");
    assert!(is_over, "{:?}: {}", roams.end, roams.stdout);
    let mut attempts = roams.attempts;
    let mut outcomes = Vec::new();
    for other in others {
        outcomes.push(other.await??);
    }
    let [memory, int80, x32, connections, up, down] =
        <[Outcome; 6]>::try_from(outcomes).ok().context("six")?;

    // Both end on request, whatever signals they ignore.
    for (id, task) in [stays, neighbour] {
        let was_there = starter.launcher.kill(&id).await?;
        let ended = task.await??;
        let why = format!("{id}: {:?}, after {:?}", ended.end, ended.stdout);
        let killed = (was_there, ended.end.killed);
        assert_eq!(killed, (true, Some(Killed::Asked)), "{why}");
        attempts.extend(ended.attempts);
    }
    let item = "time: on, when it is asked to end";
    note(&mut attempts, item, "killed", "");
    note_deadline(&mut attempts, &until_deadline.await??);

    let killed = match memory.end.out_of_memory {
        true => "killed",
        false => "not killed",
    };
    let detail = format!("exit code {}", memory.end.exit_code);
    note(&mut attempts, "share: memory", killed, &detail);
    for (item, outcome) in [
        ("kernel: a 32-bit call", &int80),
        ("kernel: an x32 call", &x32),
    ] {
        if outcome.end.exit_code == EXIT_CODE_BAD_CALL {
            note(&mut attempts, item, "killed", "by the kernel, with SIGSYS");
        }
        attempts.extend(outcome.attempts.clone());
    }
    for outcome in [&connections, &up, &down] {
        // Two attackers try "a connection after its end"; both must be refused.
        for (item, attempt) in &outcome.attempts {
            let before = attempts.insert(item.clone(), attempt.clone());
            assert!(before.is_none_or(|before| before.happened == attempt.happened));
        }
    }
    let differences = compare(&engine, &attempts)?;
    let (count, text) = (differences.len(), differences.join("\n"));
    assert_eq!(count, 0, "of {} attempts:\n{text}", attempts.len());

    // The same results, as seen by gateway, host and targets.
    assert_eq!(roams.account.connections, 2, "{:?}", roams.account);
    assert_eq!(roams.account.budget_hit, None);
    let spent = connections.account.budget_hit;
    assert_eq!(
        spent,
        Some(Budget::Connections),
        "{:?}",
        connections.account
    );
    assert_eq!(up.account.budget_hit, Some(Budget::Bytes));
    let sunk = sunk.load(Ordering::Relaxed);
    assert!(
        sunk <= limits::EGRESS_BYTES_UP_MAX,
        "{sunk} bytes reached the host"
    );
    assert_eq!(down.account.budget_hit, Some(Budget::Bytes));
    assert!(down.account.bytes_down <= limits::EGRESS_BYTES_DOWN_MAX);
    let asked = lab::request_log::asked(&world.path("lab/requests.ndjson"))?;
    let reached: Vec<_> = asked.into_keys().collect();
    assert_eq!(reached, [HOST], "another host was reached");
    targets.nobody_came()?;
    // Removal continues for a moment after the last frame.
    let label = format!("org.fedicensus={}", world.setting("instance"));
    let none_left = |_: &World| {
        let labels = [label.as_str(), "org.fedicensus.host"];
        Ok(engine.containers(&labels, Listed::All)?.is_empty())
    };
    world.until("no check is left", SOON, none_left).await
}

fn note(attempts: &mut Attempts, item: &str, happened: &str, detail: &str) {
    let attempt = Attempt {
        happened: happened.to_owned(),
        detail: detail.to_owned(),
    };
    attempts.insert(item.to_owned(), attempt);
}

/// Invariant I4: no check outlives its deadline by more than the engine needs to kill it.
fn note_deadline(attempts: &mut Attempts, outcome: &Outcome) {
    let lived = Duration::from_millis(outcome.end.millis);
    let settings = launcher::Settings::default();
    let in_time = outcome.end.killed == Some(Killed::Deadline)
        && lived >= settings.life_max()
        && lived <= settings.launch_max();
    let happened = if in_time { "killed" } else { "stayed" };
    let detail = format!(
        "after {:.1} s, {}",
        lived.as_secs_f64(),
        outcome.stdout.lines().next().unwrap_or_default()
    );
    note(attempts, "time: on after the deadline", happened, &detail);
}
