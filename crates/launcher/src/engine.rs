//! The container engine as the launcher needs it, and nothing more.
//!
//! In: a [`Spec`]. Out: a container that runs, its bytes and its exit code.
//! [`crate::engine::bollard`] speaks to Docker and Podman; the lab and the tests bring
//! implementations of their own, which therefore need no engine. Every call is given its time-out
//! by the launcher, so an implementation may take as long as it likes, but dropping a call's future
//! must not block.

pub mod bollard;

pub mod create;

mod attach;
pub(crate) mod transport;

pub(crate) mod docker;
pub(crate) mod podman;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use thiserror::Error;

use crate::container::spec::Spec;

/// What a container prints, in order within each stream; ends when it has closed both.
pub type Output = Pin<Box<dyn Stream<Item = Result<Chunk, EngineError>> + Send>>;

/// A container engine.
///
/// A container's life is `create`, `attach`, `start`, `wait`, `remove`, in this order; `kill` may come after `start`, and the
/// [`Output`] has been dropped by then, because both engines hang in a kill while an attached stream is held and not read.
pub trait Engine: Send + Sync + 'static {
    /// Connects if need be, and says who the engine is. The launcher calls it first, and again after each failure.
    fn identify(&self) -> impl Future<Output = Result<Identity, EngineError>> + Send;

    /// The id of the image that has this name or id now; `None` when there is none.
    fn image_id(
        &self,
        image: &str,
    ) -> impl Future<Output = Result<Option<String>, EngineError>> + Send;

    /// Whether there is a volume of this name.
    fn volume_present(
        &self,
        volume: &str,
    ) -> impl Future<Output = Result<bool, EngineError>> + Send;

    /// Whether its operator added this runtime and left the default, runc, in place. One who chose
    /// another default, such as gVisor's, wants that for checks.
    fn has_runtime(
        &self,
        _runtime: &str,
    ) -> impl Future<Output = Result<bool, EngineError>> + Send {
        std::future::ready(Ok(false))
    }

    /// Makes a container, which does not run yet.
    fn create(&self, spec: &Spec) -> impl Future<Output = Result<ContainerId, EngineError>> + Send;

    /// Attaches to the stdout and stderr of a container that was created and not started.
    fn attach(&self, id: &ContainerId) -> impl Future<Output = Result<Output, EngineError>> + Send;

    /// Starts it.
    fn start(&self, id: &ContainerId) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// The exit code of a container that was started, once it has ended; at once when it has.
    fn wait(&self, id: &ContainerId) -> impl Future<Output = Result<i64, EngineError>> + Send;

    /// Sends SIGKILL.
    fn kill(&self, id: &ContainerId) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Removes a container, running or not. Nothing wrong about one that is not there.
    fn remove(&self, id: &ContainerId) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// All containers, running or not, that carry all these labels: `key` or `key=value`.
    fn list(
        &self,
        labels: &[String],
    ) -> impl Future<Output = Result<Vec<Listed>, EngineError>> + Send;
}

/// The engine's own name for a container.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ContainerId(pub String);

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who the engine is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Which of the two, for they differ.
    pub kind: EngineKind,
    /// Its version, as it says it.
    pub version: String,
    /// Version of the API that is spoken with it: major, minor.
    pub api: (usize, usize),
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.api;
        write!(f, "{} {} (API {major}.{minor})", self.kind, self.version)
    }
}

/// The engines that we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// Docker, or anything that doesn't say that it is Podman.
    Docker,
    /// Podman, rootful or rootless.
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

/// A piece of what a container printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// On stdout.
    Stdout(Bytes),
    /// On stderr.
    Stderr(Bytes),
}

/// A container in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub id: ContainerId,
    /// Its labels.
    pub labels: HashMap<String, String>,
}

/// Why a call to the engine failed: always our fault, never a host's.
#[derive(Debug, Error)]
pub enum EngineError {
    /// Nobody listens, or the connection broke.
    #[error("{call}: the engine can't be reached")]
    Down {
        /// What was asked.
        call: &'static str,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No answer in time.
    #[error("{call}: no answer from the engine within {limit:?}")]
    TimedOut {
        /// What was asked.
        call: &'static str,
        /// How long was waited.
        limit: Duration,
    },
    /// The engine answered that it won't. Status codes are not looked at, but for a missing image's: what is 404 with Docker is 500 with Podman.
    #[error("{call}: the engine refused")]
    Refused {
        /// What was asked.
        call: &'static str,
        /// What it answered.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The answer was not understood.
    #[error("{call}: the engine's answer was not understood")]
    Garbled {
        /// What was asked.
        call: &'static str,
        /// What was wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Gives a call its time-out.
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
