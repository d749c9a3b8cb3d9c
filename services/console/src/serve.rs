//! The console's server, with the limits on each connection.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::service::TowerToHyperService;
use local_socket::http::{self, HttpLimits};
use local_socket::{BindError, Limits};
use thiserror::Error;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::login::{Logins, Now, OpenError, STRANGERS_MAX};
use crate::routes::{Shared, router};
use crate::settings::Settings;
use crate::wire::{Census, WORK_TIME_MAX};

/// Most connections: strangers' logins, and room for moderators.
pub const CONNECTIONS_MAX: usize = STRANGERS_MAX + 200;

const LIMITS: Limits = Limits {
    connections_max: CONNECTIONS_MAX,
    accept_pause: Duration::from_millis(200),
};

const HTTP_LIMITS: HttpLimits = HttpLimits {
    // Three cookies of ours, and the usual headers of browsers and web servers.
    head_bytes_max: 16 * 1024,
    headers_max: 64,
    head_time_max: Duration::from_secs(5),
    // A manual check of a host is the slowest request.
    connection_time_max: WORK_TIME_MAX.saturating_add(Duration::from_secs(10)),
};

/// Mode of the socket. The web server in front runs as another user, and only it shares the volume.
const SOCKET_MODE: u32 = 0o666;

#[derive(Debug, Error)]
pub enum ConsoleError {
    #[error(transparent)]
    Listen(#[from] BindError),
    #[error(transparent)]
    Open(#[from] OpenError),
}

pub async fn serve(
    settings: Settings,
    now: Now,
    shutdown: CancellationToken,
) -> Result<(), ConsoleError> {
    let socket = settings.socket.clone();
    let listener = local_socket::bind(&socket, SOCKET_MODE)?;
    let census = Census::new(settings.census_socket.clone());
    let logins = Logins::open(&settings, now)?;
    let router = router(Arc::new(Shared {
        logins,
        census,
        strangers: Semaphore::new(STRANGERS_MAX),
    }));
    tracing::info!(socket = %socket.display(), "the console serves");
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
    if let Err(error) = http::answer_one(stream, service, HTTP_LIMITS).await {
        tracing::debug!(%error, "a connection ended early");
    }
}
