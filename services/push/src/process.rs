//! The service as one process, or a node of it: its own database, keys that it makes at the first
//! start, and a socket to which a web server in front forwards requests.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use local_socket::BindError;
use ring::rand::{SecureRandom as _, SystemRandom};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::endpoint::fernet::Keys;
use crate::notify::seal::{SealError, Sender};
use crate::remote::wire::Daemon;
use crate::remote::{PushServices, Remote};
use crate::serve::{self, Bounds, Census, LOOK_EVERY, Now, Routes, Service};
use crate::session::Rules;
use crate::storage::sqlite::{Limits, OpenError, Sqlite};
use crate::storage::{Removed, StorageError};

/// Names of the keys in the database. Endpoint keys are separated by commas, and the first one
/// encrypts.
const ENDPOINT_KEYS: &str = "endpoint_keys";
const REGISTRATION_KEY: &str = "registration_key";
const SIGNING_KEY: &str = "signing_key";

/// Most endpoint keys. A foreign token is tried with every key. A further key replaces the oldest,
/// whose endpoints end.
pub const ENDPOINT_KEYS_MAX: usize = 8;

/// Expired messages and users take room until they are removed.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// What a process does. All over one database are on one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    /// The whole service, alone over its database.
    Push,
    /// Holds clients' connections.
    Connect,
    /// Takes applications' messages, and notifies of new lists.
    Endpoint,
}

