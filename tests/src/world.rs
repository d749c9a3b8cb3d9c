//! A whole census: lab, gateway, launcher and daemon, each a process that can be killed, in a temporary directory.
//!
//! With [`Engine::Process`] the launcher runs inside the test, over [`ProcessEngine`]; with [`Engine::Socket`] it is a process as well and
//! starts real containers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use lab::crowd::Crowd;
use protocol::Host;
use serde_json::Value;
use store::{Reader, Stored};
use tempfile::TempDir;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::ProcessEngine;

/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Lines of a log that are shown when a condition does not come about.
const LOG_LINES_SHOWN: usize = 15;

/// The image that real engines run.
const CHECKER_IMAGE: &str = "localhost/fedicensus-checker:latest";

/// What runs the checks.
#[derive(Debug, Clone)]
pub enum Engine {
    /// Plain processes.
    Process,
    /// The engine behind this socket.
    Socket(PathBuf),
}

impl Engine {
    /// The engine that the environment names in `FEDICENSUS_LAB_ENGINE`; plain processes when it names none.
    pub fn from_environment() -> Self {
        std::env::var_os("FEDICENSUS_LAB_ENGINE")
            .map_or(Self::Process, |socket| Self::Socket(socket.into()))
    }
}

/// How a world is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// What runs the checks.
    pub engine: Engine,
    /// Living instances beside the personas.
    pub crowd: u32,
    /// Names to begin with.
    pub seeds: Vec<String>,
    /// Names known to live.
    pub canaries: Vec<String>,
    /// All intervals are divided by it.
    pub interval_divisor: u32,
    /// The checker's program (plain processes) or image (an engine), when it is not the product's.
    pub checker: Option<String>,
    /// Further settings.
    pub settings: Vec<(&'static str, String)>,
}

impl Options {
    /// Two days an hour, and whatever engine the environment names.
    pub fn new(seeds: &[&str]) -> Self {
        Self {
            engine: Engine::from_environment(),
            crowd: 0,
            seeds: seeds.iter().map(|&seed| seed.to_owned()).collect(),
            canaries: Vec::new(),
            interval_divisor: 50,
            checker: None,
            settings: Vec::new(),
        }
    }
}

/// A part that runs in a process of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The only way out.
    Gateway,
    /// The holder of the engine's socket.
    Launcher,
    /// The daemon.
    Run,
}

impl Role {
    fn command(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Launcher => "launcher",
            Self::Run => "run",
        }
    }
}

/// A running census. Dropping it kills all of it.
#[derive(Debug)]
pub struct World {
    directory: TempDir,
    options: Options,
    lab: lab::Lab,
    environment: BTreeMap<String, String>,
    processes: BTreeMap<Role, Child>,
    inner_launcher: Option<CancellationToken>,
}

