//! The least possible work: a client that calls the engine's API directly, with connections to the
//! hosts that are ready in advance.
//!
//! It has no deadline, limits, verdict or database: the benchmark measures what the whole path does
//! in addition.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use bollard::Docker;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptions, RemoveContainerOptionsBuilder,
    StartContainerOptions, WaitContainerOptionsBuilder,
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use gateway::{Egress, GatewayClient, Opened};
use launcher::engine::EngineKind;
use launcher::engine::create::create_body;
use launcher::spec::Spec;
use protocol::order::AskPeers;
use protocol::{CheckId, CheckOrder, Host};
use tokio::sync::mpsc;

/// Connections kept ready: more than are used while the gateway opens one, and few enough that none
/// expires.
const READY: usize = 8;

#[derive(Debug)]
pub struct Direct {
    pub(super) docker: Docker,
    pub(super) kind: EngineKind,
    /// crun if the engine lists it, like the launcher after a successful probe.
    pub(super) runtime: Option<&'static str>,
    pub(super) settings: launcher::Settings,
    pub(super) gateway_socket: PathBuf,
}

/// An open way to one host through the gateway. Dropping it closes it.
#[derive(Debug)]
pub struct Ready {
    check: CheckId,
    host: Host,
    _egress: Egress,
}

impl Ready {
    /// Requests a way to `host` from the gateway, with the orchestrator's order.
    async fn open(gateway: &GatewayClient, host: Host, peers: AskPeers) -> Result<Self> {
        let check = CheckId::from_random(rand::random());
        let order = CheckOrder::check(super::stage::CONTACT, peers);
        let (group, wish) = (host.to_string(), protocol::egress::Wish::default());
        let opened = gateway.open(check.clone(), host.clone(), group, order, wish);
        match opened.await? {
            Opened::Ready(egress) => Ok(Self {
                check,
                host,
                _egress: egress,
            }),
            other => bail!("{host}: the gateway answered {other:?} where it should be ready"),
        }
    }
}

impl Direct {
    /// Lets the gateway open connections to `hosts`. Returns them once the first ones, or as many
    /// as can be expected, are ready. The first and every n-th after it requests its host's peers.
    pub async fn prepare(
        &self,
        hosts: impl Iterator<Item = Host> + Send + 'static,
        peers_every: usize,
    ) -> mpsc::Receiver<Result<Ready>> {
        let (sender, ready) = mpsc::channel(READY);
        let gateway = GatewayClient::new(self.gateway_socket.clone());
        let wanted = hosts.size_hint().0.min(READY);
        tokio::spawn(async move {
            for (number, host) in hosts.enumerate() {
                let peers = if number.is_multiple_of(peers_every) {
                    AskPeers::Ask
                } else {
                    AskPeers::Skip
                };
                let way = Ready::open(&gateway, host, peers).await;
                if sender.send(way).await.is_err() {
                    return;
                }
            }
        });
        while ready.len() < wanted {
            tokio::task::yield_now().await;
        }
        ready
    }

    /// Checks all of them, `in_flight` at a time. Returns their number.
    pub async fn run(
        &self,
        ready: mpsc::Receiver<Result<Ready>>,
        in_flight: usize,
    ) -> Result<usize> {
        stream::unfold(ready, |mut ready| async {
            ready.recv().await.map(|way| (way, ready))
        })
        .map(|way| async { self.check(way?).await })
        .buffer_unordered(in_flight)
        .try_fold(0, async |count, ()| Ok(count + 1))
        .await
    }

    async fn check(&self, way: Ready) -> Result<()> {
        let image = &self.settings.image;
        let spec = Spec {
            runtime: self.runtime,
            ..Spec::check(&self.settings, image, &way.check, &way.host)
        };
        let body = create_body(&spec, self.kind);
        let docker = &self.docker;
        let created = docker.create_container(None::<CreateContainerOptions>, body);
        let id = created.await?.id;
        let both = AttachContainerOptionsBuilder::default()
            .stdout(true)
            .stderr(true)
            .stream(true);
        let attached = docker.attach_container(&id, Some(both.build())).await?;
        docker
            .start_container(&id, None::<StartContainerOptions>)
            .await?;
        let mut printed = Vec::new();
        let mut output = attached.output;
        while let Some(piece) = output.next().await {
            printed.extend_from_slice(&piece?.into_bytes());
        }
        let ended = WaitContainerOptionsBuilder::default().condition("not-running");
        let mut wait = docker.wait_container(&id, Some(ended.build()));
        let code = wait.next().await.context("no exit code")??.status_code;
        let force = RemoveContainerOptionsBuilder::default().force(true);
        docker.remove_container(&id, Some(force.build())).await?;
        ensure!(code == 0, "{}: exit code {code}", way.host);
        let printed = String::from_utf8_lossy(&printed);
        if !printed.contains("{\"alive\":") || !printed.contains("{\"done\":") {
            bail!("{}: came out as {printed}", way.host);
        }
        Ok(())
    }
}
