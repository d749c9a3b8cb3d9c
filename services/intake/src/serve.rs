//! The intake's server, with the limits on each connection.
//!
//! It accepts connections of the web server in front, answers one request on each and closes it, so
//! that no idle connection takes a slot. It rejects heads over [`HEAD_BYTES_MAX`] or
//! [`HEADERS_MAX`], and heads that take longer than [`HEAD_TIME_MAX`]. Connections over
//! [`CONNECTIONS_MAX`] wait.

use std::sync::Arc;
use std::time::Duration;

use admission::Names;
use axum::Router;
use gateway::GatewayClient;
use hyper_util::service::TowerToHyperService;
use local_socket::http::{self, HttpLimits};
use local_socket::{BindError, Limits};
use token::TestDomain;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use crate::proof::{FileProof, ProofSource, TxtProof};
use crate::routes::{Now, Shared, router};
use crate::settings::Settings;
use crate::texts::Texts;
use crate::wire::Census;

/// Connections at once. They mostly wait for DNS, and each may take about 40 KiB.
pub const CONNECTIONS_MAX: usize = 64;

/// Largest head in bytes: a token of each form, and the usual headers of browsers and web servers.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;

pub const HEADERS_MAX: usize = 64;

/// Longest time from the connection to the end of the head. The web server in front already has the
/// whole request.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(5);

/// Longest life of a connection: head, body, two look-ups (or one and the reading of a file), and
/// the daemon's answers.
pub const CONNECTION_TIME_MAX: Duration = Duration::from_secs(70);

/// Mode of the Unix socket. The web server in front runs as another user, and access to the volume
/// is the permission.
const SOCKET_MODE: u32 = 0o666;

const HTTP_LIMITS: HttpLimits = HttpLimits {
    head_bytes_max: HEAD_BYTES_MAX,
    headers_max: HEADERS_MAX,
    head_time_max: HEAD_TIME_MAX,
    connection_time_max: CONNECTION_TIME_MAX,
};

const LIMITS: Limits = Limits {
    connections_max: CONNECTIONS_MAX,
    accept_pause: Duration::from_millis(200),
};

/// Serves until `shutdown`.
pub async fn serve(
    settings: Settings,
    names: Arc<Names>,
    now: Now,
    shutdown: CancellationToken,
) -> Result<(), BindError> {
    if settings.test_domain == TestDomain::Allow {
        tracing::warn!(
            "tokens of `test.sigsum.org` are accepted, and anyone can make them: remove `test_domain` from the settings file's `[lab]` and restart"
        );
    }
    let socket = settings.socket.clone();
    let listener = local_socket::bind(&socket, SOCKET_MODE)?;
    let texts = Texts::new(GatewayClient::new(settings.text_socket.clone()), names);
    let census = Census::new(settings.census_socket.clone());
    // In this order, because a look-up is cheaper than a visit.
    let proofs: Vec<Box<dyn ProofSource>> = vec![
        Box::new(TxtProof(texts.clone())),
        Box::new(FileProof(census.clone())),
    ];
    let router = router(Arc::new(Shared::new(settings, texts, census, proofs, now)));
    tracing::info!(socket = %socket.display(), "the intake serves");
    let handle = |stream| converse(stream, router.clone());
    local_socket::serve(listener, LIMITS, &shutdown, handle).await;
    if let Err(error) = std::fs::remove_file(&socket) {
        tracing::warn!(socket = %socket.display(), %error, "the socket could not be removed");
    }
    Ok(())
}

async fn converse(stream: UnixStream, router: Router) {
    http::bound_send_buffer(&stream);
    let service = TowerToHyperService::new(router);
    // A client's mistake is not worth a warning.
    if let Err(error) = http::answer_one(stream, service, HTTP_LIMITS).await {
        tracing::debug!(%error, "a connection ended early");
    }
}
