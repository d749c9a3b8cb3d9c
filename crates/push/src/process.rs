//! The service as one process: its own database, keys that it makes at the first start, and a
//! socket to which a web server in front forwards requests.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use local_socket::BindError;
use ring::rand::{SecureRandom as _, SystemRandom};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::elsewhere::wire::Daemon;
use crate::elsewhere::{Elsewhere, PushServices};
use crate::endpoint::fernet::Keys;
use crate::news::seal::{SealError, Sender};
use crate::serve::{self, Bounds, Census, LOOK_EVERY, Now, Service};
use crate::session::Rules;
use crate::storage::sqlite::{Limits, OpenError, Sqlite};
use crate::storage::{Storage, StorageError};

/// Names of the keys in the database. Endpoint keys are separated by commas, and the first one
/// encrypts.
const ENDPOINT_KEYS: &str = "endpoint_keys";
const REGISTRATION_KEY: &str = "registration_key";
const SIGNING_KEY: &str = "signing_key";

/// Most endpoint keys. A foreign token is tried with every key.
const ENDPOINT_KEYS_MAX: usize = 8;

/// Expired messages and users take room until they are removed.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// The name of a single node in users' records. Nothing connects to it.
const ONLY_NODE: &str = "http://localhost";

#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the web server in front connects.
    pub socket: PathBuf,
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

/// The process can't do its work.
#[derive(Debug, Error)]
pub enum ProcessError {
    #[error("can't listen: {0}")]
    Listen(#[from] BindError),
    /// The database can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The database can't be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A key in the database is not one.
    #[error("the key `{0}` in the database is damaged: restore a backup")]
    Key(&'static str),
    /// No key can be made.
    #[error("no key can be made: the system gives no random numbers")]
    NoRandomness,
    /// There is no thread for the database, or it can't be read.
    #[error("the database can't be used: {0}")]
    Database(std::io::Error),
    /// There are too many endpoint keys.
    #[error(
        "there are {ENDPOINT_KEYS_MAX} endpoint keys already: `fedicensus key rotate --push --stolen` discards the old ones, and ends all endpoints made with them"
    )]
    ManyKeys,
}

/// Serves until `shutdown`. Then disconnects all clients and stores what they have not
/// acknowledged.
pub async fn run(
    settings: Settings,
    now: Now,
    shutdown: CancellationToken,
) -> Result<(), ProcessError> {
    let storage = Arc::new(Sqlite::open(&settings.database, Limits::ORDINARY)?);
    storage.hold_reserve();
    // A killed process's connections are gone.
    storage.forget_connections(now())?;
    let service = service(&settings, &storage, now)?;
    let router = serve::public(Arc::clone(&service));
    let (socket, database) = (settings.socket.display(), settings.database.display());
    tracing::info!(%socket, %database, origin = settings.origin, "the push service runs");
    let keeping = async {
        tokio::join!(
            serve::tell(Arc::clone(&service), LOOK_EVERY, shutdown.clone()),
            serve::sweep(&service, SWEEP_EVERY, &shutdown),
        );
    };
    let (listened, ()) = tokio::join!(
        async {
            let listened = serve::listen(&settings.socket, router, &shutdown).await;
            // No data is written for a service that can't listen.
            shutdown.cancel();
            listened
        },
        keeping,
    );
    service.dismiss().await;
    Ok(listened?)
}

fn service(
    settings: &Settings,
    storage: &Arc<Sqlite>,
    now: Now,
) -> Result<Arc<Service>, ProcessError> {
    let keys = storage.secret(ENDPOINT_KEYS, new_endpoint_key()?.as_bytes())?;
    let keys = text(ENDPOINT_KEYS, keys)?;
    let registration = storage.secret(REGISTRATION_KEY, new_endpoint_key()?.as_bytes())?;
    let signing = storage.secret(SIGNING_KEY, &new_signing_key()?)?;
    let sender = Sender::new(&signing, settings.contact.clone());
    let census = Census {
        storage: Arc::clone(storage),
        sender: sender.map_err(|_damaged| ProcessError::Key(SIGNING_KEY))?,
        changes: settings.changes.clone(),
        elsewhere: Elsewhere {
            services: settings.services.clone(),
            daemon: Daemon::new(settings.daemon.clone()),
        },
    };
    let service = serve::Settings {
        origin: settings.origin.clone(),
        node: ONLY_NODE.to_owned(),
        keys: Keys::parse(&keys).map_err(|_damaged| ProcessError::Key(ENDPOINT_KEYS))?,
        registration_keys: vec![text(REGISTRATION_KEY, registration)?],
        rules: settings.rules,
        bounds: settings.bounds,
    };
    let storage: Arc<dyn Storage> = storage.clone();
    let service = Service::new(service, storage, Some(census), now);
    Ok(Arc::new(service.map_err(ProcessError::Database)?))
}

/// What happens to the former endpoint keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldKeys {
    Keep,
    /// Their endpoints are gone: clients register again.
    Forget,
}

/// Makes a new key for endpoints, which the process uses from its next start. Returns the number of
/// keys.
///
/// # Errors
/// There is no database, it can't be written, or it has as many keys as are allowed.
pub fn rotate(database: &Path, old: OldKeys) -> Result<usize, ProcessError> {
    let storage = Sqlite::open_existing(database, Limits::ORDINARY)?;
    let mut keys = vec![new_endpoint_key()?];
    if old == OldKeys::Keep {
        let kept = text(ENDPOINT_KEYS, storage.secret(ENDPOINT_KEYS, b"")?)?;
        let kept = kept.split(',').filter(|key| !key.is_empty());
        keys.extend(kept.map(str::to_owned));
    }
    if keys.len() > ENDPOINT_KEYS_MAX {
        return Err(ProcessError::ManyKeys);
    }
    storage.replace_secret(ENDPOINT_KEYS, keys.join(",").as_bytes())?;
    Ok(keys.len())
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
