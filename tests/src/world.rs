//! A whole census in a temporary directory: lab, gateway, launcher and daemon as processes that can
//! be killed.
//!
//! With [`Engine::Process`], the launcher is a test program over [`crate::ProcessEngine`]. With
//! [`Engine::Socket`], it is the product's launcher and starts real containers.

mod commands;
mod heard;
mod lock;
mod options;
pub mod push;
mod settings;
mod usage;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use lab::crowd::Crowd;
use lab::farm::Farm;
use protocol::Host;
use serde_json::Value;
use store::{Reader, Stored};
use tempfile::TempDir;
use tokio::time::{Instant, MissedTickBehavior};

use crate::disks::Disk;
use crate::engine_api::{EngineApi, Listed};
use crate::{PATIENCE, patient};

pub use heard::{Heard, WITH_METRICS};
pub use options::{
    EGRESS, Engine, GATEWAY_SOCKET, LAUNCHER_SOCKET, Options, RUN_FOLDERS, checker_image,
};
use settings::Settings;
pub use settings::write_lab_file;
pub use usage::Usage;

/// Interval between two looks at a condition.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Log lines that are shown when a condition is not met in time.
const LOG_LINES_SHOWN: usize = 15;

/// Number of looks at the engine for containers of a killed launcher, and the interval between
/// them: five minutes in all, ten times the longest call.
const LOOKS_MAX: u32 = 1000;
const LOOK_PAUSE: Duration = Duration::from_millis(300);

/// A part that runs as a separate process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The only connection to the network.
    Gateway,
    SecondGateway,
    Launcher,
    Run,
    /// The service for owners' submissions and opt-outs over HTTP.
    Intake,
    Console,
    Push,
    PushConnect,
    PushEndpoint,
}

impl Role {
    fn command(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::SecondGateway => "second-gateway",
            Self::Launcher => "launcher",
            Self::Run => "run",
            Self::Intake => "intake",
            Self::Console => "console",
            Self::Push => "push",
            Self::PushConnect => "push connect",
            Self::PushEndpoint => "push endpoint",
        }
    }
}

/// A running census. Dropping it kills all parts.
#[derive(Debug)]
pub struct World {
    directory: TempDir,
    options: Options,
    lab: lab::Lab,
    settings: Settings,
    processes: BTreeMap<Role, Child>,
    disks: Vec<Disk>,
    /// Commands before a part's own command line, such as one that enters a namespace.
    wrappers: BTreeMap<Role, Vec<String>>,
}

