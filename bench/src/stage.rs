//! What both sides of the benchmark share: the lab with its crowd, the gateway, the launcher's engine, and a folder for all of it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use bollard::{API_DEFAULT_VERSION, Docker};
use launcher::spec::EgressBase;
use launcher::{BollardEngine, EgressSource, Engine as _};
use protocol::Host;
use tempfile::TempDir;
use tokio::process::Command;

use crate::Arguments;
use crate::direct::Direct;
use crate::lab;
use crate::role::Role;

/// Who asks, in the user agent.
pub(crate) const CONTACT: &str = "bench@census.test";

/// The client's time-out for an answer, in seconds.
const ENGINE_TIMEOUT_S: u64 = 120;

/// The stage. Its processes end with it.
#[derive(Debug)]
pub(crate) struct Stage {
    /// Names of living instances in the lab.
    pub(crate) hosts: Vec<Host>,
    folder: TempDir,
    fedicensus: PathBuf,
    engine_socket: PathBuf,
    image: String,
    in_flight: usize,
    lab: Role,
    gateway: Role,
    launcher: Role,
}

impl Stage {
    /// Starts the lab, the gateway and the launcher.
    pub(crate) async fn set(arguments: &Arguments) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path();
        for name in ["lab", "egress", "sockets"] {
            std::fs::create_dir(path.join(name))?;
        }
        let mut lab = lab::start(&arguments.programs, path, arguments.checks, &[])?;
        lab.makes(&path.join("lab/names")).await?;
        lab.makes(&path.join("lab/ca.pem")).await?;
        let hosts = lab::crowd(&path.join("lab/names"))?;
        ensure!(
            hosts.len() >= arguments.checks,
            "the lab's crowd has {} hosts, fewer than {}",
            hosts.len(),
            arguments.checks
        );
        let fedicensus = arguments.programs.join("fedicensus");
        let role = |name| {
            let mut command = Command::new(&fedicensus);
            command.arg(name).envs(environment(arguments, path));
            Role::start(name, &mut command, path)
        };
        let mut gateway = role("gateway")?;
        gateway
            .listens_on(&path.join("sockets/gateway.sock"))
            .await?;
        let mut launcher = role("launcher")?;
        launcher
            .listens_on(&path.join("sockets/launcher.sock"))
            .await?;
        Ok(Self {
            hosts,
            fedicensus,
            engine_socket: arguments.engine.clone(),
            image: arguments.image.clone(),
            in_flight: arguments.in_flight,
            lab,
            gateway,
            launcher,
            folder,
        })
    }

    /// The stage's folder; it goes with the stage.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The launcher's door.
    pub(crate) fn launcher_socket(&self) -> PathBuf {
        self.folder().join("sockets/launcher.sock")
    }

    /// A command of `fedicensus` for a census in `home`.
    pub(crate) fn fedicensus(&self, home: &Path) -> Command {
        let mut command = Command::new(&self.fedicensus);
        command.envs(settings(
            &self.engine_socket,
            &self.image,
            self.in_flight,
            self.folder(),
        ));
        command.env("FEDICENSUS_DATA_DIR", home.join("data"));
        command.env("FEDICENSUS_PUBLIC_DIR", home.join("public"));
        command
    }

    /// The direct client on this stage.
    pub(crate) async fn direct(&self) -> Result<Direct> {
        let identity = BollardEngine::new(&self.engine_socket).identify().await?;
        let egress = self.folder().join("egress");
        let settings = launcher::Settings {
            image: self.image.clone(),
            egress: EgressSource::Directory(egress),
            instance: crate::INSTANCE.to_owned(),
            ..launcher::Settings::default()
        };
        let socket = self
            .engine_socket
            .to_str()
            .context("the engine's socket has a path that is no text")?;
        Ok(Direct {
            docker: Docker::connect_with_unix(socket, ENGINE_TIMEOUT_S, API_DEFAULT_VERSION)?
                .negotiate_version()
                .await?,
            kind: identity.kind,
            egress: EgressBase::new(&settings.egress, &identity, None)
                .context("the egress folder")?,
            settings,
            gateway_socket: self.folder().join("sockets/gateway.sock"),
        })
    }

    /// Ends all processes.
    pub(crate) async fn strike(self) -> Result<()> {
        self.launcher.stop().await?;
        self.gateway.stop().await?;
        self.lab.stop().await
    }
}

fn environment(arguments: &Arguments, folder: &Path) -> Vec<(&'static str, String)> {
    settings(
        &arguments.engine,
        &arguments.image,
        arguments.in_flight,
        folder,
    )
}

/// The settings of all roles. Paces are off: they would measure themselves.
fn settings(
    engine: &Path,
    image: &str,
    in_flight: usize,
    folder: &Path,
) -> Vec<(&'static str, String)> {
    let at = |name: &str| folder.join(name).display().to_string();
    vec![
        ("FEDICENSUS_CONTACT", CONTACT.to_owned()),
        ("FEDICENSUS_SEEDS", String::new()),
        ("FEDICENSUS_CANARIES", String::new()),
        ("FEDICENSUS_INSTANCE", crate::INSTANCE.to_owned()),
        ("FEDICENSUS_CHECKS_MAX", in_flight.to_string()),
        ("FEDICENSUS_CHECKS_MIN", in_flight.to_string()),
        ("FEDICENSUS_ENGINE_SOCKET", engine.display().to_string()),
        ("FEDICENSUS_CHECKER_IMAGE", image.to_owned()),
        ("FEDICENSUS_GATEWAY_SOCKET", at("sockets/gateway.sock")),
        ("FEDICENSUS_LAUNCHER_SOCKET", at("sockets/launcher.sock")),
        ("FEDICENSUS_EGRESS_DIR", at("egress")),
        ("FEDICENSUS_EGRESS_VOLUME", String::new()),
        ("FEDICENSUS_LAB_NAMES_FILE", at("lab/names")),
        ("FEDICENSUS_LAB_EXTRA_CA", at("lab/ca.pem")),
        ("FEDICENSUS_LAB_ALLOW_PRIVATE", "true".to_owned()),
        ("FEDICENSUS_LAB_RESERVED_SUFFIXES", "true".to_owned()),
        ("FEDICENSUS_LAB_PACE_DIVISOR", "1000000".to_owned()),
        ("FEDICENSUS_STARTS_PER_SECOND", "1000".to_owned()),
        // All of the lab lies below few registered domains.
        ("FEDICENSUS_GROUP_THRESHOLD", "1000000".to_owned()),
    ]
}
