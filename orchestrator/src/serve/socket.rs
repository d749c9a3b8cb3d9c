//! Shared by the daemon's sockets.

use std::path::Path;
use std::time::Duration;

use local_socket::{Limits, Listener};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

/// Mode of the sockets that only the census's user may use.
pub(crate) const OWN_USER: u32 = 0o600;

/// How often to check that a socket still exists.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Pause after a failed accept, whose usual cause is a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// A socket of the daemon, and what answers at it.
#[derive(Debug)]
pub struct Server<T> {
    listener: Listener,
    talker: T,
}

/// Answers the connections of a socket. Clones share what they answer from.
pub trait Talk: Clone + Send + Sync + 'static {
    /// Connections at once. Further ones wait.
    const CONNECTIONS_MAX: usize;

    const MODE: u32 = OWN_USER;

    fn talk(self, stream: UnixStream) -> impl Future<Output = anyhow::Result<()>> + Send;
}

impl<T: Talk> Server<T> {
    pub fn open(path: &Path, talker: T) -> anyhow::Result<Self> {
        let listener = listen(path, T::MODE)?;
        Ok(Self { listener, talker })
    }

    /// Serves until `shutdown`. Never fails: it is a `Result` so that it can be joined with the
    /// loop.
    pub async fn serve(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let talk = move |stream| self.talker.clone().talk(stream);
        serve(self.listener, T::CONNECTIONS_MAX, talk, &shutdown).await;
        Ok(())
    }
}

/// Creates a socket with this mode, which is created again if someone removes it.
pub(crate) fn listen(path: &Path, mode: u32) -> anyhow::Result<Listener> {
    Ok(local_socket::bind(path, mode)?.remade_when_missing(LOOK_EVERY))
}

/// Serves a socket until `shutdown`: `talk` with each connection, at most `connections_max` at
/// once. Open conversations continue after that, so that a command gets its last answer.
pub(crate) async fn serve<Talking>(
    listener: Listener,
    connections_max: usize,
    talk: impl Fn(UnixStream) -> Talking,
    shutdown: &CancellationToken,
) where
    Talking: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let limits = Limits {
        connections_max,
        accept_pause: ACCEPT_PAUSE,
    };
    let handle = |stream| {
        let talking = talk(stream);
        let talked = tokio::spawn(async move {
            if let Err(error) = talking.await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
        async move {
            // A panic was reported where it happened.
            talked.await.ok();
        }
    };
    local_socket::serve(listener, limits, shutdown, handle).await;
}
