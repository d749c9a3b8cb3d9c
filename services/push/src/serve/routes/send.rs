//! Applications send messages and withdraw them.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, post};

use crate::endpoint::vapid::{self, Expected};
use crate::endpoint::{Address, MessageId, Refusal, Version, message};
use crate::notification::Notification;
use crate::serve::service::Service;
use crate::storage::{Room, User};

pub(super) fn routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/wpush/{version}/{token}", post(send))
        .route("/wpush/{token}", post(send_to_v1))
        .route("/m/{id}", delete(withdraw))
}

async fn send_to_v1(
    State(service): State<Arc<Service>>,
    Path(token): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    answer(&service, "v1", &token, &headers, body).await
}

async fn send(
    State(service): State<Arc<Service>>,
    Path((version, token)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    answer(&service, &version, &token, &headers, body).await
}

async fn answer(
    service: &Service,
    version: &str,
    token: &str,
    headers: &HeaderMap,
    body: Body,
) -> Response {
    let field = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let request = Request {
        version,
        token,
        authorization: field(header::AUTHORIZATION.as_str()),
        headers: message::Headers {
            ttl: field("ttl"),
            topic: field("topic"),
            content_encoding: field("content-encoding"),
            encryption: field("encryption"),
            crypto_key: field("crypto-key"),
        },
        is_own: false,
    };
    // One byte over the limit shows that a body is too large.
    let body = async {
        to_bytes(body, message::BODY_BYTES_MAX.saturating_add(1))
            .await
            .map_err(|_large_or_broken| Refusal::TooLarge)
    };
    match service.take(request, body).await {
        Ok((id, ttl_s)) => {
            let location = format!("{}/m/{id}", service.settings.origin);
            let told = [("Location", location), ("TTL", ttl_s.to_string())];
            (StatusCode::CREATED, told).into_response()
        }
        Err(refusal) => {
            service.meters.refused_messages.inc();
            refusal.into_response()
        }
    }
}

/// A message to an endpoint, without its body.
#[derive(Debug, Clone, Copy)]
pub(in crate::serve) struct Request<'a> {
    /// The endpoint's version, as its path has it.
    pub(in crate::serve) version: &'a str,
    pub(in crate::serve) token: &'a str,
    pub(in crate::serve) authorization: Option<&'a str>,
    pub(in crate::serve) headers: message::Headers<'a>,
    /// Whether it is the census's own: stored before it is sent, whatever the rules are, and with
    /// reserved room.
    pub(in crate::serve) is_own: bool,
}

impl Service {
    /// Accepts a message. Returns its id and its time in storage.
    pub(in crate::serve) async fn take(
        &self,
        request: Request<'_>,
        body: impl Future<Output = Result<Bytes, Refusal>>,
    ) -> Result<(String, u32), Refusal> {
        let keys = &self.settings.keys;
        let version = Version::parse(request.version).ok_or(Refusal::BadToken)?;
        let address = Address::read(version, request.token, keys).ok_or(Refusal::BadToken)?;
        let expected = Expected {
            origin: &self.settings.origin,
            now_s: self.now_s(),
        };
        let crypto_key = request.headers.crypto_key;
        let signer = vapid::signer(request.authorization, crypto_key, expected)?;
        match (&signer, address.key_hash) {
            (None, Some(_)) => {
                return Err(Refusal::Unauthorized("this endpoint takes signed messages"));
            }
            (Some(key), Some(_)) if !address.takes(key) => {
                return Err(Refusal::Unauthorized("this endpoint is for another key"));
            }
            (_, _) => {}
        }
        let (user, channel_room) = subscriber(self, address).await?;
        let sent = message::read(request.headers, &body.await?)?;
        let place_ms = self.storage.place(self.now_ms());
        let id = match &sent.topic {
            Some(topic) => MessageId::Topic(address.uaid, address.channel, topic.clone()),
            None => MessageId::Time(address.uaid, address.channel, place_ms),
        };
        let iv = self.random().or(Err(Refusal::Storage))?;
        let id = id.text(keys, self.fernet_now_s(), &iv);
        // The answer names the time that is left (RFC 8030 §5.2).
        let (ttl_s, room) = match request.is_own {
            true => (sent.ttl_s, Room::Reserved),
            false => (sent.ttl_s.min(self.storage.ttl_max_s()), Room::Limited),
        };
        let notification = Notification {
            channel: address.channel,
            version: id.clone(),
            ttl_s,
            arrived_s: self.now_s(),
            place_ms,
            topic: sent.topic,
            payload: sent.payload,
        };
        // Messages of a full channel that go to a client directly could have it reset.
        let may_be_direct = channel_room > 0 && !request.is_own;
        self.deliver(user, notification, may_be_direct, room)
            .await?;
        Ok((id, ttl_s))
    }
}

/// The user of an endpoint, and how many messages the channel still takes, if it is registered.
async fn subscriber(service: &Service, address: Address) -> Result<(User, u32), Refusal> {
    let Address { uaid, channel, .. } = address;
    let found = service.stored(move |storage| {
        let Some(room) = storage.channel_room(uaid, channel)? else {
            return Ok(None);
        };
        Ok(storage.get_user(uaid)?.map(|user| (user, room)))
    });
    found.await?.ok_or(Refusal::NoSubscription)
}

/// Deletes a stored message. Its id is the only credential, as in autopush-rs.
async fn withdraw(
    State(service): State<Arc<Service>>,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    let read = MessageId::read(&id, &service.settings.keys);
    let uaid = read.ok_or(Refusal::Unreadable("no message's id"))?.uaid();
    service.stored(move |s| s.withdraw(uaid, &id)).await?;
    Ok(StatusCode::NO_CONTENT)
}
