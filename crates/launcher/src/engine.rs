//! The container engine, reduced to the calls that the launcher needs.
//!
//! [`crate::engine::bollard`] implements it for Docker and Podman. The lab and the tests have their
//! own implementations and therefore need no engine. The launcher sets the timeout of every call,
//! so an implementation may take any time, but dropping a call's future must not block.

pub mod bollard;

pub mod create;

mod attach;
pub(crate) mod transport;

pub(crate) mod docker;
pub(crate) mod podman;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use thiserror::Error;

use crate::container::spec::Spec;

/// What a container prints, in order within each stream. Ends once the container has closed both
/// streams.
pub type Output = Pin<Box<dyn Stream<Item = Result<Chunk, EngineError>> + Send>>;

/// A container engine.
///
/// The calls for a container are `create`, `attach`, `start`, `wait` and `remove`, in this order.
/// `kill` may follow `start`, after the [`Output`] was dropped: both engines hang in a kill while
/// an attached stream is held open and not read.
pub trait Engine: Send + Sync + 'static {
    /// Connects if needed and returns the engine's kind and versions. The launcher calls it first,
    /// and again after each failure.
    fn identify(&self) -> impl Future<Output = Result<Identity, EngineError>> + Send;

    /// The id of the image that has this name or id now. `None` if there is none.
    fn image_id(
        &self,
        image: &str,
    ) -> impl Future<Output = Result<Option<String>, EngineError>> + Send;

    fn volume_present(
        &self,
        volume: &str,
    ) -> impl Future<Output = Result<bool, EngineError>> + Send;

    /// The engine's description of its runtimes and its machine.
    fn info(&self) -> impl Future<Output = Result<Info, EngineError>> + Send {
        std::future::ready(Ok(Info::default()))
    }

    /// Gives an image one more name, `REPOSITORY:TAG`. Takes the name from another image.
    fn tag(&self, _id: &str, _name: &str) -> impl Future<Output = Result<(), EngineError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Creates a container without starting it.
    fn create(&self, spec: &Spec) -> impl Future<Output = Result<Created, EngineError>> + Send;

    /// Attaches to stdout and stderr of a container that was created and not yet started.
    fn attach(&self, id: &ContainerId) -> impl Future<Output = Result<Output, EngineError>> + Send;

    fn start(&self, id: &ContainerId) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// The exit code of a started container. Waits until the container has ended.
    fn wait(&self, id: &ContainerId) -> impl Future<Output = Result<i64, EngineError>> + Send;

    fn kill(&self, id: &ContainerId) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Removes a container, running or not. Succeeds if there is no such container.
    fn remove(&self, id: &ContainerId) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// All containers, running or not, that carry all these labels, given as `key` or `key=value`.
    fn list(
        &self,
        labels: &[String],
    ) -> impl Future<Output = Result<Vec<Listed>, EngineError>> + Send;
}

/// The id that the engine gave a container.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ContainerId(pub String);

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    pub id: ContainerId,
    /// What the engine left out, such as a limit that its kernel doesn't have.
    pub warnings: Vec<String>,
}

/// An engine's runtimes and its machine, as it describes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Info {
    /// The operator added crun and kept the default, runc. An operator who chose another default,
    /// such as gVisor's, wants that one for checks.
    pub adds_crun: bool,
    /// The engine runs as a user who is not root.
    pub is_rootless: bool,
    /// The engine says that the kernel has no control group for memory.
    pub lacks_memory_group: bool,
}

/// The engine's kind and versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Docker or Podman, which differ.
    pub kind: EngineKind,
    /// Its version, as the engine reports it.
    pub version: String,
    /// Version of the API in use: major, minor.
    pub api: (usize, usize),
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.api;
        write!(f, "{} {} (API {major}.{minor})", self.kind, self.version)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// Docker, or any engine that does not report that it is Podman.
    Docker,
    Podman,
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Docker => "Docker",
            Self::Podman => "Podman",
        })
    }
}

/// A piece of a container's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    Stdout(Bytes),
    Stderr(Bytes),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub id: ContainerId,
    pub labels: HashMap<String, String>,
}

/// Why a call to the engine failed: always our fault, never a host's.
#[derive(Debug, Error)]
pub enum EngineError {
    #[error("{call}: the engine can't be reached")]
    Down {
        call: &'static str,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("{call}: no engine at {}: {why}", path.display())]
    NoSocket {
        call: &'static str,
        path: PathBuf,
        why: String,
    },
    #[error("{call}: no answer from the engine within {limit:?}")]
    TimedOut { call: &'static str, limit: Duration },
    /// The engine refused the call. The status code is used only for a missing image, because the
    /// engines differ: Docker answers 404 where Podman answers 500.
    #[error("{call}: the engine refused")]
    Refused {
        call: &'static str,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("{call}: the engine's answer was not understood")]
    Garbled {
        call: &'static str,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Adds a timeout to a call.
pub(crate) async fn bounded<T>(
    call: &'static str,
    limit: Duration,
    answer: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, EngineError> {
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer,
        Err(_elapsed) => Err(EngineError::TimedOut { call, limit }),
    }
}
