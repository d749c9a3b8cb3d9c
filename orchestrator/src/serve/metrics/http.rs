//! The socket that serves the metrics: HTTP/1.1, one request per connection.
//!
//! `GET /metrics` returns the page in the text format 0.0.4. Every other path and method is
//! rejected, and so are heads over [`HEAD_BYTES_MAX`] or [`HEADERS_MAX`], or later than
//! [`HEAD_TIME_MAX`]. Connections over [`CONNECTIONS_MAX`] wait. A request's body is never read.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::service::service_fn;
use local_socket::http::{HttpLimits, answer_one};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;

use super::page::Source;
use crate::serve::socket::{Server, Talk};

pub const PATH: &str = "/metrics";

/// Connections at once: two Prometheus servers, an operator, and some room.
pub const CONNECTIONS_MAX: usize = 8;

/// Largest head in bytes: nginx and Prometheus send less than 1 KiB, and hyper allows no smaller
/// limit.
pub const HEAD_BYTES_MAX: usize = 8 * 1024;

/// Most headers of a request.
pub const HEADERS_MAX: usize = 32;

/// Time from the connection to the end of the head. The web server in front has the whole request
/// by then.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(5);

/// Longest connection: the head, the page with its waits for the parts and the survey, and sending
/// some 40 KiB.
pub const CONNECTION_TIME_MAX: Duration = Duration::from_secs(15);

const LIMITS: HttpLimits = HttpLimits {
    head_bytes_max: HEAD_BYTES_MAX,
    headers_max: HEADERS_MAX,
    head_time_max: HEAD_TIME_MAX,
    connection_time_max: CONNECTION_TIME_MAX,
};

pub type MetricsServer = Server<Arc<Source>>;

impl Talk for Arc<Source> {
    const CONNECTIONS_MAX: usize = CONNECTIONS_MAX;

    /// The web server in front runs as another user, and everyone with the volume may read.
    const MODE: u32 = 0o666;

    async fn talk(self, stream: UnixStream) -> anyhow::Result<()> {
        converse(stream, &self).await
    }
}

pub(super) async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    source: &Source,
) -> anyhow::Result<()> {
    let service = service_fn(|request| async move {
        Ok::<_, Infallible>(match refused(&request) {
            Some(refusal) => refusal,
            None => page(source).await,
        })
    });
    Ok(answer_one(stream, service, LIMITS).await?)
}

/// The response to a request that is rejected by its path or method.
fn refused<Body>(request: &Request<Body>) -> Option<Response<Full<Bytes>>> {
    if request.uri().path() != PATH {
        return Some(text(StatusCode::NOT_FOUND, "only /metrics exists here\n"));
    }
    if request.method() != Method::GET {
        let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "only GET is allowed here\n");
        let get = HeaderValue::from_static("GET");
        answer.headers_mut().insert(header::ALLOW, get);
        return Some(answer);
    }
    None
}

async fn page(source: &Source) -> Response<Full<Bytes>> {
    match source.page().await {
        Ok(page) => {
            let mut answer = Response::new(Full::from(page));
            let format = HeaderValue::from_static(prometheus::TEXT_FORMAT);
            answer.headers_mut().insert(header::CONTENT_TYPE, format);
            answer
        }
        Err(error) => {
            tracing::error!(%error, "metrics can't be read");
            text(StatusCode::INTERNAL_SERVER_ERROR, "see the daemon's log\n")
        }
    }
}

fn text(status: StatusCode, words: &'static str) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::from(words));
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain");
    answer.headers_mut().insert(header::CONTENT_TYPE, plain);
    answer
}
