//! Docker and Podman, over their common API, by bollard.
//!
//! In: the path of the engine's socket, which need not be there yet. Refused: status codes, auto-remove and events, on which the two engines
//! don't agree.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::models::ContainerSummary;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptions, InspectContainerOptions,
    KillContainerOptionsBuilder, ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
    StartContainerOptions, WaitContainerOptionsBuilder,
};
use bollard::{API_DEFAULT_VERSION, Docker};
use futures_util::StreamExt as _;

use crate::engine::{
    Chunk, ContainerId, Engine, EngineError, EngineKind, Identity, Inspection, Listed, Output,
};
use crate::podman;
use crate::spec::{Spec, create_body};

/// The client's own time-out for an answer's head, in seconds: longer than any that the launcher sets, which is the one that counts.
const CLIENT_TIMEOUT_S: u64 = 300;

/// The engine behind a socket.
#[derive(Debug)]
pub struct BollardEngine {
    socket: PathBuf,
    connected: RwLock<Option<Arc<Connected>>>,
}

#[derive(Debug)]
struct Connected {
    docker: Docker,
    kind: EngineKind,
}

impl BollardEngine {
    /// The engine that listens, now or later, on the Unix socket at `socket`. Nothing is connected before [`Engine::identify`].
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self {
            socket: socket.into(),
            connected: RwLock::new(None),
        }
    }

    fn connected(&self, call: &'static str) -> Result<Arc<Connected>, EngineError> {
        self.connected
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .ok_or_else(|| EngineError::Down {
                call,
                source: "it was not reached yet".into(),
            })
    }

    async fn connect(&self) -> Result<Identity, Error> {
        let path = socket_text(&self.socket)?;
        let docker = Docker::connect_with_unix(path, CLIENT_TIMEOUT_S, API_DEFAULT_VERSION)?
            .negotiate_version()
            .await?;
        let version = docker.version().await?;
        let kind = if podman::is_podman(&version) {
            EngineKind::Podman
        } else {
            EngineKind::Docker
        };
        let api = docker.client_version();
        *self
            .connected
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(Connected { docker, kind }));
        Ok(Identity {
            kind,
            version: version.version.unwrap_or_default(),
            api: (api.major_version, api.minor_version),
        })
    }
}

impl Engine for BollardEngine {
    async fn identify(&self) -> Result<Identity, EngineError> {
        self.connect()
            .await
            .map_err(|error| named("version", error))
    }

