//! HTTP/1.1 over a socket: one request per connection, with a time limit for the whole connection.

use std::error::Error as StdError;
use std::io;
use std::path::Path;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::HttpService;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt::set_socket_send_buffer_size;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::timeout;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLimits {
    /// Largest head in bytes. hyper accepts no limit below 8 KiB.
    pub head_bytes_max: usize,
    pub headers_max: usize,
    /// Time from the connection to the end of the head. A web server in front has received the
    /// whole request by then.
    pub head_time_max: Duration,
    /// Time from the connection to the end of the answer.
    pub connection_time_max: Duration,
}

/// The connection ended before its answer was sent. The messages have no details about the client,
/// so they can be logged.
#[derive(Debug, Error)]
pub enum HttpError {
    #[error("the connection broke")]
    Broken(#[from] hyper::Error),
    #[error("not finished within {0:?}")]
    Late(Duration),
}

/// Bytes of a connection's send buffer. The kernel doubles it, and lets the last write exceed it by
/// half. Its default is 208 KiB, and unread answers take memory of this process's container.
pub const SEND_BUFFER_BYTES: usize = 8 * 1024;

/// Bounds the bytes that wait in the kernel until the other side reads them.
pub fn bound_send_buffer(stream: &UnixStream) {
    if let Err(error) = set_socket_send_buffer_size(stream, SEND_BUFFER_BYTES) {
        tracing::warn!(%error, "a connection keeps the kernel's send buffer");
    }
}

/// Reads one request, answers it with `service`, and writes the answer.
pub async fn answer_one<I, S, B>(stream: I, service: S, limits: HttpLimits) -> Result<(), HttpError>
where
    I: AsyncRead + AsyncWrite + Unpin,
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<Box<dyn StdError + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time_max)
        .max_buf_size(limits.head_bytes_max)
        .max_headers(limits.headers_max)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    let late = HttpError::Late(limits.connection_time_max);
    timeout(limits.connection_time_max, connection)
        .await
        .map_err(|_elapsed| late)??;
    Ok(())
}

const HEALTH_TIME_MAX: Duration = Duration::from_secs(5);

const HEALTH_BYTES_MAX: u64 = 4096;

/// Part of the answer of a part that can't do its work: autopush's status is 200 then.
const ILL: &[u8] = b"\"status\":\"ERROR\"";

/// Requests `/health` from a socket.
///
/// # Errors
/// Fails if the answer is not 200, reports an error or takes too long.
pub async fn health(socket: &Path) -> io::Result<()> {
    let asking = async {
        let mut stream = UnixStream::connect(socket).await.map_err(|error| {
            let text = format!("can't connect to {}: {error}", socket.display());
            io::Error::new(error.kind(), text)
        })?;
        stream
            .write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .await?;
        let mut answer = Vec::new();
        stream
            .take(HEALTH_BYTES_MAX)
            .read_to_end(&mut answer)
            .await?;
        let is_ill = answer.windows(ILL.len()).any(|part| part == ILL);
        match answer.starts_with(b"HTTP/1.1 200 ") {
            true if is_ill => Err(io::Error::other("it can't do its work: its log says why")),
            true => Ok(()),
            false => Err(io::Error::other("the answer to GET /health is not 200")),
        }
    };
    timeout(HEALTH_TIME_MAX, asking).await?
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use hyper::service::service_fn;

    use super::*;

    const LIMITS: HttpLimits = HttpLimits {
        head_bytes_max: 8 * 1024,
        headers_max: 8,
        head_time_max: Duration::from_secs(5),
        connection_time_max: Duration::from_secs(60),
    };

    /// The answer to a client that sends only `begun`, and the time until then.
    async fn answer(begun: &[u8]) -> (String, Duration) {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let service = service_fn(|_request| {
            std::future::pending::<Result<hyper::Response<String>, Infallible>>()
        });
        let started = tokio::time::Instant::now();
        let serving = answer_one(theirs, service, LIMITS);
        let (mut from, mut to) = tokio::io::split(ours);
        let asking = async {
            to.write_all(begun).await.unwrap();
            let mut given = Vec::new();
            from.read_to_end(&mut given).await.unwrap();
            String::from_utf8(given).unwrap()
        };
        let (_served, given) = tokio::join!(serving, asking);
        (given, started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_comes_too_slowly_is_given_up_on() {
        for begun in ["", "GET /", "GET / HTTP/1.1\r\nx: y\r\n"] {
            let (_, elapsed) = answer(begun.as_bytes()).await;
            assert_eq!(elapsed, LIMITS.head_time_max, "{begun:?}");
        }
    }

    #[tokio::test]
    async fn an_unread_answer_takes_a_bounded_part_of_the_kernels_memory() {
        let (ours, _unread) = UnixStream::pair().unwrap();
        bound_send_buffer(&ours);
        let mut sent = 0;
        while let Ok(bytes) = ours.try_write(&[0; 1024]) {
            sent += bytes;
        }
        assert!(sent <= 3 * SEND_BUFFER_BYTES, "{sent} bytes");
    }

    #[tokio::test(start_paused = true)]
    async fn no_connection_lasts_longer_than_its_time_whatever_hangs_behind_it() {
        let (given, elapsed) = answer(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert_eq!((given.as_str(), elapsed), ("", LIMITS.connection_time_max));
    }
}
