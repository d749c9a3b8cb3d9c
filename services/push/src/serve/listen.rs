//! Connections: one request each, which may become a WebSocket.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use local_socket::http::bound_send_buffer;
use local_socket::{BindError, Limits, Listener};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_util::io::InspectReader;
use tokio_util::sync::CancellationToken;

/// Bytes of a request's head: endpoints and signatures take some kilobytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;

const HEADERS_MAX: usize = 64;

/// A web server in front has the whole request within this time.
const HEAD_TIME_MAX: Duration = Duration::from_secs(5);

/// From the connection to the end of the answer, or to the upgrade.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);

/// Requests at once. Connections of clients are counted separately.
const CONNECTIONS_MAX: usize = 4096;

const LIMITS: Limits = Limits {
    connections_max: CONNECTIONS_MAX,
    accept_pause: Duration::from_millis(200),
};

/// Mode of the socket: the web server in front is another user, and only it shares the volume.
const SOCKET_MODE: u32 = 0o666;

/// How many bytes a connection has read, as a request's extension.
#[derive(Debug, Clone, Default)]
pub(super) struct BytesRead(Arc<AtomicU64>);

impl BytesRead {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Creates the Unix socket. Clients wait there until [`listen`] serves them.
pub fn bind(path: &Path) -> Result<Listener, BindError> {
    local_socket::bind(path, SOCKET_MODE)
}

/// Serves at a Unix socket until `shutdown`, and then removes it.
pub async fn listen(listener: Listener, router: Router, shutdown: &CancellationToken) {
    let path = listener.path().to_owned();
    let handle = |stream: UnixStream| {
        bound_send_buffer(&stream);
        converse(stream, router.clone())
    };
    local_socket::serve(listener, LIMITS, shutdown, handle).await;
    if let Err(error) = std::fs::remove_file(&path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(socket = %path.display(), %error, "the socket could not be removed");
    }
}

/// Answers one request. A WebSocket continues in a separate task.
pub async fn converse<S>(stream: S, router: Router)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let read = BytesRead::default();
    let counter = Arc::clone(&read.0);
    let counted = InspectReader::new(stream, move |bytes: &[u8]| {
        let bytes = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        counter.fetch_add(bytes, Ordering::Relaxed);
    });
    let router = TowerToHyperService::new(router);
    let answer = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(read.clone());
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(counted), answer)
        .with_upgrades();
    match timeout(REQUEST_TIME_MAX, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection broke"),
        Err(_elapsed) => tracing::debug!("a connection took too long"),
    }
}
