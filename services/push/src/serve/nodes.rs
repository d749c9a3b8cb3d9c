//! Nodes: processes of one machine over one storage. One that takes messages asks the one that
//! holds a client's connection, at its Unix socket: `PUT /push/{uaid}` with a message, `PUT
//! /notif/{uaid}` to make it read the storage.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::ids::Uaid;
use crate::notification::Notification;
use crate::storage::sqlite::{NEWEST, Sqlite};

use super::census::BROADCAST;
use super::service::Service;

/// The whole of a request to a node. One that takes longer is stopped or dead.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(3);

/// The time to read an answer that has arrived.
const LATE_TIME_MAX: Duration = Duration::from_millis(100);

/// Age of a message that a node no longer takes: the other node stores it soon, or has stored it.
const TAKEN_MS_MAX: i64 = 1500;

/// Interval at which a node looks whether it was stopped.
const TURN: Duration = Duration::from_secs(1);

/// Turns after which no request is left that began before.
const RECHECK_TURNS: u32 = 4;

/// Turns between two notes that a node runs.
const SEEN_TURNS: u32 = 60;

/// The result of a request to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// The client is connected and was notified.
    Told,
    /// The client is not connected, or is busy.
    NotTold,
    Unreachable,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NodeMessage {
    /// When it was sent to the node, in milliseconds since 1970.
    sent_ms: i64,
    message: Notification,
}

impl NodeMessage {
    /// The message, if its sender still waits for an answer.
    pub(super) fn taken(self, now_ms: i64) -> Option<Notification> {
        let is_late = now_ms.saturating_sub(self.sent_ms) > TAKEN_MS_MAX;
        (!is_late).then_some(self.message)
    }
}

/// Sends a message straight to a client at the node with this socket.
pub(super) async fn push(
    socket: &Path,
    uaid: Uaid,
    message: Notification,
    sent_ms: i64,
) -> Reached {
    let body = serde_json::to_vec(&NodeMessage { sent_ms, message }).unwrap_or_default();
    ask(socket, &format!("/push/{uaid}"), body).await
}

/// Notifies a client at the node with this socket of a stored message.
pub(super) async fn notify(socket: &Path, uaid: Uaid) -> Reached {
    ask(socket, &format!("/notif/{uaid}"), Vec::new()).await
}

async fn ask(socket: &Path, path: &str, body: Vec<u8>) -> Reached {
    let Ok(stream) = UnixStream::connect(socket).await else {
        return Reached::Unreachable;
    };
    let mut asked = pin!(status(stream, path, body));
    let mut reached = timeout(REQUEST_TIME_MAX, &mut asked).await;
    if reached.is_err() {
        // If this process was stopped, the answer is there.
        reached = timeout(LATE_TIME_MAX, &mut asked).await;
    }
    match reached {
        Ok(Some(StatusCode::OK)) => Reached::Told,
        Ok(Some(_) | None) => Reached::NotTold,
        Err(_elapsed) => Reached::Unreachable,
    }
}

/// The answer's status; `None` if the connection breaks.
async fn status(stream: UnixStream, path: &str, body: Vec<u8>) -> Option<StatusCode> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .ok()?;
    let request = Request::builder()
        .method(Method::PUT)
        .uri(path)
        .header(header::HOST, "node")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body))
        .ok()?;
    let mut answer = pin!(sender.send_request(request));
    // The connection must be driven while the answer is awaited, and may end with it.
    let answer = tokio::select! {
        answer = &mut answer => answer,
        _ended = connection => answer.await,
    };
    answer.ok().map(|answer| answer.status())
}

/// Notes that this node runs, until `shutdown`. After a stop of the process, other nodes may have
/// taken it for dead, so its clients' records are checked.
pub async fn stay_known(service: &Arc<Service>, shutdown: &CancellationToken) {
    let mut turn = interval(TURN);
    turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut turns, mut last, mut recheck_at) = (1_u32, Instant::now(), 0_u32);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = turn.tick() => {}
        }
        let was_stopped = last.elapsed() >= REQUEST_TIME_MAX;
        if was_stopped {
            recheck_at = turns.wrapping_add(RECHECK_TURNS);
        }
        if was_stopped || turns == recheck_at {
            service.clients.wake();
        }
        if turns % SEEN_TURNS == 1 {
            let (node, now_ms) = (service.settings.node.clone(), service.now_ms());
            let see = move |s: &Sqlite| s.see_node(&node, now_ms);
            // The storage's thread has counted and logged it.
            service.storage.call(see).await.ok();
        }
        // A slow storage is no stop.
        last = Instant::now();
        turns = turns.wrapping_add(1);
    }
}

/// Tells clients of new lists of which another node notifies, until `shutdown`.
pub async fn follow(service: &Arc<Service>, every: Duration, shutdown: &CancellationToken) {
    let mut turn = interval(every);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = turn.tick() => {}
        }
        if let Ok(Some(version)) = service.storage.call(|s| s.section(NEWEST)).await {
            service.broadcast([(BROADCAST.to_owned(), version)].into());
        }
    }
}
