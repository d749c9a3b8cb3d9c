//! Readers of the census subscribe to changes, and unsubscribe.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use data_encoding::BASE64URL_NOPAD;
use local_socket::guard::{self, Guard, Refused};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::endpoint::Address;
use crate::notify::seal::{PUBLIC_KEY_BYTES, SECRET_BYTES, seal};
use crate::notify::{Filter, Subscription};
use crate::remote::TTL_SECONDS;
use crate::serve::census::Census;
use crate::serve::clients::newcomers::address;
use crate::serve::service::Service;
use crate::storage::StorageError;
use crate::storage::sqlite::Sqlite;

/// The guard of changes. An endpoint and a filter of the largest size fit.
const CHANGES: Guard = Guard {
    kind: guard::JSON,
    bytes_max: 4 * 1024,
    time_max: Duration::from_secs(5),
};

/// Longest endpoint, in characters. Endpoints of known push services have some 200.
const ENDPOINT_CHARS_MAX: usize = 1000;

/// Characters of a subject: a host's or a software's name.
const SUBJECT_CHARS_MAX: usize = 253;

pub(super) fn routes() -> Router<Arc<Service>> {
    Router::new().route("/subscribe", get(key).post(subscribe).delete(unsubscribe))
}

#[derive(Deserialize)]
pub(super) struct SubscribeForm {
    endpoint: String,
    keys: SubscribeKeys,
    filter: Filter,
}

#[derive(Deserialize)]
struct SubscribeKeys {
    p256dh: String,
    auth: String,
}

#[derive(Deserialize)]
struct Ended {
    endpoint: String,
    #[serde(default)]
    filter: Option<Filter>,
}

#[derive(Debug)]
pub(super) enum Problem {
    Bad(&'static str),
    Refused(Refused),
    Full,
    Storage(StorageError),
    NoCensus,
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, why) = match self {
            Self::Bad(why) => (StatusCode::BAD_REQUEST, why),
            Self::Refused(refused) => {
                let why = json!({"error": refused.to_string()});
                return (refused.status(), Json(why)).into_response();
            }
            Self::Full => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the limit on subscriptions is reached; try again later",
            ),
            Self::Storage(error) => {
                tracing::error!(%error, "a subscription failed");
                (
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the subscription could not be stored",
                )
            }
            Self::NoCensus => (StatusCode::NOT_FOUND, "this service has no census"),
        };
        let mut response = (status, Json(json!({"error": why}))).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            let later = header::HeaderValue::from_static("3600");
            response.headers_mut().insert(header::RETRY_AFTER, later);
        }
        response
    }
}

fn census(service: &Service) -> Result<&Census, Problem> {
    service.census.as_ref().ok_or(Problem::NoCensus)
}

async fn key(State(service): State<Arc<Service>>) -> Result<Json<Value>, Problem> {
    let key = census(&service)?.sender.public_key();
    Ok(Json(json!({"key": key})))
}

async fn subscribe(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Problem> {
    let census = census(&service)?;
    let body = CHANGES.read(&headers, body).await?;
    let asked: SubscribeForm = serde_json::from_slice(&body)
        .map_err(|_syntax| Problem::Bad("the body is not a subscription"))?;
    let mut subscription = checked(asked, &service, census)?;
    // An endpoint here is known to exist. Elsewhere anyone can invent one.
    let unconfirmed_until_s = match service.is_own(&subscription.endpoint) {
        true => {
            let address = registered(&service, census, &subscription.endpoint).await?;
            subscription.endpoint = service.stored_endpoint(address);
            None
        }
        false => Some(service.now_s().saturating_add(TTL_SECONDS)),
    };
    if !service.newcomers.admit(address(&headers), service.now_ms()) {
        return Err(Problem::Full);
    }
    let add = move |s: &Sqlite| s.subscribe(&subscription, unconfirmed_until_s);
    match service.storage.call(add).await.map_err(Problem::Storage)? {
        true => Ok(StatusCode::CREATED),
        false => Err(Problem::Full),
    }
}

async fn unsubscribe(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Problem> {
    census(&service)?;
    let body = CHANGES.read(&headers, body).await?;
    let Ended { endpoint, filter } = serde_json::from_slice(&body)
        .map_err(|_syntax| Problem::Bad("the body names no endpoint"))?;
    let stored = service
        .address(&endpoint)
        .map(|address| service.stored_endpoint(address));
    let removed = service.storage.call(move |s| {
        // Older files have endpoints of this service as they were sent.
        for endpoint in [Some(endpoint), stored].iter().flatten() {
            s.unsubscribe(endpoint, filter.as_ref())?;
        }
        Ok(())
    });
    // A missing subscription has ended as well.
    removed.await.map_err(Problem::Storage)?;
    Ok(StatusCode::NO_CONTENT)
}

fn checked(
    asked: SubscribeForm,
    service: &Service,
    census: &Census,
) -> Result<Subscription, Problem> {
    if !service.is_own(&asked.endpoint) && !census.is_elsewhere(&asked.endpoint) {
        return Err(Problem::Bad(
            "this census sends no messages to this push service",
        ));
    }
    if asked.endpoint.len() > ENDPOINT_CHARS_MAX {
        return Err(Problem::Bad("the endpoint is too long"));
    }
    read(asked)
}

/// The address of an endpoint of this service that accepts this census's messages. Subscriptions of
/// others would take room and never end.
async fn registered(
    service: &Service,
    census: &Census,
    endpoint: &str,
) -> Result<Address, Problem> {
    let unknown =
        Problem::Bad("the endpoint is not registered at this push service for this census");
    let Some(address) = service.address(endpoint) else {
        return Err(unknown);
    };
    let Address { uaid, channel, .. } = address;
    let room = service.storage.call(move |s| s.channel_room(uaid, channel));
    let is_there = room.await.map_err(Problem::Storage)?.is_some();
    match is_there && address.takes(census.sender.public_key_bytes()) {
        true => Ok(address),
        false => Err(unknown),
    }
}

/// A subscription whose endpoint is allowed.
pub(super) fn read(asked: SubscribeForm) -> Result<Subscription, Problem> {
    let is_short = match &asked.filter {
        Filter::All => true,
        Filter::Software(subject) | Filter::Host(subject) => {
            (1..=SUBJECT_CHARS_MAX).contains(&subject.len())
        }
    };
    if !is_short {
        return Err(Problem::Bad("the filter is empty or too long"));
    }
    let decoded = |text: &str, bytes: usize| {
        BASE64URL_NOPAD
            .decode(text.trim_end_matches('=').as_bytes())
            .ok()
            .filter(|decoded| decoded.len() == bytes)
    };
    let subscription = Subscription {
        endpoint: asked.endpoint,
        public_key: decoded(&asked.keys.p256dh, usize::from(PUBLIC_KEY_BYTES))
            .ok_or(Problem::Bad("p256dh is not a public key"))?,
        secret: decoded(&asked.keys.auth, SECRET_BYTES)
            .ok_or(Problem::Bad("auth is not 16 bytes"))?,
        filter: asked.filter,
    };
    // A point that is not on the curve would fail with every list.
    seal(b"", &subscription).map_err(|_refused| Problem::Bad("p256dh is not a public key"))?;
    Ok(subscription)
}
