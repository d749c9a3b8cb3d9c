//! Other nodes with the same storage, which may hold a user's connection.
//!
//! Nodes communicate by plain HTTP in a private network: `PUT /push/{uaid}` with a message, `PUT
//! /notif/{uaid}` to make the node read the storage.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, Uri, header};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::ids::{ChannelId, Uaid};
use crate::notification::{Notification, PayloadHeaders, Topic};

/// A node that is not reached within this time counts as unreachable.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(1);

/// The whole of a request to a node.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(3);

/// The result of a request to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// The client is connected and was notified.
    Told,
    /// The client is not connected, or is busy.
    NotTold,
    /// The node can't be reached.
    Unreachable,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NodeMessage {
    #[serde(rename = "channelID")]
    channel: ChannelId,
    version: String,
    ttl: u32,
    #[serde(default)]
    topic: Option<Topic>,
    timestamp: i64,
    /// Only of this service: the place among the user's messages.
    #[serde(default)]
    place: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    headers: Option<PayloadHeaders>,
}

impl From<&Notification> for NodeMessage {
    fn from(message: &Notification) -> Self {
        let payload = message.payload.as_ref();
        Self {
            channel: message.channel,
            version: message.version.clone(),
            ttl: message.ttl_s,
            topic: message.topic.clone(),
            timestamp: message.arrived_s,
            place: message.place_ms,
            data: payload.map(|payload| payload.data.clone()),
            headers: payload.map(|payload| payload.headers.clone()),
        }
    }
}

impl From<NodeMessage> for Notification {
    fn from(message: NodeMessage) -> Self {
        let payload = message.data.zip(message.headers);
        Self {
            channel: message.channel,
            version: message.version,
            ttl_s: message.ttl,
            arrived_s: message.timestamp,
            topic: message.topic,
            payload: payload.map(|(data, headers)| crate::notification::Payload { data, headers }),
            place_ms: message.place,
        }
    }
}

/// Sends a message straight to a client at a node.
pub(super) async fn push(node: &str, uaid: Uaid, message: &Notification) -> Reached {
    let body = serde_json::to_vec(&NodeMessage::from(message)).unwrap_or_default();
    ask(node, &format!("/push/{uaid}"), body).await
}

/// Notifies a client at a node of a stored message.
pub(super) async fn notify(node: &str, uaid: Uaid) -> Reached {
    ask(node, &format!("/notif/{uaid}"), Vec::new()).await
}

async fn ask(node: &str, path: &str, body: Vec<u8>) -> Reached {
    match timeout(REQUEST_TIME_MAX, status(node, path, body)).await {
        Ok(Some(StatusCode::OK)) => Reached::Told,
        Ok(Some(_)) => Reached::NotTold,
        Ok(None) | Err(_) => Reached::Unreachable,
    }
}

async fn status(node: &str, path: &str, body: Vec<u8>) -> Option<StatusCode> {
    let uri: Uri = node.parse().ok()?;
    let authority = uri.authority()?.clone();
    let place = (authority.host(), authority.port_u16().unwrap_or(80));
    let stream = timeout(CONNECT_TIME_MAX, TcpStream::connect(place))
        .await
        .ok()?
        .ok()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .ok()?;
    let request = Request::builder()
        .method(Method::PUT)
        .uri(path)
        .header(header::HOST, authority.as_str())
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body))
        .ok()?;
    let answer = async { sender.send_request(request).await.ok() };
    // The connection must be driven while the answer is awaited.
    tokio::select! {
        answer = answer => answer.map(|answer| answer.status()),
        _ = connection => None,
    }
}