impl Node {
    /// Its name in users' records, and that of the socket at which others ask it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Connect => "connect",
            Self::Endpoint => "endpoint",
        }
    }

    /// What only one process over a database serves: its users' connections, and its endpoints.
    pub fn parts(self, database: &Path) -> Vec<PathBuf> {
        let endpoints = database.with_extension("db.endpoints");
        match self {
            Self::Push => vec![database.to_owned(), endpoints],
            Self::Connect => vec![database.to_owned()],
            Self::Endpoint => vec![endpoints],
        }
    }

    fn routes(self) -> Routes {
        match self {
            Self::Push => Routes::All,
            Self::Connect => Routes::Clients,
            Self::Endpoint => Routes::Applications,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the web server in front connects.
    pub socket: PathBuf,
    /// Where it connects for applications, if there are two nodes.
    pub endpoint_socket: PathBuf,
    /// Folder of the sockets at which nodes ask each other.
    pub nodes: PathBuf,
    pub database: PathBuf,
    /// Origin of all endpoints, such as `https://push.example`. Senders sign it.
    pub origin: String,
    pub rules: Rules,
    pub bounds: Bounds,
    /// Operator's contact for other push services: a `mailto:` or `https:` URL.
    pub contact: String,
    /// The census's published folder of changes. Nobody is notified while it is missing.
    pub changes: PathBuf,
    /// Other push services to which notifications may go.
    pub services: PushServices,
    /// The daemon's socket, which accepts messages to other push services.
    pub daemon: PathBuf,
}

impl Settings {
    /// The socket of a node for the web server in front.
    pub fn socket_of(&self, node: Node) -> &Path {
        match node {
            Node::Push | Node::Connect => &self.socket,
            Node::Endpoint => &self.endpoint_socket,
        }
    }
}

#[derive(Debug, Error)]
pub enum ProcessError {
    #[error("can't listen: {0}")]
    Listen(#[from] BindError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("the key `{0}` in the database is damaged: restore a backup")]
    Key(&'static str),
    #[error("no key can be made: the system gives no random numbers")]
    NoRandomness,
    #[error("the database can't be used: {0}")]
    Database(std::io::Error),
}

/// Serves until `shutdown`. Then disconnects all clients and stores what they have not
/// acknowledged.
pub async fn run(
    settings: Settings,
    node: Node,
    now: Now,
    shutdown: CancellationToken,
) -> Result<(), ProcessError> {
    // First of all: while another process listens here, recorded connections are its own.
    let socket = settings.socket_of(node);
    let listener = serve::bind(socket)?;
    let storage = Arc::new(Sqlite::open(&settings.database, Limits::ORDINARY)?);
    storage.hold_reserve();
    if node != Node::Endpoint {
        // A killed process's connections are gone.
        storage.forget_connections(node.name(), now())?;
    }
    let service = service(&settings, node, &storage, now)?;
    let asked = match node {
        Node::Push | Node::Endpoint => None,
        Node::Connect => Some(serve::bind(&service.node_socket())?),
    };
    let router = serve::some(Arc::clone(&service), node.routes());
    let (socket, database) = (socket.display(), settings.database.display());
    tracing::info!(%socket, %database, origin = settings.origin, "the push service runs");
    let connections = async {
        if node == Node::Endpoint {
            return;
        }
        serve::stay_known(&service, &shutdown).await;
    };
    let asked = async {
        if let Some(listener) = asked {
            let router = serve::internal(Arc::clone(&service));
            serve::listen(listener, router, &shutdown).await;
        }
    };
    let news = async {
        if node == Node::Connect {
            return serve::follow(&service, LOOK_EVERY, &shutdown).await;
        }
        tokio::join!(
            serve::tell(Arc::clone(&service), LOOK_EVERY, shutdown.clone()),
            serve::sweep(&service, SWEEP_EVERY, &shutdown),
        );
    };
    let public = serve::listen(listener, router, &shutdown);
    tokio::join!(public, asked, connections, news);
    service.dismiss().await;
    Ok(())
}

fn service(
    settings: &Settings,
    node: Node,
    storage: &Arc<Sqlite>,
    now: Now,
) -> Result<Arc<Service>, ProcessError> {
    let keys = storage.secret(ENDPOINT_KEYS, new_endpoint_key()?.as_bytes())?;
    let keys = text(ENDPOINT_KEYS, keys)?;
    let registration = storage.secret(REGISTRATION_KEY, new_endpoint_key()?.as_bytes())?;
    let signing = storage.secret(SIGNING_KEY, &new_signing_key()?)?;
    let sender = Sender::new(&signing, settings.contact.clone());
    let census = Census {
        sender: sender.map_err(|_damaged| ProcessError::Key(SIGNING_KEY))?,
        changes: settings.changes.clone(),
        remote: Remote {
            services: settings.services.clone(),
            daemon: Daemon::new(settings.daemon.clone()),
        },
    };
    let service = serve::Settings {
        origin: settings.origin.clone(),
        nodes: settings.nodes.clone(),
        node: node.name().to_owned(),
        keys: Keys::parse(&keys).map_err(|_damaged| ProcessError::Key(ENDPOINT_KEYS))?,
        registration_keys: vec![text(REGISTRATION_KEY, registration)?],
        rules: settings.rules,
        bounds: settings.bounds,
    };
    let service = Service::new(service, Arc::clone(storage), Some(census), now);
    Ok(Arc::new(service.map_err(ProcessError::Database)?))
}

/// Makes a new key for endpoints, which the process uses from its next start. Returns the number of
/// keys, up to [`ENDPOINT_KEYS_MAX`].
pub fn rotate(database: &Path) -> Result<usize, ProcessError> {
    let storage = Sqlite::open_existing(database, Limits::ORDINARY)?;
    let former = text(ENDPOINT_KEYS, storage.secret(ENDPOINT_KEYS, b"")?)?;
    let mut keys = vec![new_endpoint_key()?];
    let former = former.split(',').filter(|key| !key.is_empty());
    keys.extend(former.map(str::to_owned));
    keys.truncate(ENDPOINT_KEYS_MAX);
    storage.replace_secret(ENDPOINT_KEYS, keys.join(",").as_bytes())?;
    Ok(keys.len())
}

/// Makes all keys again after a theft, and removes all users and subscriptions, whose ids and keys
/// the thief knows. No process may serve the database: it would keep the former keys.
pub fn renew(database: &Path) -> Result<Removed, ProcessError> {
    let storage = Sqlite::open_existing(database, Limits::ORDINARY)?;
    Ok(storage.renew(&[
        (ENDPOINT_KEYS, new_endpoint_key()?.as_bytes()),
        (REGISTRATION_KEY, new_endpoint_key()?.as_bytes()),
        (SIGNING_KEY, &new_signing_key()?),
    ])?)
}

fn text(name: &'static str, secret: Vec<u8>) -> Result<String, ProcessError> {
    String::from_utf8(secret).map_err(|_damaged| ProcessError::Key(name))
}

fn new_endpoint_key() -> Result<String, ProcessError> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_none| ProcessError::NoRandomness)?;
    Ok(Keys::text_of(&bytes))
}

fn new_signing_key() -> Result<Vec<u8>, ProcessError> {
    Sender::new_key().map_err(|_none: SealError| ProcessError::NoRandomness)
}