    async fn image_present(&self, image: &str) -> Result<bool, EngineError> {
        let connected = self.connected("image")?;
        let answer = connected.docker.inspect_image(image).await;
        match answer.map_err(|error| named("image", error)) {
            // An answer that we can't read is still one about an image that is there.
            Ok(_) | Err(EngineError::Garbled { .. }) => Ok(true),
            Err(EngineError::Refused { source, .. }) => {
                tracing::debug!(image, answer = %source, "the engine has no such image");
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn volume_mountpoint(&self, volume: &str) -> Result<Option<String>, EngineError> {
        let options = bollard::query_parameters::ListVolumesOptionsBuilder::default()
            .filters(&HashMap::from([("name", vec![volume])]))
            .build();
        let list = self
            .connected("volumes")?
            .docker
            .list_volumes(Some(options))
            .await
            .map_err(|error| named("volumes", error))?;
        // The filter matches parts of names too.
        Ok(list
            .volumes
            .unwrap_or_default()
            .into_iter()
            .find(|found| found.name == volume)
            .map(|found| found.mountpoint))
    }

    async fn create(&self, spec: &Spec) -> Result<ContainerId, EngineError> {
        let connected = self.connected("create")?;
        let body = create_body(spec, connected.kind);
        connected
            .docker
            .create_container(None::<CreateContainerOptions>, body)
            .await
            .map(|created| ContainerId(created.id))
            .map_err(|error| named("create", error))
    }

    async fn attach(&self, id: &ContainerId) -> Result<Output, EngineError> {
        let options = AttachContainerOptionsBuilder::default()
            .stdout(true)
            .stderr(true)
            .stream(true)
            .build();
        let attached = self
            .connected("attach")?
            .docker
            .attach_container(&id.0, Some(options))
            .await
            .map_err(|error| named("attach", error))?;
        // The writing half goes: nothing is ever said to a checker.
        Ok(Box::pin(attached.output.map(chunk)))
    }

    async fn start(&self, id: &ContainerId) -> Result<(), EngineError> {
        self.connected("start")?
            .docker
            .start_container(&id.0, None::<StartContainerOptions>)
            .await
            .map_err(|error| named("start", error))
    }

    async fn wait(&self, id: &ContainerId) -> Result<i64, EngineError> {
        // `not-running`, asked after the start: it can't miss an end, whereas Podman's `next-exit` looks at events from some time on.
        let options = WaitContainerOptionsBuilder::default()
            .condition("not-running")
            .build();
        let connected = self.connected("wait")?;
        let mut answers = Box::pin(connected.docker.wait_container(&id.0, Some(options)));
        exit_code(answers.next().await)
    }

    async fn inspect(&self, id: &ContainerId) -> Result<Inspection, EngineError> {
        let connected = self.connected("inspect")?;
        let mut attempt = 1;
        loop {
            let answer = connected
                .docker
                .inspect_container(&id.0, None::<InspectContainerOptions>)
                .await;
            match answer.map_err(|error| named("inspect", error)) {
                Ok(found) => {
                    return Ok(Inspection {
                        out_of_memory: found.state.and_then(|state| state.oom_killed),
                    });
                }
                Err(EngineError::Garbled { .. }) if attempt < podman::INSPECT_ATTEMPTS_MAX => {
                    attempt = attempt.saturating_add(1);
                    tokio::time::sleep(podman::INSPECT_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn kill(&self, id: &ContainerId) -> Result<(), EngineError> {
        let options = KillContainerOptionsBuilder::default()
            .signal("KILL")
            .build();
        self.connected("kill")?
            .docker
            .kill_container(&id.0, Some(options))
            .await
            .map_err(|error| named("kill", error))
    }

    async fn remove(&self, id: &ContainerId) -> Result<(), EngineError> {
        let options = RemoveContainerOptionsBuilder::default().force(true).build();
        let answer = self
            .connected("remove")?
            .docker
            .remove_container(&id.0, Some(options))
            .await;
        match answer.map_err(|error| named("remove", error)) {
            Ok(()) => Ok(()),
            // Refused is fine when it is gone; the two engines have different numbers for that, so it is looked up.
            Err(error @ EngineError::Refused { .. }) => {
                let label = crate::spec::LABEL_CHECK.to_owned();
                let there = self
                    .list(&[label])
                    .await?
                    .iter()
                    .any(|found| found.id == *id);
                if there { Err(error) } else { Ok(()) }
            }
            Err(error) => Err(error),
        }
    }

    async fn list(&self, labels: &[String]) -> Result<Vec<Listed>, EngineError> {
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&HashMap::from([("label", labels.to_vec())]))
            .build();
        let summaries = self
            .connected("list")?
            .docker
            .list_containers(Some(options))
            .await
            .map_err(|error| named("list", error))?;
        Ok(summaries.into_iter().filter_map(listed).collect())
    }
}

fn socket_text(socket: &Path) -> Result<&str, Error> {
    socket
        .to_str()
        .ok_or_else(|| Error::SocketNotFoundError(socket.display().to_string()))
}

fn listed(summary: ContainerSummary) -> Option<Listed> {
    Some(Listed {
        id: ContainerId(summary.id?),
        labels: summary.labels.unwrap_or_default(),
    })
}

fn chunk(message: Result<LogOutput, Error>) -> Result<Chunk, EngineError> {
    match message.map_err(|error| named("attach", error))? {
        LogOutput::StdOut { message } => Ok(Chunk::Stdout(message)),
        LogOutput::StdErr { message } => Ok(Chunk::Stderr(message)),
        LogOutput::StdIn { .. } | LogOutput::Console { .. } => Err(EngineError::Garbled {
            call: "attach",
            source: "bytes that belong to neither stdout nor stderr".into(),
        }),
    }
}

fn exit_code(
    answer: Option<Result<bollard::models::ContainerWaitResponse, Error>>,
) -> Result<i64, EngineError> {
    let code = match answer {
        Some(Ok(response)) => response.status_code,
        // The client makes an error of every code but 0.
        Some(Err(Error::DockerContainerWaitError { code, .. })) => code,
        Some(Err(error)) => return Err(named("wait", error)),
        None => {
            return Err(EngineError::Down {
                call: "wait",
                source: "the connection ended without an answer".into(),
            });
        }
    };
    if code < 0 {
        // Podman's answer when it is being stopped itself.
        return Err(EngineError::Garbled {
            call: "wait",
            source: format!("exit code {code}").into(),
        });
    }
    Ok(code)
}

/// Sorts a client's error by what we can do about it.
fn named(call: &'static str, error: Error) -> EngineError {
    let down = matches!(
        error,
        Error::SocketNotFoundError(_)
            | Error::IOError { .. }
            | Error::HyperResponseError { .. }
            | Error::HyperLegacyError { .. }
            | Error::RequestTimeoutError
    );
    let refused = matches!(
        error,
        Error::DockerResponseServerError { .. } | Error::DockerStreamError { .. }
    );
    let source = Box::new(error);
    if down {
        EngineError::Down { call, source }
    } else if refused {
        EngineError::Refused { call, source }
    } else {
        EngineError::Garbled { call, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::ContainerWaitResponse;

    fn answered(code: i64) -> Option<Result<ContainerWaitResponse, Error>> {
        Some(Ok(ContainerWaitResponse {
            status_code: code,
            error: None,
        }))
    }

    #[test]
    fn an_exit_code_is_no_error_of_the_engine() {
        assert_eq!(exit_code(answered(0)).unwrap(), 0);
        let seven = Error::DockerContainerWaitError {
            error: String::new(),
            code: 7,
        };
        assert_eq!(exit_code(Some(Err(seven))).unwrap(), 7);
    }

    #[test]
    fn a_wait_without_an_exit_code_is_our_fault() {
        assert!(matches!(exit_code(None), Err(EngineError::Down { .. })));
        assert!(matches!(
            exit_code(answered(-1)),
            Err(EngineError::Garbled { .. })
        ));
    }

    #[test]
    fn bytes_of_no_stream_are_not_taken_for_stdout() {
        let message = bytes::Bytes::from_static(b"x");
        assert!(matches!(
            chunk(Ok(LogOutput::Console { message })),
            Err(EngineError::Garbled { .. })
        ));
    }

    #[tokio::test]
    async fn a_socket_that_is_not_there_is_an_engine_that_is_down() {
        let engine = BollardEngine::new("/nonexistent/engine.sock");
        assert!(matches!(
            engine.identify().await,
            Err(EngineError::Down { .. })
        ));
        assert!(matches!(
            engine.list(&[]).await,
            Err(EngineError::Down { .. })
        ));
    }
}
