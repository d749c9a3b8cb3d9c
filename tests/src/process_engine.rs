//! An engine for tests without one: each check is a plain process of the checker.
//!
//! It implements the launcher's own trait, so everything except the container is the product's
//! code. It enforces none of a container's limits and answers the probe with the requested ones;
//! tests of the limits therefore need a real engine.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use launcher::EgressSource;
use launcher::engine::{
    Chunk, ContainerId, Created, Engine, EngineError, EngineKind, Identity, Listed, Output,
};
use launcher::spec::Spec;
use protocol::ProbeReport;
use protocol::limits::EGRESS_MOUNT;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};

/// Bytes of a chunk, as engines deliver them.
const CHUNK_BYTES: usize = 8 * 1024;

/// 128 and SIGKILL.
const EXIT_CODE_KILLED: i64 = 137;

/// Chunks in transit: an unread stream blocks its process.
const CHUNKS_MAX: usize = 8;

/// The engine. Checkers that hang or misbehave are simulated by other programs, not here.
#[derive(Debug)]
pub struct ProcessEngine {
    checker: PathBuf,
    /// While this file exists, the calls it names fail; `every` means all of them, `down` a missing
    /// engine.
    trouble: Option<PathBuf>,
    containers: Mutex<HashMap<String, Slot>>,
    next: Mutex<u64>,
}

#[derive(Debug)]
struct Slot {
    spec: Spec,
    output: Option<mpsc::Sender<Result<Chunk, EngineError>>>,
    kill: watch::Sender<bool>,
    exit: watch::Receiver<Option<i64>>,
    exited: Option<watch::Sender<Option<i64>>>,
}

impl ProcessEngine {
    pub fn new(checker: PathBuf) -> Self {
        Self {
            checker,
            trouble: None,
            containers: Mutex::new(HashMap::new()),
            next: Mutex::new(0),
        }
    }

    /// Fails while this file exists, in the way that it names.
    pub fn in_trouble(self, file: PathBuf) -> Self {
        Self {
            trouble: Some(file),
            ..self
        }
    }

    fn call(&self, name: &'static str) -> Result<(), EngineError> {
        let trouble = self.trouble.as_ref().map(std::fs::read_to_string);
        let Some(Ok(trouble)) = trouble else {
            return Ok(());
        };
        let mut words = trouble.split_whitespace();
        if words.clone().any(|word| word == "down") {
            return Err(EngineError::Down {
                call: name,
                source: "connection refused".into(),
            });
        }
        if words.any(|word| word == name || word == "every") {
            return Err(refused(name, "status 500: internal server error"));
        }
        Ok(())
    }

    fn with<T>(
        &self,
        id: &ContainerId,
        act: impl FnOnce(&mut Slot) -> T,
    ) -> Result<T, EngineError> {
        let mut containers = self
            .containers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let slot = containers
            .get_mut(&id.0)
            .ok_or_else(|| refused("find", "no such container"))?;
        Ok(act(slot))
    }
}

fn refused(
    call: &'static str,
    why: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> EngineError {
    EngineError::Refused {
        call,
        source: why.into(),
    }
}

impl Engine for ProcessEngine {
    async fn identify(&self) -> Result<Identity, EngineError> {
        self.call("version")?;
        Ok(Identity {
            kind: EngineKind::Docker,
            version: "process".to_owned(),
            api: (1, 41),
        })
    }

    async fn image_id(&self, _image: &str) -> Result<Option<String>, EngineError> {
        self.call("image")?;
        Ok(self.checker.exists().then(|| "process".to_owned()))
    }

    async fn volume_present(&self, _volume: &str) -> Result<bool, EngineError> {
        Ok(true)
    }

    async fn create(&self, spec: &Spec) -> Result<Created, EngineError> {
        self.call("create")?;
        if !self.checker.exists() {
            return Err(refused("create", "status 404: no such image"));
        }
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        *next += 1;
        let id = format!("process-{next}");
        let (exited, exit) = watch::channel(None);
        let slot = Slot {
            spec: spec.clone(),
            output: None,
            kill: watch::Sender::new(false),
            exit,
            exited: Some(exited),
        };
        self.containers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id.clone(), slot);
        Ok(Created {
            id: ContainerId(id),
            warnings: Vec::new(),
        })
    }

    async fn attach(&self, id: &ContainerId) -> Result<Output, EngineError> {
        self.call("attach")?;
        let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
        self.with(id, |slot| slot.output = Some(sender))?;
        Ok(Box::pin(futures_util::stream::unfold(
            receiver,
            |mut receiver| async move { receiver.recv().await.map(|chunk| (chunk, receiver)) },
        )))
    }

    async fn start(&self, id: &ContainerId) -> Result<(), EngineError> {
        self.call("start")?;
        let (spec, output, exited, killed) = self.with(id, |slot| {
            (
                slot.spec.clone(),
                slot.output.take(),
                slot.exited.take(),
                slot.kill.subscribe(),
            )
        })?;
        let (Some(output), Some(exited)) = (output, exited) else {
            return Err(refused("start", "not attached, or started twice"));
        };
        if spec.argv.iter().any(|argument| argument == "--probe") {
            let report =
                serde_json::to_vec(&as_asked(&spec)).map_err(|error| refused("start", error))?;
            output
                .try_send(Ok(Chunk::Stdout(Bytes::from(
                    [report, b"\n".to_vec()].concat(),
                ))))
                .map_err(|error| refused("start", error.to_string()))?;
            exited.send_replace(Some(0));
            return Ok(());
        }
        let Some(EgressSource::Directory(egress)) = &spec.egress else {
            return Err(refused("start", "no egress directory"));
        };
        // A process has no mounts, so it gets the directory itself instead of the mount point.
        let egress = egress.display().to_string();
        let of_process = |argument: &String| match argument.strip_prefix(EGRESS_MOUNT) {
            Some(below) => format!("{egress}{below}"),
            None => argument.clone(),
        };
        let child = Command::new(&self.checker)
            .args(spec.argv.iter().map(of_process))
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| refused("start", error))?;
        tokio::spawn(live(child, output, exited, killed));
        Ok(())
    }

    async fn wait(&self, id: &ContainerId) -> Result<i64, EngineError> {
        self.call("wait")?;
        let mut exit = self.with(id, |slot| slot.exit.clone())?;
        let code = exit
            .wait_for(Option::is_some)
            .await
            .map_err(|error| refused("wait", error))?;
        code.ok_or_else(|| refused("wait", "no exit code"))
    }

    async fn kill(&self, id: &ContainerId) -> Result<(), EngineError> {
        self.with(id, |slot| {
            slot.kill.send_replace(true);
        })
    }

    async fn remove(&self, id: &ContainerId) -> Result<(), EngineError> {
        if let Some(slot) = self
            .containers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&id.0)
        {
            slot.kill.send_replace(true);
        }
        Ok(())
    }

    async fn list(&self, labels: &[String]) -> Result<Vec<Listed>, EngineError> {
        self.call("list")?;
        let containers = self
            .containers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let carries = |slot: &Slot, label: &String| match label.split_once('=') {
            Some((key, value)) => slot
                .spec
                .labels
                .get(key)
                .is_some_and(|found| found == value),
            None => slot.spec.labels.contains_key(label),
        };
        Ok(containers
            .iter()
            .filter(|(_, slot)| labels.iter().all(|label| carries(slot, label)))
            .map(|(id, slot)| Listed {
                id: ContainerId(id.clone()),
                labels: slot.spec.labels.clone().into_iter().collect(),
            })
            .collect())
    }
}