impl World {
    /// Starts everything.
    ///
    /// # Errors
    /// When a part can't be started.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let mut world = Self::prepare(options).await?;
        for role in [Role::Gateway, Role::Launcher, Role::Run] {
            world.begin(role).await?;
        }
        Ok(world)
    }

    /// The lab and the directories, with no part of the census running yet.
    ///
    /// # Errors
    /// When the lab can't be started.
    pub async fn prepare(options: Options) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("fedicensus-").tempdir()?;
        for name in ["lab", "data", "public", "egress", "sockets"] {
            std::fs::create_dir(directory.path().join(name))?;
        }
        // The checker's own user has to get through to its egress directory.
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755))?;
        let lab = lab::Lab::start(lab::Settings {
            crowd: Crowd::new(options.crowd, 1),
            state: Some(directory.path().join("lab")),
            ..lab::Settings::default()
        })
        .await?;
        let environment = environment(directory.path(), &options);
        Ok(Self {
            directory,
            options,
            lab,
            environment,
            processes: BTreeMap::new(),
            inner_launcher: None,
        })
    }

    /// Starts a part.
    ///
    /// # Errors
    /// When its program can't be started.
    pub async fn begin(&mut self, role: Role) -> anyhow::Result<()> {
        if role == Role::Launcher && matches!(self.options.engine, Engine::Process) {
            return self.begin_inner_launcher();
        }
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.path(&format!("{}.log", role.command())))?;
        let child = self
            .program(&[role.command()])?
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {role:?}"))?;
        self.processes.insert(role, child);
        Ok(())
    }

    fn begin_inner_launcher(&mut self) -> anyhow::Result<()> {
        let checker = self
            .options
            .checker
            .clone()
            .map_or_else(|| program("fedicensus-checker"), |path| Ok(path.into()))?;
        let defaults = launcher::Settings::default();
        let settings = launcher::Settings {
            checks_max: self
                .setting("checks_max")
                .parse()
                .unwrap_or(defaults.checks_max),
            door_socket: self.path("sockets/launcher.sock"),
            egress: launcher::EgressSource::Directory(self.path("egress")),
            ..defaults
        };
        let shutdown = CancellationToken::new();
        self.inner_launcher = Some(shutdown.clone());
        tokio::spawn(async move {
            launcher::serve(settings, ProcessEngine::new(checker), shutdown).await
        });
        Ok(())
    }

    /// Kills a part as a power cut would.
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill(&mut self, role: Role) -> anyhow::Result<()> {
        let mut child = self
            .processes
            .remove(&role)
            .with_context(|| format!("{role:?} does not run"))?;
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// Ends a part in order.
    ///
    /// # Errors
    /// When it does not run, or does not end in half a minute.
    pub async fn stop(&mut self, role: Role) -> anyhow::Result<()> {
        let mut child = self
            .processes
            .remove(&role)
            .with_context(|| format!("{role:?} does not run"))?;
        let pid = i32::try_from(child.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw)
            .context("no pid")?;
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        self.until("the part has ended", Duration::from_secs(30), |_| {
            Ok(child.try_wait()?.is_some())
        })
        .await
    }

    /// Runs a command of `fedicensus` with this world's settings.
    ///
    /// # Errors
    /// When it can't be run.
    pub fn command(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        Ok(self.program(arguments)?.stdin(Stdio::null()).output()?)
    }

    /// Runs a command with some settings changed.
    ///
    /// # Errors
    /// When it can't be run.
    pub fn command_with(
        &self,
        settings: &[(&str, &str)],
        arguments: &[&str],
    ) -> anyhow::Result<Output> {
        let changed = settings
            .iter()
            .map(|(key, value)| (format!("FEDICENSUS_{}", key.to_uppercase()), value));
        Ok(self
            .program(arguments)?
            .envs(changed)
            .stdin(Stdio::null())
            .output()?)
    }

    fn program(&self, arguments: &[&str]) -> anyhow::Result<Command> {
        let mut command = Command::new(program("fedicensus")?);
        command.args(arguments).env_clear().envs(&self.environment);
        Ok(command)
    }

    /// Changes a setting for parts that are started from now on.
    pub fn set(&mut self, key: &str, value: &str) {
        self.environment.insert(
            format!("FEDICENSUS_{}", key.to_uppercase()),
            value.to_owned(),
        );
    }

    /// A setting that is in force for parts that are started now.
    pub fn setting(&self, key: &str) -> String {
        self.environment
            .get(&format!("FEDICENSUS_{}", key.to_uppercase()))
            .cloned()
            .unwrap_or_default()
    }

    /// A path in the world's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The lab.
    pub fn lab(&self) -> &lab::Lab {
        &self.lab
    }

    /// The database, for reading.
    ///
    /// # Errors
    /// When it is not there yet.
    pub fn reader(&self) -> anyhow::Result<Reader> {
        Ok(store::open_read_only(&self.path("data/census.db"))?)
    }

    /// All that is known of a host.
    ///
    /// # Errors
    /// When the database can't be read.
    pub fn host(&self, name: &str) -> anyhow::Result<Option<Stored>> {
        Ok(self.reader()?.record(&Host::parse(name)?)?)
    }

    /// The last verdict about a host and its reason.
    ///
    /// # Errors
    /// When the database can't be read.
    pub fn verdict(&self, name: &str) -> anyhow::Result<Option<(String, String)>> {
        let stored = self.host(name)?;
        Ok(stored.and_then(|stored| {
            stored.history.first().map(|entry| {
                (
                    entry.verdict.clone(),
                    entry.reason.clone().unwrap_or_default(),
                )
            })
        }))
    }

    /// The published names.
    ///
    /// # Errors
    /// When there are none, or the file is not whole.
    pub fn nodes(&self) -> anyhow::Result<Vec<String>> {
        Ok(serde_json::from_slice(&std::fs::read(
            self.path("public/nodes.json"),
        )?)?)
    }

    /// `fedicensus status --json`.
    ///
    /// # Errors
    /// When it fails.
    pub fn status(&self) -> anyhow::Result<Value> {
        let output = self.command(&["status", "--json"])?;
        if !output.status.success() {
            bail!("status: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Waits until `holds`.
    ///
    /// # Errors
    /// When it does not within `limit`; the parts' logs are shown.
    pub async fn until(
        &self,
        what: &str,
        limit: Duration,
        holds: impl FnMut(&Self) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        self.until_each(LOOK_EVERY, what, limit, holds).await
    }

    /// Waits until `holds`, which is looked at so often: for conditions that are dear.
    ///
    /// # Errors
    /// When it does not within `limit`; the parts' logs are shown.
    pub async fn until_each(
        &self,
        every: Duration,
        what: &str,
        limit: Duration,
        mut holds: impl FnMut(&Self) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + limit;
        let mut look = tokio::time::interval(every);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = None;
        while Instant::now() < deadline {
            look.tick().await;
            match holds(self) {
                Ok(true) => return Ok(()),
                Ok(false) => last = None,
                Err(error) => last = Some(error),
            }
        }
        bail!(
            "not within {limit:?}: {what} {}\n{}",
            last.map(|error| format!("({error:#})")).unwrap_or_default(),
            self.logs()
        );
    }

    fn logs(&self) -> String {
        let mut text = String::new();
        for role in [Role::Gateway, Role::Launcher, Role::Run] {
            let log = std::fs::read_to_string(self.path(&format!("{}.log", role.command())))
                .unwrap_or_default();
            let last = |lines: Vec<&str>| {
                let from = lines.len().saturating_sub(LOG_LINES_SHOWN);
                lines.get(from..).unwrap_or_default().join("\n")
            };
            // What stopped everything may be long ago by now.
            let errors = log.lines().filter(|line| line.contains(" ERROR "));
            text.push_str(&format!(
                "--- {role:?}, errors\n{}\n--- {role:?}, last lines\n{}\n",
                last(errors.collect()),
                last(log.lines().collect())
            ));
        }
        text
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(launcher) = &self.inner_launcher {
            launcher.cancel();
        }
        // The daemon first, so that nothing new is started; the launcher is asked, so that it removes its containers.
        for (role, mut child) in std::mem::take(&mut self.processes).into_iter().rev() {
            if role == Role::Launcher
                && let Some(pid) = i32::try_from(child.id())
                    .ok()
                    .and_then(rustix::process::Pid::from_raw)
                && rustix::process::kill_process(pid, rustix::process::Signal::TERM).is_ok()
            {
                child.wait().ok();
                continue;
            }
            child.kill().ok();
            child.wait().ok();
        }
        if let Engine::Socket(socket) = &self.options.engine {
            remove_containers(socket, &self.setting("instance"));
        }
    }
}

/// What a launcher that was killed left behind: no other comes after it to reap.
fn remove_containers(socket: &Path, instance: &str) {
    let docker = |arguments: &[&str]| {
        Command::new("docker")
            .arg("-H")
            .arg(format!("unix://{}", socket.display()))
            .args(arguments)
            .output()
    };
    let label = format!("label=org.fedicensus={instance}");
    let Ok(listed) = docker(&["ps", "-aq", "--filter", &label]) else {
        return;
    };
    for id in String::from_utf8_lossy(&listed.stdout).split_whitespace() {
        docker(&["rm", "--force", id]).ok();
    }
}

fn environment(directory: &Path, options: &Options) -> BTreeMap<String, String> {
    let path = |name: &str| directory.join(name).display().to_string();
    let engine_socket = match &options.engine {
        Engine::Process => String::from("/nonexistent"),
        Engine::Socket(socket) => socket.display().to_string(),
    };
    let checker_image = options
        .checker
        .clone()
        .unwrap_or_else(|| CHECKER_IMAGE.to_owned());
    let settings = [
        ("contact", "https://lab.test/".to_owned()),
        ("seeds", options.seeds.join(",")),
        ("canaries", options.canaries.join(",")),
        ("data_dir", path("data")),
        ("public_dir", path("public")),
        ("egress_dir", path("egress")),
        ("gateway_socket", path("sockets/gateway.sock")),
        ("launcher_socket", path("sockets/launcher.sock")),
        ("engine_socket", engine_socket),
        ("checker_image", checker_image),
        ("instance", instance(directory)),
        ("lab_names_file", path("lab/names")),
        ("lab_extra_ca", path("lab/ca.pem")),
        ("lab_allow_private", "true".to_owned()),
        ("lab_reserved_suffixes", "true".to_owned()),
        ("lab_pace_divisor", "1000000".to_owned()),
        ("lab_interval_divisor", options.interval_divisor.to_string()),
    ];
    settings
        .into_iter()
        .chain(options.settings.iter().cloned())
        .map(|(key, value)| (format!("FEDICENSUS_{}", key.to_uppercase()), value))
        .collect()
}

/// Worlds beside each other must not reap each other's containers.
fn instance(directory: &Path) -> String {
    directory.file_name().map_or_else(
        || "fedicensus-test".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// A program of the workspace, as built beside this test.
fn program(name: &str) -> anyhow::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let profile = test
        .ancestors()
        .nth(2)
        .context("tests run from target/PROFILE/deps")?;
    let program = profile.join(name);
    if !program.exists() {
        bail!(
            "{} is not built; run `cargo build --workspace` or `cargo test --workspace`",
            program.display()
        );
    }
    Ok(program)
}
