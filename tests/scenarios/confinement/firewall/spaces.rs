//! Network namespaces for a test: bridges, routes, rules, listeners and probes. They are removed
//! with the [`Network`].
//!
//! A thread that enters a namespace creates its sockets there, so only `ip` and `nft` have to be
//! started in them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use anyhow::{Context, bail};
use futures_util::future::join_all;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tests::Need;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long a probe tries: two repetitions of a SYN, the most that a busy machine needs.
const PROBE_TIME: Duration = Duration::from_secs(4);

/// How often a datagram is sent, in case neighbour discovery loses the first one.
const DATAGRAMS: u32 = 4;

/// Both ends of the link between world and machine, used for nothing else.
const LINE_WORLD: [&str; 2] = ["100.66.0.2", "fd00:ffff::2"];
const LINE_MACHINE: [&str; 2] = ["100.66.0.1", "fd00:ffff::1"];

/// Whether this test may make namespaces and has its `programs`. If not, it prints that, and fails
/// if nothing may be skipped.
pub(super) fn privileged(programs: &[&str]) -> bool {
    let missing = if rustix::process::geteuid().is_root() {
        programs.iter().copied().find(|program| {
            let mut version = Command::new(program);
            let version = version.arg("-V").stdout(Stdio::null()).status();
            !version.is_ok_and(|status| status.success())
        })
    } else {
        Some("root, for network namespaces")
    };
    if let Some(missing) = missing {
        let why = format!("the firewall can't be tried out; missing: {missing}");
        tests::skip(Need::Privileges, &why);
    }
    missing.is_none()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Transport {
    Tcp,
    Udp,
}

/// A question: does `to` answer?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Probe {
    from: &'static str,
    to: SocketAddr,
    transport: Transport,
}

impl Probe {
    pub(super) fn new(from: &'static str, to: SocketAddr, transport: Transport) -> Self {
        Self {
            from,
            to,
            transport,
        }
    }

    async fn ask(self) -> bool {
        match self.transport {
            Transport::Tcp => timeout(PROBE_TIME, TcpStream::connect(self.to))
                .await
                .is_ok_and(|connected| connected.is_ok()),
            Transport::Udp => self.exchange().await.unwrap_or(false),
        }
    }

    async fn exchange(self) -> std::io::Result<bool> {
        let socket = tokio::net::UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).await?;
        let to = match self.to {
            SocketAddr::V4(v4) => SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()),
            SocketAddr::V6(_) => self.to,
        };
        let mut answer = [0; 8];
        for _ in 0..DATAGRAMS {
            // A machine without neighbours reports that once; the next datagram may pass.
            socket.send_to(b"?", to).await.ok();
            let received = timeout(PROBE_TIME / DATAGRAMS, socket.recv_from(&mut answer)).await;
            if let Ok(Ok((_, from))) = received {
                return Ok(from == to);
            }
        }
        Ok(false)
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.transport {
            Transport::Tcp => "TCP",
            Transport::Udp => "UDP",
        };
        write!(f, "{} → {} {transport}", self.from, self.to)
    }
}

/// What answers probes: at all addresses of a namespace for TCP. For UDP at one address, because
/// the answer to a datagram must come from the address it was sent to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Listener {
    Tcp(u16),
    Udp(SocketAddr),
}

