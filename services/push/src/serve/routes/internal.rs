//! Requests of other nodes for a client that is connected here.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::put;
use axum::{Json, Router};

use crate::ids::Uaid;
use crate::serve::nodes::NodeMessage;
use crate::serve::service::Service;

pub(super) fn routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/push/{uaid}", put(push))
        .route("/notif/{uaid}", put(notify))
}

async fn push(
    State(service): State<Arc<Service>>,
    Path(uaid): Path<String>,
    Json(message): Json<NodeMessage>,
) -> StatusCode {
    let message = message.taken(service.now_ms());
    let is_told = Uaid::parse(&uaid)
        .zip(message)
        .is_some_and(|(uaid, message)| service.clients.push(uaid, message));
    found(is_told)
}

async fn notify(State(service): State<Arc<Service>>, Path(uaid): Path<String>) -> StatusCode {
    found(Uaid::parse(&uaid).is_some_and(|uaid| service.clients.notify(uaid)))
}

fn found(is_told: bool) -> StatusCode {
    match is_told {
        true => StatusCode::OK,
        false => StatusCode::NOT_FOUND,
    }
}
