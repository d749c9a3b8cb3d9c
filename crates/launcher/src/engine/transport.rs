//! Opens one connection to the engine's socket per call, and bounds the answer (invariant I9).
//!
//! It counts the bytes of an answer while reading, and breaks the connection off at the first byte
//! over the bound. The HTTP client that builds the requests keeps a whole answer in memory and has
//! no bound. Without this one, a faulty engine, or a program in its place, could fill the
//! launcher's memory within the timeout of one call.

use std::fmt;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bollard::ClientVersion;
use bollard::errors::Error;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper::http::uri::InvalidUri;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use thiserror::Error as ThisError;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

/// Longest answer to a call about a single object, head and body. The longest known are under 10
/// KiB.
pub(crate) const ANSWER_BYTES_MAX: u64 = 1024 * 1024;

/// Longest answer that lists containers or volumes: over four thousand, at 1 to 4 KiB each.
pub(crate) const LIST_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Longest head of an answer. Both engines' heads are under 1 KiB.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Bytes of an error's text that are read. More would not be shown.
const REFUSAL_BYTES_MAX: usize = 4096;

/// Host header for a socket that has no host.
const HOST_OF_NONE: HeaderValue = HeaderValue::from_static("engine");

#[derive(Debug, ThisError)]
#[error("the answer is longer than {0} bytes")]
pub(crate) struct TooLong(u64);

/// The remaining bytes that an answer may have.
#[derive(Debug, Clone)]
pub(crate) struct Allowance {
    most: u64,
    left: Arc<AtomicU64>,
}

impl Allowance {
    pub(crate) fn new(most: u64) -> Self {
        Self {
            most,
            left: Arc::new(AtomicU64::new(most)),
        }
    }

    /// Removes the bound: from here on the answer is a stream, and its reader does not keep it.
    pub(crate) fn lift(&self) {
        self.left.store(u64::MAX, Ordering::Relaxed);
    }
}

/// The bound of the answer to a request for this path.
pub(crate) fn answer_bytes_max(path: &str) -> u64 {
    if path.ends_with("/containers/json") || path.ends_with("/volumes") {
        LIST_BYTES_MAX
    } else {
        ANSWER_BYTES_MAX
    }
}

/// A version of the API as the engines write it: `1.41`.
pub(crate) fn api_version(text: &str) -> Option<ClientVersion> {
    let (major, minor) = text.split_once('.')?;
    Some(ClientVersion {
        major_version: major.parse().ok()?,
        minor_version: minor.parse().ok()?,
    })
}

/// The target of a request in this version of the API, whichever version a client wrote before it.
fn versioned(target: &str, version: ClientVersion) -> String {
    let path = target
        .strip_prefix("/v")
        .and_then(|rest| rest.split_once('/'))
        .filter(|(written, _)| api_version(written).is_some())
        .map_or_else(|| target.trim_start_matches('/'), |(_written, path)| path);
    format!("/v{version}/{path}")
}

/// Sends a request over a new connection, which ends when the answer's body ends or is dropped.
/// Without a version it asks for the engine's versions.
pub(crate) async fn send<B>(
    socket: &Path,
    version: Option<ClientVersion>,
    mut request: Request<B>,
    allowance: Allowance,
) -> Result<Response<Incoming>, Error>
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let stream = UnixStream::connect(socket).await?;
    let metered = TokioIo::new(Metered { stream, allowance });
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(metered)
        .await?;
    // It ends with the answer: only sender and answer hold it.
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to the engine broke");
        }
    });
    if let Some(target) = request.uri().path_and_query().cloned() {
        *request.uri_mut() = match version {
            Some(version) => versioned(target.as_str(), version)
                .parse()
                .map_err(|error: InvalidUri| io::Error::other(error))?,
            None => Uri::from(target),
        };
    }
    request.headers_mut().insert(HOST, HOST_OF_NONE);
    Ok(sender.send_request(request).await?)
}

