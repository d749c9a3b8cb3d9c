//! The egress of one check: a directory with a socket that leads to one host at one address.
//!
//! It takes a host, its pinned target and the connection already dialled. It provides a socket for
//! one container, and an [`Account`] at the end. It drops connections whose ClientHello does not
//! name the host, and all connections once a budget is used up. Dropping the [`Egress`] always
//! removes its directory.

pub(crate) mod directory;
pub(crate) mod error;
mod relay;

use std::fs::File;
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use protocol::{CheckId, CheckOrder, Host, limits};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use self::relay::{Broken, Ledger, relay};
use crate::net::client_hello;
use crate::state::Shared;
use crate::wire::control::{Account, Budget, FailedSide};

use self::directory::Directory;
use self::error::EgressError;

/// Interval between two checks of the pinned address's route.
const ROUTE_PERIOD: Duration = Duration::from_secs(1);

/// Largest file of additional root certificates: about a hundred certificates.
const EXTRA_CA_BYTES_MAX: u64 = 256 * 1024;

/// An open way out. Dropping it closes it.
#[derive(Debug)]
pub(crate) struct Egress {
    ledger: Arc<Ledger>,
    shared: Arc<Shared>,
    pinned: SocketAddr,
    end: CancellationToken,
    task: Option<JoinHandle<()>>,
    _directory: Directory,
}

/// The parameters of an egress.
#[derive(Debug)]
pub(crate) struct Opening<'a> {
    pub(crate) check: &'a CheckId,
    pub(crate) host: &'a Host,
    pub(crate) order: &'a CheckOrder,
    pub(crate) pinned: SocketAddr,
    pub(crate) dialled: TcpStream,
}

impl Egress {
    /// Creates the directory and starts to accept the checker's connections.
    pub(crate) fn open(shared: &Arc<Shared>, opening: Opening<'_>) -> Result<Self, EgressError> {
        let settings = &shared.settings;
        let directory = shared.egresses.make(opening.check)?;
        let order = serde_json::to_vec(opening.order).map_err(EgressError::Order)?;
        directory.write(limits::ORDER_FILE, &order)?;
        if let Some(path) = &settings.extra_ca {
            let roots = read_extra_ca(path).map_err(|source| EgressError::ExtraCa {
                path: path.clone(),
                source,
            })?;
            directory.write(limits::EXTRA_CA_FILE, &roots)?;
        }
        let listener = directory.listen(limits::EGRESS_SOCKET)?;
        let ledger = Arc::new(Ledger::new(settings.budget));
        let end = CancellationToken::new();
        let destination = Arc::new(Destination {
            host: opening.host.clone(),
            pinned: opening.pinned,
            dialled: Mutex::new(Some(opening.dialled)),
            ledger: Arc::clone(&ledger),
            shared: Arc::clone(shared),
        });
        let task = tokio::spawn(accept(listener, destination, end.clone()));
        Ok(Self {
            ledger,
            shared: Arc::clone(shared),
            pinned: opening.pinned,
            end,
            task: Some(task),
            _directory: directory,
        })
    }

    /// The address to which the checker's connections lead.
    pub(crate) fn pinned(&self) -> IpAddr {
        self.pinned.ip()
    }

    /// Ends all connections, removes the directory and returns the account.
    pub(crate) async fn close(mut self) -> Account {
        self.end.cancel();
        if let Some(task) = self.task.take()
            && let Err(error) = task.await
        {
            tracing::error!(%error, "an egress socket closed unexpectedly");
            self.ledger.failed(FailedSide::Gateway);
        }
        if !self.shared.routes.reaches(self.pinned.ip()) {
            self.ledger.was_down();
        }
        self.ledger.account()
    }
}

impl Drop for Egress {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

struct Destination {
    host: Host,
    pinned: SocketAddr,
    dialled: Mutex<Option<TcpStream>>,
    ledger: Arc<Ledger>,
    shared: Arc<Shared>,
}

/// Accepts connections until the budget of connections or time is used up or the check is over.
/// Then it drops them all.
async fn accept(listener: UnixListener, destination: Arc<Destination>, end: CancellationToken) {
    let budget = destination.shared.settings.budget;
    let mut deadline = from_now(budget.unused_max);
    let mut listener = Some(listener);
    let mut connections = JoinSet::new();
    let mut accepted: u32 = 0;
    let mut route_period = tokio::time::interval(ROUTE_PERIOD);
    route_period.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        let next = async {
            match &listener {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = end.cancelled() => return,
            () = tokio::time::sleep_until(deadline) => {
                destination.ledger.hit(Budget::Time);
                return;
            }
            _ = route_period.tick() => {
                if !destination.shared.routes.reaches(destination.pinned.ip()) {
                    destination.ledger.was_down();
                }
            }
            Some(ended) = connections.join_next() => {
                // The bytes are used up, for the other connections as well.
                if matches!(ended, Ok(Err(Broken::OverBudget))) {
                    return;
                }
            }
            incoming = next => match incoming {
                Ok((checker, _)) if accepted < budget.connections_max => {
                    if accepted == 0 {
                        deadline = from_now(budget.time_max);
                    }
                    accepted = accepted.saturating_add(1);
                    connections.spawn(carry(Arc::clone(&destination), checker));
                }
                Ok(_) => {
                    destination.ledger.hit(Budget::Connections);
                    listener = None;
                }
                Err(error) => {
                    tracing::error!(host = %destination.host, %error, "the egress socket can't accept");
                    destination.ledger.failed(FailedSide::Gateway);
                    listener = None;
                }
            },
        }
    }
}

fn from_now(duration: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(duration).unwrap_or(now)
}

/// Handles one connection from start to end.
async fn carry(destination: Arc<Destination>, mut checker: UnixStream) -> Result<(), Broken> {
    let hello = match client_hello::read(&mut checker, &destination.host).await {
        Ok(hello) => hello,
        Err(error) => {
            if error.is_refusal() {
                tracing::warn!(host = %destination.host, %error, "a connection of a checker was refused");
                destination.ledger.refused_hello();
            }
            return Ok(());
        }
    };
    let Some(mut host) = destination.connection().await else {
        destination.ledger.failed(FailedSide::Host);
        return Err(Broken::By(FailedSide::Host));
    };
    destination.ledger.connected();
    relay(&mut checker, &mut host, &hello, &destination.ledger).await
}

impl Destination {
    /// The connection from `open` if it is still up, otherwise a new one to the same pinned
    /// address.
    async fn connection(&self) -> Option<TcpStream> {
        let dialled = self
            .dialled
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
        if let Some(stream) = dialled
            && stands(&stream).await
        {
            return Some(stream);
        }
        let dialler = self.shared.dialler();
        dialler.dial_again(self.pinned).await.ok()
    }
}

/// Whether the host has not closed the connection. Unexpected data from the host stays to be read.
async fn stands(stream: &TcpStream) -> bool {
    let mut byte = [0_u8; 1];
    tokio::select! {
        biased;
        peeked = stream.peek(&mut byte) => matches!(peeked, Ok(1..)),
        () = std::future::ready(()) => true,
    }
}

/// Read at each open, because a lab may recreate its CA at any time.
fn read_extra_ca(path: &Path) -> io::Result<Vec<u8>> {
    let mut roots = Vec::new();
    let file = File::open(path)?;
    let read = file
        .take(EXTRA_CA_BYTES_MAX.saturating_add(1))
        .read_to_end(&mut roots)?;
    if u64::try_from(read).unwrap_or(u64::MAX) > EXTRA_CA_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(roots)
}
