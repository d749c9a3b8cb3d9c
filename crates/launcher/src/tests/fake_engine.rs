//! An engine in memory. It prints what a test sets, fails or hangs at a chosen call, and hangs in a
//! kill while its stream is held open, as the real engines do.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tokio::sync::watch;

use crate::container::seccomp::MARK;
use crate::container::spec::{LABEL_PROBE, Spec};
use crate::engine::{
    Chunk, ContainerId, Created, Engine, EngineError, EngineKind, Identity, Info, Listed, Output,
};

/// What a check's container does. The probe's container always prints [`FakeEngine::set_report`]
/// and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Script {
    /// Prints on both streams and ends with this code.
    Print(i64),
    /// Prints after this many seconds and ends.
    Late(u64),
    Flood,
    Stay,
    Silent,
    /// Ends with this code, and its output does not end.
    Unended(i64),
}

/// What happens at the chosen call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mishap {
    Down,
    NoSocket,
    Refused,
    Garbled,
    Hang,
    Slow,
}

/// All calls, by the names that their errors have.
pub(crate) const CALLS: [&str; 11] = [
    "version", "list", "image", "volume", "tag", "create", "attach", "start", "wait", "kill",
    "remove",
];

/// The image that is there unless a test wants others.
pub(crate) const IMAGE_ID: &str = "sha256:1";

/// The report of a container that is confined as it should be.
pub(crate) static REPORT: LazyLock<String> = LazyLock::new(|| {
    let mark = format!(r#""profile_mark":{MARK}"#);
    UNMARKED.replacen(r#""profile_mark":null"#, &mark, 1) + "\n"
});

/// The same report under a profile without a mark.
const UNMARKED: &str = r#"{"uid":64321,"gid":64321,"capabilities":"0000000000000000","bounding":"0000000000000000","no_new_privileges":true,"seccomp":2,"calls_refused":["socket(AF_INET)","socket(AF_INET6)","socket(AF_NETLINK)","bind","clone (a process)","kill","pidfd_open","memfd_create","inotify_init1","unlinkat"],"calls_missing":[],"profile_mark":null,"memory_max_bytes":67108864,"swap_max_bytes":0,"pids_max":16,"cpu_max":0.5,"nofile":64,"read_only_root":true,"writable":[],"interfaces":["lo"],"routes":0,"addresses_outside_loopback":0,"egress_files":[],"names_told":[]}"#;

#[derive(Debug, Default, Clone)]
pub(crate) struct FakeEngine {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    script: Script,
    report: String,
    /// Ids of the images. The last one has the name.
    images: Vec<&'static str>,
    /// Images whose probe reports a readable program.
    readable: Vec<&'static str>,
    volume: bool,
    calls: Vec<&'static str>,
    mishaps: HashMap<usize, Mishap>,
    lasting: HashMap<&'static str, Mishap>,
    probed: Option<String>,
    /// Whether a second runtime, if it is listed, starts containers.
    second_runtime: Option<bool>,
    removals: HashMap<String, Mishap>,
    made: u64,
    flooded_chunks: Arc<AtomicU64>,
    containers: BTreeMap<String, Fake>,
    specs: Vec<Spec>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            script: Script::Print(0),
            report: REPORT.to_owned(),
            images: vec![IMAGE_ID],
            readable: Vec::new(),
            volume: true,
            calls: Vec::new(),
            mishaps: HashMap::new(),
            lasting: HashMap::new(),
            probed: None,
            second_runtime: None,
            removals: HashMap::new(),
            made: 0,
            flooded_chunks: Arc::default(),
            containers: BTreeMap::new(),
            specs: Vec::new(),
        }
    }
}

impl State {
    fn image_id(&self, image: &str) -> Option<String> {
        if image.starts_with("localhost/fedicensus-probed:") {
            let is_there = |id: &String| self.images.contains(&id.as_str());
            return self.probed.clone().filter(is_there);
        }
        let found = match self.images.iter().find(|id| **id == image) {
            None if !image.starts_with("sha256:") => self.images.last(),
            by_id => by_id,
        };
        found.map(|id| (*id).to_owned())
    }
}

#[derive(Debug)]
struct Fake {
    labels: HashMap<String, String>,
    script: Script,
    probe: bool,
    readable: bool,
    runs: bool,
    ended: watch::Sender<Option<i64>>,
    stream: Weak<()>,
}

