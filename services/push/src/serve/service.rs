//! Shared state of all connections and requests.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::broadcasts::{Broadcasts, Versions};
use crate::endpoint::address::BadKey;
use crate::endpoint::fernet::Keys;
use crate::endpoint::{Address, Version};
use crate::ids::{ChannelId, Uaid};
use crate::session::Rules;
use crate::storage::Condition;
use crate::storage::sqlite::Sqlite;

use super::census::{BROADCAST, Census};
use super::clients::Clients;
use super::clients::held::{Bounds, Held};
use super::clients::newcomers::Newcomers;
use super::clients::slots::Slots;
use super::meters::Meters;
use super::storage_thread::{StorageThread, Trial};

/// Most ended connections whose messages are stored at the same time.
const LEAVING_MAX: usize = 64;

/// Time at the end to close all connections and to store what they have not acknowledged. Engines
/// kill a process that takes much longer.
const DISMISS_TIME_MAX: Duration = Duration::from_secs(8);

/// Connections are closed at this interval, in [`DISMISS_TURNS`] turns of at least [`DISMISS_MIN`],
/// so that not all clients come back in the same moment.
const DISMISS_EVERY: Duration = Duration::from_millis(100);
const DISMISS_TURNS: usize = 60;
const DISMISS_MIN: usize = 20;

#[derive(Debug, Clone)]
pub struct Settings {
    /// The origin of all endpoints, such as `https://push.example`: senders sign it.
    pub origin: String,
    pub nodes: PathBuf,
    /// This node's name, and that of its socket.
    pub node: String,
    pub keys: Keys,
    /// Keys that sign the secrets of HTTP registrations. The first signs, all are accepted.
    pub registration_keys: Vec<String>,
    pub rules: Rules,
    pub bounds: Bounds,
}

impl Settings {
    /// The socket at which other nodes reach a node.
    pub(super) fn node_socket(&self, node: &str) -> PathBuf {
        self.nodes.join(format!("{node}.sock"))
    }
}

/// Reads the clock: milliseconds since 1970.
pub type Now = Arc<dyn Fn() -> i64 + Send + Sync>;

pub struct Service {
    pub(super) settings: Settings,
    pub(super) storage: StorageThread,
    /// The census whose subscribers are notified, if there is one.
    pub(super) census: Option<Census>,
    pub(super) clients: Clients,
    pub(super) newcomers: Newcomers,
    pub(super) held: Arc<Held>,
    pub(super) slots: Arc<Slots>,
    pub(super) leaving: Semaphore,
    /// Has a token for each client connection.
    pub(super) connected: TaskTracker,
    pub(super) meters: Arc<Meters>,
    pub(super) trial: Trial,
    broadcasts: RwLock<Arc<Broadcasts>>,
    random: SystemRandom,
    now: Now,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the system gives no random numbers")]
pub(super) struct NoRandomness;

impl Service {
    /// A service over a storage.
    pub fn new(
        settings: Settings,
        storage: Arc<Sqlite>,
        census: Option<Census>,
        now: Now,
    ) -> io::Result<Self> {
        // Known from the start: clients that connect before the first look would be refused, and
        // would not subscribe again.
        let mut broadcasts = Broadcasts::default();
        if census.is_some() {
            let last = storage.last_told().map_err(io::Error::other)?;
            broadcasts.replace([(BROADCAST.to_owned(), last.unwrap_or_default())].into());
        }
        let meters = Arc::new(Meters::default());
        Ok(Self {
            census,
            storage: StorageThread::start(storage, Arc::clone(&meters))?,
            clients: Clients::default(),
            held: Arc::new(Held::new(settings.bounds.held_bytes)),
            newcomers: Newcomers::default(),
            slots: Slots::new(settings.bounds.clients),
            leaving: Semaphore::new(LEAVING_MAX),
            connected: TaskTracker::new(),
            meters,
            trial: Trial::default(),
            settings,
            broadcasts: RwLock::new(Arc::new(broadcasts)),
            random: SystemRandom::new(),
            now,
        })
    }

