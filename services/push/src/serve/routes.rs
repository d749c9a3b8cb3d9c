//! HTTP routes for clients, applications, operators and other nodes.

mod about;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod internal;
mod registration;
mod send;
mod subscribe;

pub(super) use send::Request;

use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Extension, Router};

use crate::endpoint::Refusal;
use crate::wire::client::CLIENT_MESSAGE_BYTES_MAX;

use super::clients::newcomers::address;
use super::connection;
use super::listen::BytesRead;
use super::service::Service;

/// Longest body of a request that is not a message to an endpoint, in bytes. The longest is another
/// node's: a message of the largest size with its headers.
const BODY_BYTES_MAX: usize = 32 * 1024;

/// Size of a connection's read buffer. Most messages of clients are shorter.
const READ_BUFFER_BYTES: usize = 4096;

/// Bytes of frames in the WebSocket library: more than one message. Others wait in the connection.
const WRITE_BUFFER_BYTES_MAX: usize = 32 * 1024;

/// Seconds after which a refused client tries again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("120");

/// CORS headers: pages of any site may send. An endpoint is a capability; no cookies are used.
const CROSS_ORIGIN: [(HeaderName, HeaderValue); 4] = [
    (
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        HeaderValue::from_static("*"),
    ),
    (
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("Location, TTL"),
    ),
    (
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST, PUT, DELETE"),
    ),
    (
        header::ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from_static("3600"),
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routes {
    All,
    Clients,
    /// For applications, and for readers of the list.
    Applications,
}

pub fn public(service: Arc<Service>) -> Router {
    some(service, Routes::All)
}

/// Paths that the node for clients answers with 503, when the web server in front asks it since the
/// other one is down. A 404 would end subscriptions.
const OF_APPLICATIONS: [&str; 8] = [
    "/wpush/{*path}",
    "/m/{*path}",
    "/v1/{*path}",
    "/subscribe",
    "/status",
    "/__heartbeat__",
    "/__lbheartbeat__",
    "/__version__",
];

pub fn some(service: Arc<Service>, routes: Routes) -> Router {
    let clients = Router::new().route("/", get(connect));
    let applications = Router::new()
        .merge(send::routes())
        .merge(registration::routes())
        .layer(middleware::from_fn_with_state(
            Arc::clone(&service),
            count_refusals,
        ))
        .layer(middleware::from_fn(cross_origin))
        .merge(subscribe::routes())
        .merge(about::routes());
    let routes = match routes {
        Routes::All => clients.merge(applications),
        Routes::Clients => OF_APPLICATIONS.iter().fold(clients, |routes, path| {
            routes.route(path, any(async || later()))
        }),
        Routes::Applications => applications,
    };
    routes
        .merge(about::of_process())
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(service)
}

/// Routes for other nodes. They have no authentication, so only nodes may reach them.
pub fn internal(service: Arc<Service>) -> Router {
    internal::routes()
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(service)
}

async fn connect(
    State(service): State<Arc<Service>>,
    Extension(read): Extension<BytesRead>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let address = address(&headers);
    let Some(slot) = service.slots.take(address) else {
        return later();
    };
    upgrade
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(WRITE_BUFFER_BYTES_MAX)
        .max_message_size(CLIENT_MESSAGE_BYTES_MAX)
        .max_frame_size(CLIENT_MESSAGE_BYTES_MAX)
        .on_upgrade(move |socket| connection::serve(socket, service, address, read, slot))
}

fn later() -> Response {
    let later = [(header::RETRY_AFTER, RETRY_AFTER)];
    (StatusCode::SERVICE_UNAVAILABLE, later).into_response()
}

async fn cross_origin(request: axum::extract::Request, next: Next) -> Response {
    let mut response = match *request.method() {
        // All headers are allowed. `*` would not cover `Authorization`.
        Method::OPTIONS => {
            let wanted = request
                .headers()
                .get(header::ACCESS_CONTROL_REQUEST_HEADERS);
            let allowed =
                wanted.map(|wanted| (header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone()));
            let mut response = StatusCode::OK.into_response();
            response.headers_mut().extend(allowed);
            response
        }
        _ => next.run(request).await,
    };
    response.headers_mut().extend(CROSS_ORIGIN);
    response
}

/// A refusal's number, as an answer's extension.
#[derive(Clone, Copy)]
struct Errno(Option<u16>);

async fn count_refusals(
    State(service): State<Arc<Service>>,
    request: axum::extract::Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    if let Some(Errno(errno)) = response.extensions().get() {
        service.meters.refused(*errno);
    }
    response
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status()).unwrap_or(StatusCode::BAD_REQUEST);
        let mut response = (status, self.body()).into_response();
        response.extensions_mut().insert(Errno(self.errno()));
        let headers = response.headers_mut();
        if status == StatusCode::NOT_FOUND {
            headers.remove(header::CONTENT_TYPE);
        } else {
            let json = HeaderValue::from_static("application/json");
            headers.insert(header::CONTENT_TYPE, json);
        }
        for (name, value) in self.headers() {
            if let (Ok(name), Ok(value)) = (
                HeaderName::from_bytes(name.as_bytes()),
                HeaderValue::from_str(&value),
            ) {
                headers.insert(name, value);
            }
        }
        response
    }
}