impl World {
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let mut world = Self::prepare(options).await?;
        for role in [Role::Gateway, Role::Launcher, Role::Run] {
            world.begin(role).await?;
        }
        Ok(world)
    }

    /// Starts the lab and makes the directories, but starts no part of the census.
    pub async fn prepare(options: Options) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("fedicensus-").tempdir()?;
        for name in ["lab", "data", "public"].iter().chain(&RUN_FOLDERS) {
            std::fs::create_dir_all(directory.path().join(name))?;
        }
        // The checker's user must be able to reach its egress directory.
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755))?;
        let lab = lab::Lab::start(lab::Settings {
            personas: options.personas.clone(),
            crowd: Crowd::new(options.crowd, 1),
            farm: Farm::new(options.farm),
            state: Some(directory.path().join("lab")),
            ..lab::Settings::default()
        })
        .await?;
        std::fs::write(
            directory.path().join("seccomp.json"),
            launcher::seccomp::PROFILE,
        )?;
        let settings = options::settings(directory.path(), &options);
        let disks = options
            .disks
            .iter()
            .map(|(name, kib)| Disk::mount(&directory.path().join(name), *kib))
            .collect::<anyhow::Result<_>>()?;
        Ok(Self {
            directory,
            options,
            lab,
            settings,
            processes: BTreeMap::new(),
            disks,
            wrappers: BTreeMap::new(),
        })
    }

    /// Starts a part through this command from now on.
    pub fn wrap(&mut self, role: Role, command: Vec<String>) {
        self.wrappers.insert(role, command);
    }

    pub async fn begin(&mut self, role: Role) -> anyhow::Result<()> {
        if role == Role::Run {
            lock::until_free(&self.path("data/census.db.lock")).await?;
        }
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.path(&format!("{}.log", role.command())))?;
        let child = self
            .part(role)?
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {role:?}"))?;
        self.processes.insert(role, child);
        Ok(())
    }

    /// Starts one of two gateways, with its own names file, and waits until it has read its
    /// settings.
    pub async fn begin_way(&mut self, role: Role, names_file: &Path) -> anyhow::Result<()> {
        let socket = |role: Role| format!("run/{}/gateway.sock", role.command());
        let second = self
            .path(&socket(Role::SecondGateway))
            .display()
            .to_string();
        self.set("second_gateway", &second);
        self.set("lab.names_file", &names_file.display().to_string());
        self.begin(role).await?;
        self.until("the gateway listens", PATIENCE, |world| {
            Ok(world.listens(&socket(role)))
        })
        .await
    }

    /// Whether a part accepts connections at this socket. A socket exists before that.
    #[must_use]
    pub fn listens(&self, socket: &str) -> bool {
        std::os::unix::net::UnixStream::connect(self.path(socket)).is_ok()
    }

    fn part(&self, role: Role) -> anyhow::Result<Command> {
        if role != Role::Launcher || matches!(self.options.engine, Engine::Socket(_)) {
            return self.wrapped(role);
        }
        let checker = self
            .options
            .checker
            .clone()
            .map_or_else(|| program("fedicensus-checker"), |path| Ok(path.into()))?;
        let most = self.setting("checks_max").parse::<usize>();
        let mut command = Command::new(program("fedicensus-process-launcher")?);
        command
            .arg(self.directory.path().join(LAUNCHER_SOCKET))
            .arg(self.directory.path().join(EGRESS))
            .arg(
                most.unwrap_or(launcher::Settings::default().checks_max)
                    .to_string(),
            )
            .arg(checker)
            .arg(self.directory.path().join("engine-trouble"))
            .env_clear();
        Ok(command)
    }

    /// Kills a part as a power cut would.
    pub fn kill(&mut self, role: Role) -> anyhow::Result<()> {
        let mut child = self
            .processes
            .remove(&role)
            .with_context(|| format!("{role:?} does not run"))?;
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// Stops a part with SIGSTOP: it neither reads nor answers.
    pub fn freeze(&self, role: Role) -> anyhow::Result<()> {
        self.signal(role, rustix::process::Signal::STOP)
    }

    /// Continues a part after [`Self::freeze`].
    pub fn thaw(&self, role: Role) -> anyhow::Result<()> {
        self.signal(role, rustix::process::Signal::CONT)
    }

    pub fn hang_up(&self, role: Role) -> anyhow::Result<()> {
        self.signal(role, rustix::process::Signal::HUP)
    }

    fn signal(&self, role: Role, signal: rustix::process::Signal) -> anyhow::Result<()> {
        let pid = self
            .processes
            .get(&role)
            .and_then(pid)
            .with_context(|| format!("{role:?} does not run"))?;
        Ok(rustix::process::kill_process(pid, signal)?)
    }

    /// Whether a part is running.
    pub fn runs(&mut self, role: Role) -> anyhow::Result<bool> {
        match self.processes.get_mut(&role) {
            Some(child) => Ok(child.try_wait()?.is_none()),
            None => Ok(false),
        }
    }

    /// Waits until a part exits without a signal from the test.
    pub async fn until_it_ended(&mut self, role: Role, limit: Duration) -> anyhow::Result<()> {
        let mut child = self
            .processes
            .remove(&role)
            .with_context(|| format!("{role:?} does not run"))?;
        let ended = self
            .until("the part has ended by itself", limit, |_| {
                Ok(child.try_wait()?.is_some())
            })
            .await;
        if ended.is_err() {
            child.kill()?;
            child.wait()?;
        }
        ended
    }

    /// Remounts one of the world's small disks, as `ro` or `rw`.
    pub fn remount(&self, name: &str, way: &str) -> anyhow::Result<()> {
        let directory = self.path(name);
        self.disks
            .iter()
            .find(|disk| disk.directory() == directory)
            .context("no such disk")?
            .remount(way)
    }

    pub async fn stop(&mut self, role: Role) -> anyhow::Result<()> {
        let mut child = self
            .processes
            .remove(&role)
            .with_context(|| format!("{role:?} does not run"))?;
        let pid = pid(&child).context("no pid")?;
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        self.until("the part has ended", PATIENCE, |_| {
            Ok(child.try_wait()?.is_some())
        })
        .await
    }

    /// A part's resource usage since its start.
    pub fn usage(&self, role: Role) -> anyhow::Result<Usage> {
        let child = self
            .processes
            .get(&role)
            .with_context(|| format!("{role:?} does not run"))?;
        Usage::of(child.id())
    }

    fn environment(&self) -> anyhow::Result<BTreeMap<String, String>> {
        self.settings.environment(self.directory.path())
    }

    /// Sets an environment variable for parts that are started from now on.
    pub fn set_variable(&mut self, key: &str, value: &str) {
        self.settings.set_variable(key, value);
    }

    fn wrapped(&self, role: Role) -> anyhow::Result<Command> {
        let Some((first, rest)) = self
            .wrappers
            .get(&role)
            .and_then(|words| words.split_first())
        else {
            let words: Vec<_> = role.command().split(' ').collect();
            return self.program(&words);
        };
        let mut command = Command::new(first);
        command
            .args(rest)
            .arg(program("fedicensus")?)
            .args(role.command().split(' '))
            .env_clear()
            .envs(self.environment()?);
        Ok(command)
    }

    /// Changes a setting for parts that are started from now on. A key of the lab's table begins
    /// with `lab.`.
    pub fn set(&mut self, key: &str, value: &str) {
        self.settings.set(key, value);
    }

    /// The value of a setting for parts that are started now.
    pub fn setting(&self, key: &str) -> String {
        self.settings.get(key)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn lab(&self) -> &lab::Lab {
        &self.lab
    }

    pub fn reader(&self) -> anyhow::Result<Reader> {
        Ok(store::open_read_only(&self.path("data/census.db"))?)
    }

    pub fn host(&self, name: &str) -> anyhow::Result<Option<Stored>> {
        Ok(self.reader()?.record(&Host::parse(name)?)?)
    }

    /// A host's last verdict and its reason.
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

    pub fn nodes(&self) -> anyhow::Result<Vec<String>> {
        Ok(serde_json::from_slice(&std::fs::read(
            self.path("public/current/nodes.json"),
        )?)?)
    }

    pub fn status(&self) -> anyhow::Result<Value> {
        let output = self.command(&["status", "--json"])?;
        // 3: a part does not answer.
        if ![Some(0), Some(3)].contains(&output.status.code()) {
            bail!("status: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Waits until `holds` returns true.
    pub async fn until(
        &self,
        what: &str,
        limit: Duration,
        holds: impl FnMut(&Self) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        self.until_each(patient(LOOK_EVERY), what, limit, holds)
            .await
    }

    /// Like [`Self::until`], with a given interval between calls: for expensive conditions.
    pub async fn until_each(
        &self,
        every: Duration,
        what: &str,
        limit: Duration,
        mut holds: impl FnMut(&Self) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let limit = patient(limit);
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

    pub fn log(&self, role: Role) -> String {
        std::fs::read_to_string(self.path(&format!("{}.log", role.command()))).unwrap_or_default()
    }

    fn logs(&self) -> String {
        let mut text = String::new();
        let roles = [Role::Gateway, Role::SecondGateway];
        for role in roles.into_iter().chain([Role::Launcher, Role::Run]) {
            let log = self.log(role);
            let last = |lines: Vec<&str>| {
                let from = lines.len().saturating_sub(LOG_LINES_SHOWN);
                lines.get(from..).unwrap_or_default().join("\n")
            };
            // The error that stopped everything may be far up in the log.
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
        // The daemon first, so that it starts nothing new. The launcher gets SIGTERM, so that it
        // removes its containers.
        for (role, mut child) in std::mem::take(&mut self.processes).into_iter().rev() {
            if role == Role::Launcher
                && let Some(pid) = pid(&child)
                && rustix::process::kill_process(pid, rustix::process::Signal::TERM).is_ok()
            {
                // A stopped process would not receive it.
                rustix::process::kill_process(pid, rustix::process::Signal::CONT).ok();
                child.wait().ok();
                continue;
            }
            child.kill().ok();
            child.wait().ok();
        }
        if let Engine::Socket(socket) = &self.options.engine
            && let Err(error) = remove_containers(socket, &self.setting("instance"))
        {
            writeln!(std::io::stderr(), "{error:#}").ok();
        }
    }
}

fn pid(child: &Child) -> Option<rustix::process::Pid> {
    i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
}

/// Removes the launcher's own name of its image, and the containers of a killed launcher, since no
/// other launcher removes them. Its pending requests continue in the engine, and containers appear
/// and disappear for a while. Two looks must find none.
fn remove_containers(socket: &Path, instance: &str) -> anyhow::Result<()> {
    let engine = EngineApi::connect(socket)?;
    // It is there only if an image passed the probe.
    let probed = format!("localhost/fedicensus-probed:{instance}");
    engine.remove_image(&probed).ok();
    let label = format!("org.fedicensus={instance}");
    let mut looks_without = 0;
    for _ in 0..LOOKS_MAX {
        let left = engine.containers(&[&label], Listed::All)?;
        looks_without = if left.is_empty() {
            looks_without + 1
        } else {
            0
        };
        if looks_without == 2 {
            return Ok(());
        }
        for id in left {
            // The engine refuses if the removal is already in progress; the next look shows the
            // result.
            engine.remove(&id).ok();
        }
        std::thread::sleep(LOOK_PAUSE);
    }
    bail!("containers of {instance} are left in the engine")
}

/// A program of the workspace, built next to this test.
pub fn program(name: &str) -> anyhow::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder = test.parent().context("a program lies in a folder")?;
    // Tests are in target/PROFILE/deps, benchmarks next to the programs.
    let profile = match folder.parent() {
        Some(above) if folder.ends_with("deps") => above,
        Some(_) | None => folder,
    };
    let program = profile.join(name);
    if !program.exists() {
        bail!(
            "{} is not built; run `cargo test --workspace --no-run`",
            program.display()
        );
    }
    Ok(program)
}