/// Runs a process to its end, with a container's exit codes.
async fn live(
    mut child: Child,
    output: mpsc::Sender<Result<Chunk, EngineError>>,
    exited: watch::Sender<Option<i64>>,
    mut killed: watch::Receiver<bool>,
) {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let out = tokio::spawn(pump(stdout, output.clone(), Chunk::Stdout));
    let err = tokio::spawn(pump(stderr, output, Chunk::Stderr));
    let asked = async {
        killed.wait_for(|killed| *killed).await.ok();
    };
    let ended = tokio::select! {
        status = child.wait() => Some(status),
        () = asked => None,
    };
    let status = match ended {
        Some(status) => status,
        None => {
            child.start_kill().ok();
            child.wait().await
        }
    };
    let code = status.ok().map_or(EXIT_CODE_KILLED, exit_code);
    // The process's output is delivered before its end, unless nothing reads it.
    let was_killed = *killed.borrow();
    if !was_killed {
        out.await.ok();
        err.await.ok();
    }
    exited.send_replace(Some(code));
}

/// The exit code as engines report it: a signal's number is added to 128.
fn exit_code(status: std::process::ExitStatus) -> i64 {
    use std::os::unix::process::ExitStatusExt as _;
    let signal = || status.signal().map(|signal| 128 + i64::from(signal));
    let code = status.code().map(i64::from);
    code.or_else(signal).unwrap_or(EXIT_CODE_KILLED)
}

async fn pump(
    source: Option<impl AsyncRead + Unpin>,
    output: mpsc::Sender<Result<Chunk, EngineError>>,
    kind: fn(Bytes) -> Chunk,
) {
    let Some(mut source) = source else { return };
    let mut buffer = vec![0; CHUNK_BYTES];
    while let Ok(read) = source.read(&mut buffer).await {
        let bytes = buffer.get(..read).unwrap_or_default();
        if bytes.is_empty()
            || output
                .send(Ok(kind(Bytes::copy_from_slice(bytes))))
                .await
                .is_err()
        {
            return;
        }
    }
}

fn as_asked(spec: &Spec) -> ProbeReport {
    let limits = &spec.confinement;
    ProbeReport {
        uid: limits.user,
        gid: limits.group,
        capabilities: "0000000000000000".to_owned(),
        bounding: "0000000000000000".to_owned(),
        no_new_privileges: true,
        seccomp: 2,
        calls_refused: protocol::probe::CALLS_TRIED.map(str::to_owned).to_vec(),
        profile_mark: Some(launcher::seccomp::MARK),
        calls_missing: Vec::new(),
        memory_max_bytes: Some(limits.memory_bytes.into()),
        swap_max_bytes: Some(0),
        pids_max: Some(limits.pids_max.into()),
        cpu_max: Some(f64::from(limits.cpu_milli) / 1000.0),
        nofile: limits.nofile.into(),
        read_only_root: true,
        writable: Vec::new(),
        interfaces: vec!["lo".to_owned()],
        routes: 0,
        addresses_outside_loopback: 0,
        egress_files: Vec::new(),
        names_told: Vec::new(),
    }
}