/// Why a call has no result.
#[derive(Debug)]
pub(crate) enum Refusal {
    Client(Error),
    /// The engine answered with an error.
    Answer {
        status: StatusCode,
        text: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(error) => error.fmt(f),
            Self::Answer { status, text } => {
                write!(f, "status {status}: {text}")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// The refusal in an answer without success: as much of its text as arrives.
pub(crate) async fn refusal(answer: Response<Incoming>) -> Refusal {
    let status = answer.status();
    let mut body = answer.into_body();
    let mut text = Vec::new();
    while text.len() < REFUSAL_BYTES_MAX {
        let Some(Ok(frame)) = next(&mut body).await else {
            break;
        };
        if let Some(bytes) = frame.data_ref() {
            text.extend_from_slice(bytes);
        }
    }
    text.truncate(REFUSAL_BYTES_MAX);
    Refusal::Answer {
        status,
        text: String::from_utf8_lossy(&text).into_owned(),
    }
}

/// The whole answer to a GET request for this path.
pub(crate) async fn get(
    socket: &Path,
    version: Option<ClientVersion>,
    path: &str,
) -> Result<Vec<u8>, Refusal> {
    let request = Request::get(path)
        .body(String::new())
        .map_err(|error| Refusal::Client(error.into()))?;
    let allowance = Allowance::new(answer_bytes_max(request.uri().path()));
    let answer = send(socket, version, request, allowance)
        .await
        .map_err(Refusal::Client)?;
    if !answer.status().is_success() {
        return Err(refusal(answer).await);
    }
    let mut body = answer.into_body();
    let mut whole = Vec::new();
    while let Some(frame) = next(&mut body).await {
        let frame = frame.map_err(|error| Refusal::Client(error.into()))?;
        if let Some(bytes) = frame.data_ref() {
            whole.extend_from_slice(bytes);
        }
    }
    Ok(whole)
}

async fn next(body: &mut Incoming) -> Option<Result<Frame<Bytes>, hyper::Error>> {
    std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
}

/// Whether a connection broke because its answer exceeded the bound.
pub(crate) fn is_too_long(error: &(dyn std::error::Error + 'static)) -> bool {
    // The reader's own error, or the HTTP client's error that contains it.
    [Some(error), error.source()]
        .into_iter()
        .flatten()
        .filter_map(|error| error.downcast_ref::<io::Error>()?.get_ref())
        .any(|inner| inner.is::<TooLong>())
}

/// A connection that counts its incoming bytes.
#[derive(Debug)]
struct Metered {
    stream: UnixStream,
    allowance: Allowance,
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = self.allowance.left.load(Ordering::Relaxed);
        if left == 0 {
            let error = TooLong(self.allowance.most);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().len().saturating_sub(before);
        let read = u64::try_from(read).unwrap_or(u64::MAX);
        let left = left.saturating_sub(read);
        self.allowance.left.store(left, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;
    use tokio::io::AsyncWriteExt as _;

    #[tokio::test]
    async fn an_answer_breaks_off_at_its_bound_and_a_stream_has_none() {
        for (lifted, expect) in [(false, true), (true, false)] {
            let (stream, mut far) = UnixStream::pair().unwrap();
            let allowance = Allowance::new(10);
            if lifted {
                allowance.lift();
            }
            let mut near = Metered { stream, allowance };
            far.write_all(&[0; 30]).await.unwrap();
            drop(far);
            let mut read = [0; 10];
            near.read_exact(&mut read).await.unwrap();
            let rest = near.read_to_end(&mut Vec::new()).await;
            assert_eq!(rest.is_err_and(|error| is_too_long(&error)), expect);
        }
    }

    #[test]
    fn a_path_begins_with_one_version() {
        let version = api_version("1.41").unwrap();
        for (target, expect) in [
            (
                "/containers/json?all=true",
                "/v1.41/containers/json?all=true",
            ),
            ("/v1.53/containers/create", "/v1.41/containers/create"),
            ("/volumes", "/v1.41/volumes"),
            ("/v1/volumes", "/v1.41/v1/volumes"),
        ] {
            assert_eq!(versioned(target, version), expect);
        }
    }

    #[test]
    fn lists_may_be_long_and_nothing_else() {
        assert_eq!(answer_bytes_max("/v1.41/containers/json"), LIST_BYTES_MAX);
        assert_eq!(answer_bytes_max("/volumes"), LIST_BYTES_MAX);
        assert_eq!(answer_bytes_max("/containers/c/json"), ANSWER_BYTES_MAX);
        assert_eq!(answer_bytes_max("/volumes/v"), ANSWER_BYTES_MAX);
    }
}
