//! Docker and Podman over their common API, with the crate bollard.
//!
//! The socket need not exist yet. Status codes (except for a missing image), auto-remove and events
//! are not used, because the two engines differ there. Answers over their bound are rejected.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use bollard::errors::Error;
use bollard::models::SystemVersion;
use bollard::query_parameters::{
    CreateContainerOptions, KillContainerOptionsBuilder, RemoveContainerOptionsBuilder,
    StartContainerOptions, TagImageOptionsBuilder, WaitContainerOptionsBuilder,
};
use bollard::{API_DEFAULT_VERSION, BollardRequest, ClientVersion, Docker};
use futures_util::StreamExt as _;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::container::spec::{CRUN, Spec};
use crate::engine::attach::attach;
use crate::engine::create::create_body;
use crate::engine::podman;
use crate::engine::transport::{
    Allowance, Refusal, answer_bytes_max, api_version, get, is_too_long, send,
};
use crate::engine::{
    ContainerId, Created, Engine, EngineError, EngineKind, Identity, Info, Listed, Output,
};

/// The client's own timeout for an answer's head, in seconds. Longer than any timeout of the
/// launcher, so that the launcher's applies.
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
    /// Of every request but the one that asks for it.
    version: ClientVersion,
}

impl BollardEngine {
    /// An engine that listens, now or later, on the Unix socket at `socket`. Nothing connects
    /// before [`Engine::identify`].
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self {
            socket: socket.into(),
            connected: RwLock::new(None),
        }
    }

    /// The parsed answer of a GET request.
    async fn told<T: DeserializeOwned>(
        &self,
        call: &'static str,
        version: Option<ClientVersion>,
        path: &str,
    ) -> Result<T, EngineError> {
        let text = get(&self.socket, version, path)
            .await
            .map_err(|refusal| refused(call, refusal))?;
        serde_json::from_slice(&text).map_err(|error| EngineError::Garbled {
            call,
            source: Box::new(error),
        })
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

    async fn connect(&self) -> Result<Identity, EngineError> {
        // Our own request, because the client would send two: Podman answers this call only after
        // it has taken the lock of every container.
        let told = self.told("version", None, "/version").await;
        let told: SystemVersion = told.map_err(|error| self.explained(error))?;
        let version = spoken(&told)?;
        let docker = client(&self.socket, version).map_err(|error| named("version", error))?;
        let kind = if podman::is_podman(&told) {
            EngineKind::Podman
        } else {
            EngineKind::Docker
        };
        *self
            .connected
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(Connected {
            docker,
            kind,
            version,
        }));
        Ok(Identity {
            kind,
            version: told.version.unwrap_or_default(),
            api: (version.major_version, version.minor_version),
        })
    }

    /// A failed connection, with what an operator can do about the socket.
    fn explained(&self, error: EngineError) -> EngineError {
        let EngineError::Down { call, source } = error else {
            return error;
        };
        let Some(Error::IOError { err }) = source.downcast_ref() else {
            return EngineError::Down { call, source };
        };
        let is = |kinds: &[ErrorKind]| kinds.contains(&err.kind());
        if is(&[ErrorKind::PermissionDenied]) {
            let source = format!("{}: {err}; {FORBIDDEN}", self.socket.display()).into();
            return EngineError::Down { call, source };
        }
        if !is(&[ErrorKind::ConnectionRefused, ErrorKind::NotFound]) {
            return EngineError::Down { call, source };
        }
        let why = if self.socket.is_dir() {
            NO_SOCKET_BUT_A_FOLDER.to_owned()
        } else {
            format!("{err}; {NO_SOCKET}")
        };
        EngineError::NoSocket {
            call,
            path: self.socket.clone(),
            why,
        }
    }
}

/// The used fields of a listed container. The state is left out: just after an end, and for longer
/// on a busy machine, Podman reports `stopped`, which the client does not know, so that it would
/// reject the whole answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Summary {
    id: Option<String>,
    labels: Option<HashMap<String, String>>,
}

/// The used fields of an engine's information.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct EngineInfo {
    runtimes: HashMap<String, IgnoredAny>,
    default_runtime: String,
    security_options: Vec<String>,
    memory_limit: Option<bool>,
}

/// Advice on a socket at which nothing listens.
const NO_SOCKET: &str = "is the engine running, and is this its socket? compose.yaml mounts ENGINE_SOCKET there: for a \
rootless engine set it to `$XDG_RUNTIME_DIR/docker.sock` or `$XDG_RUNTIME_DIR/podman/podman.sock`";