pub(crate) fn labels(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

impl FakeEngine {
    pub(crate) fn new(script: Script) -> Self {
        let engine = Self::default();
        engine.state().script = script;
        engine
    }

    /// What containers created from now on do.
    pub(crate) fn set_script(&self, script: Script) {
        self.state().script = script;
    }

    pub(crate) fn set_report(&self, report: &str) {
        report.clone_into(&mut self.state().report);
    }

    /// Sets the ids of the existing images. The last one has the name.
    pub(crate) fn set_images(&self, ids: &[&'static str]) {
        self.state().images = ids.to_vec();
    }

    pub(crate) fn set_readable(&self, ids: &[&'static str]) {
        self.state().readable = ids.to_vec();
    }

    pub(crate) fn set_volume(&self, present: bool) {
        self.state().volume = present;
    }

    /// From now on, this happens at each of these calls.
    pub(crate) fn break_calls(&self, calls: &[&'static str], mishap: Mishap) {
        let broken = calls.iter().map(|call| (*call, mishap));
        self.state().lasting.extend(broken);
    }

    pub(crate) fn mend_calls(&self) {
        self.state().lasting.clear();
    }

    pub(crate) fn set_removal(&self, name: &str, mishap: Option<Mishap>) {
        let removals = &mut self.state().removals;
        match mishap {
            Some(mishap) => removals.insert(name.to_owned(), mishap),
            None => removals.remove(name),
        };
    }

    /// Lists crun. It starts containers or refuses to.
    pub(crate) fn set_second_runtime(&self, starts: bool) {
        self.state().second_runtime = Some(starts);
    }

    /// Makes the n-th call from now on fail, counted from 0.
    pub(crate) fn go_wrong(&self, after: usize, mishap: Mishap) {
        let mut state = self.state();
        let at = state.calls.len().saturating_add(after);
        state.mishaps.insert(at, mishap);
    }

    pub(crate) fn calls(&self) -> Vec<&'static str> {
        self.state().calls.clone()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.state().containers.keys().cloned().collect()
    }

    /// Chunks of 32 KiB that were read from floods.
    pub(crate) fn flooded_chunks(&self) -> u64 {
        self.state().flooded_chunks.load(Ordering::Relaxed)
    }

    pub(crate) fn specs(&self) -> Vec<Spec> {
        self.state().specs.clone()
    }

    pub(crate) fn plant(&self, name: &str, labels: HashMap<String, String>) {
        let fake = Fake {
            labels,
            script: Script::Silent,
            probe: false,
            readable: false,
            runs: true,
            ended: watch::Sender::new(None),
            stream: Weak::new(),
        };
        self.state().containers.insert(name.to_owned(), fake);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    async fn call(&self, call: &'static str) -> Result<(), EngineError> {
        let mishap = {
            let mut state = self.state();
            let index = state.calls.len();
            state.calls.push(call);
            let once = state.mishaps.get(&index);
            once.or_else(|| state.lasting.get(call)).copied()
        };
        Self::happen(call, mishap).await
    }

    async fn happen(call: &'static str, mishap: Option<Mishap>) -> Result<(), EngineError> {
        let source = "by order of the test".into();
        match mishap {
            None => Ok(()),
            Some(Mishap::Down) => Err(EngineError::Down { call, source }),
            Some(Mishap::NoSocket) => Err(EngineError::NoSocket {
                call,
                path: "/run/engine.sock".into(),
                why: "by order of the test".to_owned(),
            }),
            Some(Mishap::Refused) => Err(EngineError::Refused { call, source }),
            Some(Mishap::Garbled) => Err(EngineError::Garbled { call, source }),
            Some(Mishap::Hang) => std::future::pending().await,
            Some(Mishap::Slow) => {
                tokio::time::sleep(Duration::from_secs(5)).await;
                Ok(())
            }
        }
    }

    fn with<T>(
        &self,
        id: &ContainerId,
        what: impl FnOnce(&mut Fake) -> T,
    ) -> Result<T, EngineError> {
        let mut state = self.state();
        let fake = state.containers.get_mut(&id.0);
        fake.map(what).ok_or_else(|| EngineError::Refused {
            call: "look-up",
            source: "no such container".into(),
        })
    }
}

impl Engine for FakeEngine {
    async fn identify(&self) -> Result<Identity, EngineError> {
        self.call("version").await?;
        Ok(Identity {
            kind: EngineKind::Docker,
            version: "0".to_owned(),
            api: (1, 41),
        })
    }

    async fn image_id(&self, image: &str) -> Result<Option<String>, EngineError> {
        self.call("image").await?;
        Ok(self.state().image_id(image))
    }

    async fn volume_present(&self, _volume: &str) -> Result<bool, EngineError> {
        self.call("volume").await?;
        Ok(self.state().volume)
    }

    async fn info(&self) -> Result<Info, EngineError> {
        Ok(Info {
            adds_crun: self.state().second_runtime.is_some(),
            ..Info::default()
        })
    }

    async fn tag(&self, id: &str, _name: &str) -> Result<(), EngineError> {
        self.call("tag").await?;
        self.state().probed = Some(id.to_owned());
        Ok(())
    }

    async fn create(&self, spec: &Spec) -> Result<Created, EngineError> {
        self.call("create").await?;
        let mut state = self.state();
        let Some(image) = state.image_id(&spec.image) else {
            return Err(EngineError::Refused {
                call: "create",
                source: "no such image".into(),
            });
        };
        state.made = state.made.saturating_add(1);
        let name = format!("c{}", state.made);
        let fake = Fake {
            labels: spec.labels.clone().into_iter().collect(),
            script: state.script,
            probe: spec.labels.contains_key(LABEL_PROBE),
            readable: state.readable.contains(&image.as_str()),
            runs: spec.runtime.is_none() || state.second_runtime == Some(true),
            ended: watch::Sender::new(None),
            stream: Weak::new(),
        };
        state.containers.insert(name.clone(), fake);
        state.specs.push(spec.clone());
        Ok(Created {
            id: ContainerId(name),
            warnings: Vec::new(),
        })
    }

    async fn attach(&self, id: &ContainerId) -> Result<Output, EngineError> {
        self.call("attach").await?;
        let held = Arc::new(());
        let report = self.state().report.clone();
        let flooded = Arc::clone(&self.state().flooded_chunks);
        let (script, probe, readable) = self.with(id, |fake| {
            fake.stream = Arc::downgrade(&held);
            (fake.script, fake.probe, fake.readable)
        })?;
        let memory = r#""writable":["/proc/self/mem"]"#;
        let report = Bytes::from(if readable {
            report.replacen(r#""writable":[]"#, memory, 1)
        } else {
            report
        });
        let greeting = [
            Ok(Chunk::Stdout(Bytes::from_static(b"out"))),
            Ok(Chunk::Stderr(Bytes::from_static(b"err"))),
        ];
        let output: Output = if probe {
            Box::pin(stream::iter([Ok(Chunk::Stdout(report))]))
        } else {
            match script {
                Script::Print(_) | Script::Stay => Box::pin(stream::iter(greeting)),
                Script::Late(seconds) => {
                    Box::pin(stream::iter(greeting).chain(stream::once(async move {
                        tokio::time::sleep(Duration::from_secs(seconds)).await;
                        Ok(Chunk::Stdout(Bytes::from_static(b"late")))
                    })))
                }
                Script::Flood => Box::pin(stream::repeat_with(move || {
                    flooded.fetch_add(1, Ordering::Relaxed);
                    Ok(Chunk::Stderr(Bytes::from_static(&[b'x'; 32 * 1024])))
                })),
                Script::Silent | Script::Unended(_) => Box::pin(stream::pending()),
            }
        };
        Ok(Box::pin(output.map(move |chunk| {
            let _held = &held;
            chunk
        })))
    }

    async fn start(&self, id: &ContainerId) -> Result<(), EngineError> {
        self.call("start").await?;
        if !self.with(id, |fake| fake.runs)? {
            return Err(EngineError::Refused {
                call: "start",
                source: "the runtime can't".into(),
            });
        }
        self.with(id, |fake| {
            let code = match fake.script {
                _ if fake.probe => Some(0),
                Script::Print(code) | Script::Unended(code) => Some(code),
                Script::Late(_) => Some(0),
                Script::Flood | Script::Stay | Script::Silent => None,
            };
            fake.ended.send_replace(code);
        })
    }

    async fn wait(&self, id: &ContainerId) -> Result<i64, EngineError> {
        self.call("wait").await?;
        let mut ended = self.with(id, |fake| fake.ended.subscribe())?;
        let code = ended.wait_for(Option::is_some).await;
        Ok(code.ok().and_then(|code| *code).unwrap_or(-1))
    }

    async fn kill(&self, id: &ContainerId) -> Result<(), EngineError> {
        self.call("kill").await?;
        if self.with(id, |fake| fake.stream.strong_count())? > 0 {
            return std::future::pending().await;
        }
        self.with(id, |fake| {
            fake.ended.send_if_modified(|code| {
                let runs = code.is_none();
                *code = code.or(Some(137));
                runs
            });
        })
    }

    async fn remove(&self, id: &ContainerId) -> Result<(), EngineError> {
        self.call("remove").await?;
        let own = self.state().removals.get(&id.0).copied();
        Self::happen("remove", own).await?;
        self.state().containers.remove(&id.0);
        Ok(())
    }

    async fn list(&self, _labels: &[String]) -> Result<Vec<Listed>, EngineError> {
        self.call("list").await?;
        // Deliberately all of them: the launcher has to filter itself.
        let state = self.state();
        let listed = state.containers.iter().map(|(name, fake)| Listed {
            id: ContainerId(name.clone()),
            labels: fake.labels.clone(),
        });
        Ok(listed.collect())
    }
}
