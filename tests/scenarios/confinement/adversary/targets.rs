//! Real targets that an attacker would like to reach: ports and an abstract socket of this machine,
//! and those of another container.
//!
//! An ordinary container on the engine's default bridge proves that they can be reached. Without
//! root, only a container has a way to the other container, and a target that no container can
//! reach would prove nothing.

use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use launcher::engine::EngineKind;
use tests::{EngineApi, World};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const SOON: Duration = tests::PATIENCE;

/// The machine's address for a container on a network of rootless Podman.
const PODMAN_WAY_TO_ITS_HOST: &str = "169.254.1.2";

pub(super) struct Targets {
    /// A port of this machine, on all its addresses.
    pub(super) port: u16,
    pub(super) bridge: String,
    pub(super) other: SocketAddr,
    pub(super) abstract_name: String,
    visits: Arc<AtomicU64>,
    /// Visits by the test itself, which prove that its targets can be reached.
    visits_own: u64,
    abstract_socket: std::os::unix::net::UnixListener,
    listeners: Vec<JoinHandle<()>>,
    engine: EngineApi,
    container: String,
}

impl Targets {
    pub(super) async fn open(
        world: &World,
        engine: &EngineApi,
        image: &str,
    ) -> anyhow::Result<Self> {
        let everywhere = TcpListener::bind("0.0.0.0:0").await?;
        let port = everywhere.local_addr()?.port();
        let visits = Arc::new(AtomicU64::new(0));
        let mut listeners = vec![count_visits(everywhere, &visits)];
        // A machine without IPv6 has no such address.
        if let Ok(listener) = TcpListener::bind(("::1", port)).await {
            listeners.push(count_visits(listener, &visits));
        }
        let name = world.setting("instance");
        let abstract_name = format!("fedicensus-adversary-{name}");
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&abstract_name)?;
        let abstract_socket = std::os::unix::net::UnixListener::bind_addr(&address)?;
        abstract_socket.set_nonblocking(true)?;
        std::os::unix::net::UnixStream::connect_addr(&address)?;
        abstract_socket.accept().context("the abstract socket")?;
        let label = format!("org.fedicensus={name}");
        let container = engine.run(image, &label, &["--listen", "0.0.0.0:9000"])?;
        let (address, bridge) = on_the_bridge(engine, &container)?;
        let mut targets = Self {
            port,
            bridge,
            other: format!("{address}:9000").parse()?,
            abstract_name,
            visits,
            visits_own: 0,
            abstract_socket,
            listeners,
            engine: engine.clone(),
            container,
        };
        targets.visit(world, image, &label).await?;
        Ok(targets)
    }

    /// Visits every target from this machine and from an ordinary container.
    async fn visit(&mut self, world: &World, image: &str, label: &str) -> anyhow::Result<()> {
        TcpStream::connect(("127.0.0.1", self.port)).await?;
        let machine = match self.engine.kind() {
            EngineKind::Docker => &self.bridge,
            EngineKind::Podman => PODMAN_WAY_TO_ITS_HOST,
        };
        let addresses = [format!("{machine}:{}", self.port), self.other.to_string()];
        self.visits_own = 2;
        world
            .until("the other container listens", SOON, |_| {
                Ok(self.engine.logs(&self.container)? == "listening")
            })
            .await?;
        let visitor = self
            .engine
            .run(image, label, &["--visit", &addresses.join(",")])?;
        self.engine.wait(&visitor)?;
        let said = self.engine.logs(&visitor)?;
        self.engine.remove(&visitor)?;
        if said != "works works" {
            bail!("an ordinary container, at {addresses:?}: {said}");
        }
        let own = self.visits_own;
        world
            .until("the visits have been counted", SOON, |_| {
                Ok(self.visits.load(Ordering::Relaxed) == own
                    && self.engine.logs(&self.container)? == "listening\nvisited")
            })
            .await
    }

    /// Fails if there were other visits.
    pub(super) fn nobody_came(&self) -> anyhow::Result<()> {
        assert_eq!(
            self.visits.load(Ordering::Relaxed),
            self.visits_own,
            "somebody reached this machine"
        );
        assert!(
            self.abstract_socket.accept().is_err(),
            "somebody reached the abstract socket"
        );
        assert_eq!(
            self.engine.logs(&self.container)?,
            "listening\nvisited",
            "somebody reached the other container"
        );
        Ok(())
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        for listener in &self.listeners {
            listener.abort();
        }
    }
}

/// A container's address on the default bridge, and the bridge's own. They are read from the
/// network, whatever its name is; only one of the engines repeats them at the top of the settings.
fn on_the_bridge(engine: &EngineApi, container: &str) -> anyhow::Result<(String, String)> {
    let found = engine.inspect(container)?;
    let networks = found["NetworkSettings"]["Networks"].as_object();
    let network = networks.and_then(|networks| networks.values().next());
    let network = network.with_context(|| format!("no network: {}", found["NetworkSettings"]))?;
    let address = |key: &str| {
        let text = network[key].as_str().filter(|text| !text.is_empty());
        text.map(str::to_owned)
            .with_context(|| format!("no {key}: {network}"))
    };
    Ok((address("IPAddress")?, address("Gateway")?))
}

fn count_visits(listener: TcpListener, visits: &Arc<AtomicU64>) -> JoinHandle<()> {
    let visits = Arc::clone(visits);
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            visits.fetch_add(1, Ordering::Relaxed);
        }
    })
}