/// Advice on a folder in the socket's place. Docker makes one where a mount's source is missing.
const NO_SOCKET_BUT_A_FOLDER: &str = "it is a folder, which Docker makes where ENGINE_SOCKET (compose.yaml) names no file: set it to the engine's \
socket, such as `$XDG_RUNTIME_DIR/docker.sock` for rootless Docker, and remove the empty folder";

/// Advice on a socket that may not be opened.
const FORBIDDEN: &str = "this user may not open it; with userns-remap, the launcher's root is not the engine's: see \
userns-remap in docs/operating.md";

/// Docker's default runtime, unless its operator chose another.
const RUNC: &str = "runc";

/// The used field of an image.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Found {
    id: String,
}

impl Engine for BollardEngine {
    async fn identify(&self) -> Result<Identity, EngineError> {
        self.connect().await
    }

    async fn image_id(&self, image: &str) -> Result<Option<String>, EngineError> {
        let version = Some(self.connected("image")?.version);
        let path = format!("/images/{image}/json");
        let answer = self.told("image", version, &path).await;
        match answer {
            Ok(Found { id }) => image_id(id).map(Some),
            Err(EngineError::Refused { source, .. }) if says_not_found(source.as_ref()) => {
                tracing::debug!(image, answer = %source, "the engine has no such image");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn volume_present(&self, volume: &str) -> Result<bool, EngineError> {
        let options = bollard::query_parameters::ListVolumesOptionsBuilder::default()
            .filters(&HashMap::from([("name", vec![volume])]))
            .build();
        let list = self
            .connected("volumes")?
            .docker
            .list_volumes(Some(options))
            .await
            .map_err(|error| named("volumes", error))?;
        // The filter also matches parts of names.
        Ok(list
            .volumes
            .unwrap_or_default()
            .iter()
            .any(|found| found.name == volume))
    }

    async fn info(&self) -> Result<Info, EngineError> {
        let connected = self.connected("info")?;
        let told: EngineInfo = self.told("info", Some(connected.version), "/info").await?;
        Ok(Info {
            adds_crun: match connected.kind {
                EngineKind::Docker => {
                    told.default_runtime == RUNC && told.runtimes.contains_key(CRUN)
                }
                // Podman lists the runtimes that it knows, installed or not.
                EngineKind::Podman => false,
            },
            is_rootless: told
                .security_options
                .iter()
                .any(|option| option == "name=rootless"),
            lacks_memory_group: told.memory_limit == Some(false),
        })
    }

    async fn tag(&self, id: &str, name: &str) -> Result<(), EngineError> {
        let (repository, tag) = name.rsplit_once(':').unwrap_or((name, "latest"));
        let options = TagImageOptionsBuilder::default()
            .repo(repository)
            .tag(tag)
            .build();
        self.connected("tag")?
            .docker
            .tag_image(id, Some(options))
            .await
            .map_err(|error| named("tag", error))
    }

    async fn create(&self, spec: &Spec) -> Result<Created, EngineError> {
        let connected = self.connected("create")?;
        let body = create_body(spec, connected.kind);
        connected
            .docker
            .create_container(None::<CreateContainerOptions>, body)
            .await
            .map_err(|error| named("create", error))
            .and_then(|created| {
                Ok(Created {
                    id: container_id(created.id)?,
                    warnings: created.warnings,
                })
            })
    }

    async fn attach(&self, id: &ContainerId) -> Result<Output, EngineError> {
        // Our own parser: the client's buffers a whole frame, however long the frame claims to be.
        let version = self.connected("attach")?.version;
        attach(&self.socket, version, id)
            .await
            .map_err(|refusal| refused("attach", refusal))
    }

    async fn start(&self, id: &ContainerId) -> Result<(), EngineError> {
        self.connected("start")?
            .docker
            .start_container(&id.0, None::<StartContainerOptions>)
            .await
            .map_err(|error| named("start", error))
    }

    async fn wait(&self, id: &ContainerId) -> Result<i64, EngineError> {
        // `not-running`, called after the start, can't miss an end. Podman's `next-exit` sees only
        // the events after some moment.
        let options = WaitContainerOptionsBuilder::default()
            .condition("not-running")
            .build();
        let connected = self.connected("wait")?;
        let mut answers = Box::pin(connected.docker.wait_container(&id.0, Some(options)));
        exit_code(answers.next().await)
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
            // A refusal is fine if the container is gone. The two engines use different codes for
            // that, so this looks it up.
            Err(error @ EngineError::Refused { .. }) => {
                let label = crate::container::spec::LABEL_CHECK.to_owned();
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
        let version = Some(self.connected("list")?.version);
        let filters = serde_json::json!({ "label": labels }).to_string();
        let path = format!("/containers/json?all=true&filters={}", encoded(&filters));
        let summaries: Vec<Summary> = self.told("list", version, &path).await?;
        Ok(summaries.into_iter().filter_map(listed).collect())
    }
}

fn refused(call: &'static str, refusal: Refusal) -> EngineError {
    match refusal {
        Refusal::Client(error) => named(call, error),
        Refusal::Answer { .. } => EngineError::Refused {
            call,
            source: Box::new(refusal),
        },
    }
}

/// The newest API version that both sides support.
fn spoken(told: &SystemVersion) -> Result<ClientVersion, EngineError> {
    let text = told.api_version.as_deref().unwrap_or_default();
    let newest = api_version(text).ok_or_else(|| EngineError::Garbled {
        call: "version",
        source: format!("the engine reports an invalid API version: {text:?}").into(),
    })?;
    let ours = *API_DEFAULT_VERSION;
    let oldest = told.min_api_version.as_deref().and_then(api_version);
    match oldest {
        Some(oldest) if oldest > ours => Err(EngineError::Refused {
            call: "version",
            source: format!(
                "it takes versions {oldest} to {newest} of its API, and this launcher speaks {ours} at most: update Fedicensus"
            )
            .into(),
        }),
        Some(_) | None => Ok(if newest < ours { newest } else { ours }),
    }
}

/// A client that opens a connection for each call.
fn client(socket: &Path, version: ClientVersion) -> Result<Docker, Error> {
    let socket: Arc<Path> = Arc::from(socket);
    let transport = move |request: BollardRequest| {
        let socket = Arc::clone(&socket);
        async move {
            let allowance = Allowance::new(answer_bytes_max(request.uri().path()));
            send(&socket, Some(version), request, allowance).await
        }
    };
    let address = Some("http://engine");
    Docker::connect_with_custom_transport(transport, address, CLIENT_TIMEOUT_S, API_DEFAULT_VERSION)
}

/// Whether an engine refused because the image does not exist. This is the only status code in use,
/// for the only call on which both engines agree: no other engine failure may send an operator
/// looking for an image.
fn says_not_found(refusal: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    matches!(
        refusal.downcast_ref(),
        Some(Refusal::Answer { status, .. }) if status.as_u16() == 404
    )
}

/// An image's id, which becomes part of a path and of the create call.
fn image_id(text: String) -> Result<String, EngineError> {
    let of_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b':';
    if !text.is_empty() && text.bytes().all(of_id) {
        return Ok(text);
    }
    Err(EngineError::Garbled {
        call: "image",
        source: "the engine returned an invalid image id".into(),
    })
}

/// A container's id, which becomes part of a path in later calls, including the one that removes.
fn container_id(text: String) -> Result<ContainerId, EngineError> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(ContainerId(text));
    }
    Err(EngineError::Garbled {
        call: "create",
        source: "the engine returned an invalid container id".into(),
    })
}

fn listed(summary: Summary) -> Option<Listed> {
    Some(Listed {
        id: container_id(summary.id?).ok()?,
        labels: summary.labels.unwrap_or_default(),
    })
}

fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

fn exit_code(
    answer: Option<Result<bollard::models::ContainerWaitResponse, Error>>,
) -> Result<i64, EngineError> {
    let (code, error) = match answer {
        Some(Ok(response)) => {
            let error = response.error.and_then(|error| error.message);
            (response.status_code, error.unwrap_or_default())
        }
        // The client returns every exit code except 0 as an error.
        Some(Err(Error::DockerContainerWaitError { code, error })) => (code, error),
        Some(Err(error)) => return Err(named("wait", error)),
        None => {
            return Err(EngineError::Down {
                call: "wait",
                source: "the connection ended without an answer".into(),
            });
        }
    };
    if !error.is_empty() {
        // The engine lost track of the container, so the exit code in this answer is invalid.
        return Err(EngineError::Refused {
            call: "wait",
            source: error.into(),
        });
    }
    if code < 0 {
        // Podman answers this while it is shutting down.
        return Err(EngineError::Garbled {
            call: "wait",
            source: format!("exit code {code}").into(),
        });
    }
    Ok(code)
}

/// Classifies a client's error by what we can do about it.
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
    let garbled = if let Error::HyperResponseError { err } = &error {
        err.is_parse() || is_too_long(err)
    } else if let Error::IOError { err } = &error {
        is_too_long(err)
    } else {
        false
    };
    let source = Box::new(error);
    if garbled {
        EngineError::Garbled { call, source }
    } else if down {
        EngineError::Down { call, source }
    } else if refused {
        EngineError::Refused { call, source }
    } else {
        EngineError::Garbled { call, source }
    }
}

#[cfg(test)]
mod tests;
