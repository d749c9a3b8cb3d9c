//! What both sides of the benchmark share: the lab with its crowd, the gateway, the launcher's
//! engine, and a folder for all of them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use bollard::{API_DEFAULT_VERSION, Docker};
use launcher::spec::CRUN;
use launcher::{BollardEngine, EgressSource, Engine as _};
use tempfile::TempDir;
use tests::world::{EGRESS, GATEWAY_SOCKET, LAUNCHER_SOCKET, RUN_FOLDERS};
use tests::write_lab_file;
use tokio::process::Command;

use super::direct::Direct;
use super::lab;
use super::processes::{self, Processes};
use super::role::Role;

/// The label's value of the benchmark's containers, so that no census on the same engine treats
/// them as its own.
pub const INSTANCE: &str = "fedicensus-bench";

/// The contact in the user agent.
pub const CONTACT: &str = "bench@census.test";

/// The client's timeout for an answer, in seconds.
const ENGINE_TIMEOUT_S: u64 = 120;

#[derive(Debug, Clone)]
pub struct Equipment {
    /// Folder of the release binaries `fedicensus` and `fedicensus-lab`.
    pub programs: PathBuf,
    pub engine: PathBuf,
    pub image: String,
    /// Where the stage's folder is created.
    pub below: PathBuf,
    /// Number of responding instances in the lab.
    pub crowd: u32,
    /// Median round trip to them, in milliseconds.
    pub answer_ms: u16,
    /// Most checks in parallel. `None` leaves the number to the roles.
    pub in_flight_max: Option<usize>,
}

#[derive(Debug)]
pub struct Stage {
    folder: TempDir,
    equipment: Equipment,
    engine: Vec<u32>,
    lab: Role,
    gateway: Role,
    launcher: Role,
}

impl Stage {
    /// Starts the lab, the gateway and the launcher.
    pub async fn set(equipment: Equipment) -> Result<Self> {
        let folder = tempfile::tempdir_in(&equipment.below)?;
        let path = folder.path();
        for name in ["lab"].iter().chain(&RUN_FOLDERS) {
            std::fs::create_dir_all(path.join(name))?;
        }
        let (crowd, answer_ms) = (equipment.crowd, equipment.answer_ms);
        let mut lab = lab::start(&equipment.programs, path, crowd, answer_ms)?;
        lab.makes(&path.join("lab/names")).await?;
        lab.makes(&path.join("lab/ca.pem")).await?;
        let role = |name| {
            let mut command = fedicensus(&equipment, path, path, equipment.in_flight_max, &[])?;
            Role::start(name, command.arg(name), path)
        };
        let mut gateway = role("gateway")?;
        gateway.listens_on(&path.join(GATEWAY_SOCKET)).await?;
        let mut launcher = role("launcher")?;
        launcher.listens_on(&path.join(LAUNCHER_SOCKET)).await?;
        Ok(Self {
            engine: processes::daemons(&equipment.engine).await?,
            equipment,
            lab,
            gateway,
            launcher,
            folder,
        })
    }

    /// The stage's folder, which is removed with the stage.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn launcher_socket(&self) -> PathBuf {
        self.folder().join(LAUNCHER_SOCKET)
    }

    /// The processes of the stage, and of a census if one runs.
    pub fn processes(&self, orchestrator: Option<&Role>) -> Result<Processes> {
        Ok(Processes {
            orchestrator: orchestrator.map(Role::id).transpose()?,
            launcher: Some(self.launcher.id()?),
            gateway: Some(self.gateway.id()?),
            engine: self.engine.clone(),
            lab: Some(self.lab.id()?),
        })
    }

    /// A command of `fedicensus` for a census in `home`, with at most this many checks in parallel
    /// if a number is given. `lab` contains additional settings of the lab's table.
    pub fn fedicensus(
        &self,
        home: &Path,
        checks_max: Option<usize>,
        lab: &[(&'static str, String)],
    ) -> Result<Command> {
        let mut command = fedicensus(&self.equipment, self.folder(), home, checks_max, lab)?;
        command.env("FEDICENSUS_DATA_DIR", home.join("data"));
        command.env("FEDICENSUS_PUBLIC_DIR", home.join("public"));
        Ok(command)
    }

    pub async fn direct(&self) -> Result<Direct> {
        let engine = &self.equipment.engine;
        let asked = BollardEngine::new(engine);
        let identity = asked.identify().await?;
        let has_crun = asked.info().await?.adds_crun;
        let egress = self.folder().join(EGRESS);
        let settings = launcher::Settings {
            image: self.equipment.image.clone(),
            egress: EgressSource::Directory(egress),
            instance: INSTANCE.to_owned(),
            extra_roots: true,
            ..launcher::Settings::default()
        };
        let socket = engine
            .to_str()
            .context("the engine's socket has a path that is no text")?;
        Ok(Direct {
            docker: Docker::connect_with_unix(socket, ENGINE_TIMEOUT_S, API_DEFAULT_VERSION)?
                .negotiate_version()
                .await?,
            kind: identity.kind,
            runtime: has_crun.then_some(CRUN),
            settings,
            gateway_socket: self.folder().join(GATEWAY_SOCKET),
        })
    }

    pub async fn strike(self) -> Result<()> {
        self.launcher.stop().await?;
        self.gateway.stop().await?;
        self.lab.stop().await
    }
}

/// A command of `fedicensus` with the settings of all roles. Paces are off, because otherwise they
/// would be measured. Writes the settings file into `home`.
fn fedicensus(
    equipment: &Equipment,
    folder: &Path,
    home: &Path,
    checks_max: Option<usize>,
    further: &[(&'static str, String)],
) -> Result<Command> {
    let at = |name: &str| folder.join(name).display().to_string();
    let engine = equipment.engine.display().to_string();
    let lab = [
        ("names_file", at("lab/names")),
        ("extra_ca", at("lab/ca.pem")),
        ("allow_private", "true".to_owned()),
        ("reserved_suffixes", "true".to_owned()),
        ("pace_divisor", "1000000".to_owned()),
    ];
    let lab = lab.iter().chain(further).map(|(key, value)| (key, value));
    let mut command = Command::new(equipment.programs.join("fedicensus"));
    command.env("FEDICENSUS_CONFIG", write_lab_file(home, lab)?);
    command.envs([
        ("FEDICENSUS_CONTACT", CONTACT.to_owned()),
        ("FEDICENSUS_SEEDS", String::new()),
        ("FEDICENSUS_CANARIES", String::new()),
        ("FEDICENSUS_INSTANCE", INSTANCE.to_owned()),
        ("FEDICENSUS_ENGINE_SOCKET", engine),
        ("FEDICENSUS_CHECKER_IMAGE", equipment.image.clone()),
        ("FEDICENSUS_RUN_DIR", at("run")),
        ("FEDICENSUS_EGRESS_VOLUME", String::new()),
        // The whole lab is below few registered domains.
        ("FEDICENSUS_GROUP_THRESHOLD", "1000000".to_owned()),
    ]);
    command.envs(checks_max.map(|most| ("FEDICENSUS_CHECKS_MAX", most.to_string())));
    Ok(command)
}