    pub fn broadcast(&self, versions: Versions) {
        let mut broadcasts = self.broadcasts();
        Arc::make_mut(&mut broadcasts).replace(versions);
        *self
            .broadcasts
            .write()
            .unwrap_or_else(PoisonError::into_inner) = broadcasts;
    }

    /// Ends all connections, and stores what their clients have not acknowledged.
    pub async fn dismiss(&self) {
        self.connected.close();
        let at_once = (self.clients.count() / DISMISS_TURNS).max(DISMISS_MIN);
        let dismissed = async {
            while self.clients.dismiss(at_once) > 0 {
                tokio::time::sleep(DISMISS_EVERY).await;
            }
            self.connected.wait().await;
        };
        if timeout(DISMISS_TIME_MAX, dismissed).await.is_err() {
            let connections = self.connected.len();
            tracing::warn!(connections, "connections did not end in time");
        }
    }

    /// The storage's condition a moment ago; `None` if it could not be written.
    pub(super) async fn condition(&self) -> Option<Condition> {
        self.trial.condition(&self.storage, self.now_ms()).await
    }

    /// The socket at which other nodes reach this one.
    pub fn node_socket(&self) -> PathBuf {
        self.settings.node_socket(&self.settings.node)
    }

    pub fn connections(&self) -> usize {
        self.clients.count()
    }

    pub(super) fn broadcasts(&self) -> Arc<Broadcasts> {
        let broadcasts = self
            .broadcasts
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&broadcasts)
    }

    pub(super) fn endpoint(
        &self,
        uaid: Uaid,
        channel: ChannelId,
        key: Option<&str>,
    ) -> Result<String, BadKey> {
        let address = Address::new(uaid, channel, key)?;
        // Without random numbers there is no endpoint, and the error is the same.
        let iv = self.random().or(Err(BadKey))?;
        let Settings { origin, keys, .. } = &self.settings;
        Ok(address.url(origin, keys, self.fernet_now_s(), &iv))
    }

    /// Whether an endpoint is below this service's origin.
    pub(super) fn is_own(&self, endpoint: &str) -> bool {
        self.path(endpoint).is_some()
    }

    /// The user and the channel of an endpoint of this service; `None` if it is not one.
    pub(super) fn address(&self, endpoint: &str) -> Option<Address> {
        let (version, token) = self.path(endpoint)?.split_once('/')?;
        Address::read(Version::parse(version)?, token, &self.settings.keys)
    }

    /// The text in place of an address's endpoints in stored subscriptions. It is below the origin,
    /// so that another one ends them.
    pub(super) fn stored_endpoint(&self, address: Address) -> String {
        format!("{}/wpush/{}", self.settings.origin, address.name())
    }

    /// The address of a stored subscription; `None` if it is not of this service. Older files have
    /// endpoints themselves.
    pub(super) fn stored_address(&self, endpoint: &str) -> Option<Address> {
        Address::parse_name(self.path(endpoint)?).or_else(|| self.address(endpoint))
    }

    fn path<'a>(&self, endpoint: &'a str) -> Option<&'a str> {
        endpoint
            .strip_prefix(self.settings.origin.as_str())?
            .strip_prefix("/wpush/")
    }

    pub(super) fn new_uaid(&self) -> Result<Uaid, NoRandomness> {
        Ok(Uaid::from_random(self.random()?))
    }

    pub(super) fn now_ms(&self) -> i64 {
        (self.now)()
    }

    /// Now, in seconds since 1970.
    pub(super) fn now_s(&self) -> i64 {
        self.now_ms().div_euclid(1000)
    }

    pub(super) fn fernet_now_s(&self) -> u64 {
        u64::try_from(self.now_s()).unwrap_or(0)
    }

    pub(super) fn random<const BYTES: usize>(&self) -> Result<[u8; BYTES], NoRandomness> {
        let mut bytes = [0; BYTES];
        self.random.fill(&mut bytes).or(Err(NoRandomness))?;
        Ok(bytes)
    }
}
