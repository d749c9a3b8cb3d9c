//! Registration over HTTP, for programs without an open WebSocket: they get an endpoint and say
//! hello later.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::routing::{get, post};
use axum::{Json, Router};
use data_encoding::HEXLOWER;
use hmac::{Hmac, Mac as _};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::endpoint::Refusal;
use crate::ids::{ChannelId, Uaid};
use crate::serve::clients::newcomers::address;
use crate::serve::service::Service;
use crate::storage::User;
use crate::storage::sqlite::Sqlite;

const WEBPUSH: &str = "webpush";

pub(super) fn routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/v1/{router}/{app}/registration", post(register))
        .route(
            "/v1/{router}/{app}/registration/{uaid}",
            get(channels).put(update).delete(unregister),
        )
        .route(
            "/v1/{router}/{app}/registration/{uaid}/subscription",
            post(subscribe),
        )
        .route(
            "/v1/{router}/{app}/registration/{uaid}/subscription/{channel}",
            axum::routing::delete(unsubscribe),
        )
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Wanted {
    #[serde(default, rename = "channelID")]
    pub(super) channel: Option<ChannelId>,
    #[serde(default)]
    pub(super) key: Option<String>,
}

type Answer = Result<Json<Value>, Refusal>;

async fn register(
    State(service): State<Arc<Service>>,
    Path((router, _app)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    is_webpush(&router)?;
    let wanted: Wanted = read(&body)?;
    let address = address(&headers);
    if !service.newcomers.admit(address, service.now_ms()) {
        return Err(Refusal::Newcomers);
    }
    let uaid = service.new_uaid().or(Err(Refusal::Storage))?;
    let (channel, endpoint) = channel_of(&service, uaid, wanted)?;
    let user = User {
        node: None,
        made_at: address,
        ..User::connected(uaid, String::new(), service.now_ms())
    };
    let add = move |s: &Sqlite| Ok(s.add_user(&user)? && s.add_channel(uaid, channel)?);
    if !service.stored(add).await? {
        return Err(Refusal::Storage);
    }
    Ok(Json(json!({
        "uaid": dashed(uaid),
        "channelID": channel.to_string(),
        "endpoint": endpoint,
        "secret": service.secret(uaid).ok_or(Refusal::Storage)?,
    })))
}

async fn update(
    State(service): State<Arc<Service>>,
    Path((router, _app, uaid)): Path<(String, String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    user(&service, &router, &uaid, &headers).await?;
    let _: Wanted = read(&body)?;
    // There is nothing to change: no token of another service is stored.
    Ok(Json(json!({})))
}

async fn channels(
    State(service): State<Arc<Service>>,
    Path((router, _app, uaid)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Answer {
    let User { uaid, .. } = user(&service, &router, &uaid, &headers).await?;
    let channels = service.stored(move |s| s.channels(uaid)).await?;
    let channels: Vec<String> = channels.iter().map(ChannelId::to_string).collect();
    Ok(Json(json!({"uaid": dashed(uaid), "channelIDs": channels})))
}

async fn unregister(
    State(service): State<Arc<Service>>,
    Path((router, _app, uaid)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Answer {
    let User { uaid, .. } = user(&service, &router, &uaid, &headers).await?;
    service.stored(move |s| s.remove_user(uaid)).await?;
    Ok(Json(json!({})))
}

async fn subscribe(
    State(service): State<Arc<Service>>,
    Path((router, _app, uaid)): Path<(String, String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let User { uaid, .. } = user(&service, &router, &uaid, &headers).await?;
    let wanted: Wanted = match body.is_empty() {
        true => Wanted::default(),
        false => read(&body)?,
    };
    let (channel, endpoint) = channel_of(&service, uaid, wanted)?;
    let add = move |s: &Sqlite| s.add_channel(uaid, channel);
    if !service.stored(add).await? {
        return Err(Refusal::Full);
    }
    Ok(Json(
        json!({"channelID": channel.to_string(), "endpoint": endpoint}),
    ))
}

async fn unsubscribe(
    State(service): State<Arc<Service>>,
    Path((router, _app, uaid, channel)): Path<(String, String, String, String)>,
    headers: HeaderMap,
) -> Answer {
    let User { uaid, .. } = user(&service, &router, &uaid, &headers).await?;
    let channel = ChannelId::parse(&channel).ok_or(Refusal::NoSubscription)?;
    let remove = move |s: &Sqlite| s.remove_channel(uaid, channel);
    match service.stored(remove).await? {
        true => Ok(Json(json!({}))),
        false => Err(Refusal::NoSubscription),
    }
}

fn is_webpush(router: &str) -> Result<(), Refusal> {
    match router {
        WEBPUSH => Ok(()),
        _ => Err(Refusal::RouterType),
    }
}

pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|_syntax| Refusal::Unreadable("the body is not JSON"))
}

/// The requested channel, or a new one, with its endpoint.
fn channel_of(
    service: &Service,
    uaid: Uaid,
    wanted: Wanted,
) -> Result<(ChannelId, String), Refusal> {
    let channel = match wanted.channel {
        Some(channel) => channel,
        None => ChannelId::from_random(service.random().or(Err(Refusal::Storage))?),
    };
    let endpoint = service
        .endpoint(uaid, channel, wanted.key.as_deref())
        .or(Err(Refusal::Unreadable("the key is not base64")))?;
    Ok((channel, endpoint))
}

/// The user of a request, if the request has the user's secret.
async fn user(
    service: &Service,
    router: &str,
    uaid: &str,
    headers: &HeaderMap,
) -> Result<User, Refusal> {
    is_webpush(router)?;
    let uaid = Uaid::parse(uaid).ok_or(Refusal::NoUser)?;
    let secret = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| {
            ["bearer", "webpush"]
                .iter()
                .any(|taken| scheme.eq_ignore_ascii_case(taken))
        })
        .map(|(_, secret)| secret.trim())
        .ok_or(Refusal::Unauthorized("the secret is missing"))?;
    if !service.is_secret(uaid, secret) {
        return Err(Refusal::Unauthorized("the secret is another one"));
    }
    let found = service.stored(move |s| s.get_user(uaid)).await?;
    found.ok_or(Refusal::NoUser)
}

/// The form of this interface; clients use one without dashes.
fn dashed(uaid: Uaid) -> String {
    ChannelId::from_bytes(*uaid.as_bytes()).to_string()
}

impl Service {
    /// The secret for changes of a user's registration.
    fn secret(&self, uaid: Uaid) -> Option<String> {
        let key = self.settings.registration_keys.first()?;
        let mac = mac(key, uaid)?.finalize().into_bytes();
        Some(HEXLOWER.encode(&mac))
    }

    fn is_secret(&self, uaid: Uaid, secret: &str) -> bool {
        let Ok(secret) = HEXLOWER.decode(secret.as_bytes()) else {
            return false;
        };
        let mut keys = self.settings.registration_keys.iter();
        keys.any(|key| mac(key, uaid).is_some_and(|mac| mac.verify_slice(&secret).is_ok()))
    }
}

fn mac(key: &str, uaid: Uaid) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).ok()?;
    mac.update(uaid.to_string().as_bytes());
    Some(mac)
}