impl Listener {
    async fn serve(self, bound: std::sync::mpsc::SyncSender<()>) -> std::io::Result<()> {
        match self {
            Self::Tcp(port) => {
                let any = (Ipv6Addr::UNSPECIFIED, port);
                let listener = tokio::net::TcpListener::bind(any).await?;
                bound.send(()).ok();
                loop {
                    drop(listener.accept().await);
                }
            }
            Self::Udp(address) => {
                let socket = tokio::net::UdpSocket::bind(address).await?;
                bound.send(()).ok();
                let mut asked = [0; 8];
                loop {
                    if let Ok((bytes, from)) = socket.recv_from(&mut asked).await {
                        socket.send_to(&asked[..bytes], from).await.ok();
                    }
                }
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Network {
    /// The namespaces' names in `ip netns`, by ours.
    spaces: BTreeMap<&'static str, String>,
    stop: CancellationToken,
}

impl Network {
    pub(super) fn new(names: &[&'static str]) -> anyhow::Result<Self> {
        let mut network = Self {
            spaces: BTreeMap::new(),
            stop: CancellationToken::new(),
        };
        for name in names {
            let space = format!("fedicensus-test-{}-{name}", std::process::id());
            run(&["ip", "netns", "add", &space], None)?;
            network.spaces.insert(name, space);
            network.ip(name, "link set lo up")?;
        }
        Ok(network)
    }

    /// A bridge on `machine` that connects `guest`, which uses `machine` as its gateway.
    pub(super) fn bridge(
        &mut self,
        machine: &str,
        bridge: &str,
        addresses: [&str; 2],
        guest: &str,
        guests: [&str; 2],
    ) -> anyhow::Result<()> {
        let [v4, v6] = addresses;
        let [guest_v4, guest_v6] = guests;
        self.ip(machine, &format!("link add {bridge} type bridge"))?;
        self.link(machine, guest, guest)?;
        self.ip(machine, &format!("link set {guest} master {bridge}"))?;
        self.ip(machine, &format!("address add {v4}/16 dev {bridge}"))?;
        self.ip(machine, &format!("address add {v6}/64 dev {bridge} nodad"))?;
        self.ip(machine, &format!("link set {guest} up"))?;
        self.ip(machine, &format!("link set {bridge} up"))?;
        self.ip(guest, &format!("address add {guest_v4}/16 dev eth0"))?;
        self.ip(guest, &format!("address add {guest_v6}/64 dev eth0 nodad"))?;
        self.ip(guest, "link set eth0 up")?;
        self.ip(guest, &format!("route add default via {v4}"))?;
        self.ip(guest, &format!("route add default via {v6}"))
    }

    /// A link from `machine`, where it is `device`, to `guest`, where it is `eth0`.
    fn link(&self, machine: &str, device: &str, guest: &str) -> anyhow::Result<()> {
        let peer = format!("peer name eth0 netns {}", self.space(guest));
        self.ip(machine, &format!("link add {device} type veth {peer}"))
    }

    /// A link from `machine`, which gets the address `public`, to a `world` that has all
    /// `addresses`.
    pub(super) fn world<'a>(
        &mut self,
        machine: &str,
        public: &str,
        world: &str,
        addresses: impl Iterator<Item = &'a str>,
    ) -> anyhow::Result<()> {
        self.link(machine, "line", world)?;
        for (name, device, [v4, v6]) in
            [(machine, "line", LINE_MACHINE), (world, "eth0", LINE_WORLD)]
        {
            self.ip(name, &format!("address add {v4}/30 dev {device}"))?;
            self.ip(name, &format!("address add {v6}/64 dev {device} nodad"))?;
            self.ip(name, &format!("link set {device} up"))?;
        }
        self.ip(machine, &format!("address add {public}/32 dev line"))?;
        for ([from, _], [to, _], name) in [
            (LINE_MACHINE, LINE_WORLD, machine),
            (LINE_WORLD, LINE_MACHINE, world),
        ] {
            self.ip(name, &format!("route add default via {to} src {from}"))?;
        }
        self.ip(machine, &format!("route add default via {}", LINE_WORLD[1]))?;
        self.ip(world, &format!("route add default via {}", LINE_MACHINE[1]))?;
        for address in addresses {
            let nodad = if address.contains(':') { "nodad" } else { "" };
            self.ip(world, &format!("address add {address} dev lo {nodad}"))?;
        }
        self.forward(machine)
    }

    /// Makes a namespace forward packets between its links.
    pub(super) fn forward(&self, space: &str) -> anyhow::Result<()> {
        let settings = [
            ("net/ipv4/ip_forward", "1"),
            ("net/ipv6/conf/all/forwarding", "1"),
            ("net/ipv4/conf/all/rp_filter", "0"),
        ];
        let setting = self.within(space, move || {
            for (setting, value) in settings {
                std::fs::write(format!("/proc/sys/{setting}"), value)?;
            }
            Ok(())
        })?;
        setting.join().expect("no panic in there")
    }

    pub(super) fn nft(&self, space: &str, rules: &str) -> anyhow::Result<()> {
        let command = ["ip", "netns", "exec", self.space(space), "nft", "-f", "-"];
        run(&command, Some(rules)).map(|_| ())
    }

    /// Runs a program in a namespace, and returns what it prints.
    pub(super) fn run(&self, space: &str, command: &[&str]) -> anyhow::Result<String> {
        let within = ["ip", "netns", "exec", self.space(space)];
        run(&[&within, command].concat(), None)
    }

    /// Starts a listener and waits until it listens.
    pub(super) fn listen(&self, space: &str, listener: Listener) -> anyhow::Result<()> {
        let (bound, listens) = sync_channel(1);
        let stop = self.stop.clone();
        self.within(space, move || {
            runtime()?.block_on(async {
                tokio::select! {
                    () = stop.cancelled() => Ok(()),
                    served = listener.serve(bound) => Ok(served?),
                }
            })
        })?;
        let listens = listens.recv();
        listens.with_context(|| format!("{listener:?} in {space}"))
    }

    /// Which of the probes are answered. All are sent at once.
    pub(super) fn reached(&self, probes: &[Probe]) -> anyhow::Result<BTreeMap<Probe, bool>> {
        let mut by_space: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for probe in probes {
            by_space.entry(probe.from).or_default().push(*probe);
        }
        let mut threads = Vec::new();
        for (space, probes) in by_space {
            threads.push(self.within(space, move || {
                let asking = probes
                    .into_iter()
                    .map(|probe| async move { (probe, probe.ask().await) });
                Ok(runtime()?.block_on(join_all(asking)))
            })?);
        }
        let mut reached = BTreeMap::new();
        for thread in threads {
            reached.extend(thread.join().expect("a probe does not panic")?);
        }
        Ok(reached)
    }

    /// Opens `count` connections from these addresses in turn, and keeps all until the last was
    /// tried. Returns how many were answered.
    pub(super) fn held(
        &self,
        space: &str,
        sources: Vec<IpAddr>,
        to: SocketAddr,
        count: usize,
    ) -> anyhow::Result<usize> {
        let thread = self.within(space, move || {
            let opening = sources
                .into_iter()
                .cycle()
                .take(count)
                .map(|source| async move {
                    let socket = match source {
                        IpAddr::V4(_) => TcpSocket::new_v4()?,
                        IpAddr::V6(_) => TcpSocket::new_v6()?,
                    };
                    socket.bind(SocketAddr::new(source, 0))?;
                    timeout(PROBE_TIME, socket.connect(to)).await?
                });
            let opened = runtime()?.block_on(join_all(opening));
            Ok(opened.iter().filter(|stream| stream.is_ok()).count())
        })?;
        thread.join().expect("no panic in there")
    }

    /// Sends `count` datagrams from one socket, or begins `count` connections, as fast as it can.
    pub(super) fn flood(&self, flood: Probe, count: u32) -> anyhow::Result<()> {
        let to = flood.to;
        let thread = self.within(flood.from, move || match flood.transport {
            Transport::Udp => {
                let any: IpAddr = match to {
                    SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                    SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
                };
                let socket = UdpSocket::bind((any, 0))?;
                (0..count).for_each(|_| drop(socket.send_to(b"!", to)));
                Ok(())
            }
            Transport::Tcp => runtime()?.block_on(async {
                for _ in 0..count {
                    // One poll sends the SYN; then the connection is dropped.
                    drop(timeout(Duration::ZERO, TcpStream::connect(to)).await);
                }
                Ok(())
            }),
        })?;
        thread.join().expect("a flood does not panic")
    }

    /// Runs `work` on a separate thread in a namespace.
    fn within<T: Send + 'static>(
        &self,
        space: &str,
        work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<std::thread::JoinHandle<anyhow::Result<T>>> {
        let namespace = File::open(format!("/run/netns/{}", self.space(space)))?;
        Ok(std::thread::Builder::new().spawn(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        })?)
    }

    fn ip(&self, space: &str, arguments: &str) -> anyhow::Result<()> {
        let mut command = vec!["ip", "-n", self.space(space)];
        command.extend(arguments.split_whitespace());
        run(&command, None).map(|_| ())
    }

    fn space(&self, name: &str) -> &str {
        self.spaces.get(name).expect("a namespace of this network")
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.stop.cancel();
        for space in self.spaces.values() {
            run(&["ip", "netns", "delete", space], None).ok();
        }
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

fn run(command: &[&str], input: Option<&str>) -> anyhow::Result<String> {
    let (program, arguments) = command.split_first().context("no command")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.unwrap_or_default().as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}: {}", command.join(" "), said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
