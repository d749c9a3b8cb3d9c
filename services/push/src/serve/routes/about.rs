//! The service's health and version.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::serve::service::Service;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// For a process itself, whichever node it is.
pub(super) fn of_process() -> Router<Arc<Service>> {
    Router::new()
        .route("/health", get(health))
        .route("/metrics", get(metrics))
}

pub(super) fn routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/status", get(status))
        .route("/__heartbeat__", get(health))
        .route("/__lbheartbeat__", get(StatusCode::OK))
        .route("/__version__", get(version))
        .route("/__error__", get(error))
        .route("/v1/err", get(error))
        .route("/v1/err/crit", get(error))
}

/// Why the service is ill, if it is.
async fn illness(service: &Service) -> Option<&'static str> {
    match service.condition().await {
        None => Some("the storage can't be written"),
        Some(condition) if condition.is_short => Some("the disk is full: nothing new is stored"),
        Some(_) => None,
    }
}

async fn status(State(service): State<Arc<Service>>) -> Json<Value> {
    Json(match illness(&service).await {
        None => json!({"status": "OK", "version": VERSION}),
        Some(error) => json!({"status": "ERROR", "version": VERSION, "error": error}),
    })
}

async fn health(State(service): State<Arc<Service>>) -> Json<Value> {
    let storage = match illness(&service).await {
        None => "OK",
        Some(_) => "ERROR",
    };
    Json(json!({
        "status": storage,
        "version": VERSION,
        "connections": service.connections(),
        "router_table": {"status": storage},
        "message_table": {"status": storage},
        "routers": {"apns": false, "fcm": false},
    }))
}

/// For Prometheus. The web server in front hides it from others.
async fn metrics(State(service): State<Arc<Service>>) -> impl IntoResponse {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let page = service
        .meters
        .page(service.connections(), service.condition().await);
    ([(header::CONTENT_TYPE, kind)], page)
}

async fn version() -> Json<Value> {
    Json(json!({
        "source": env!("CARGO_PKG_REPOSITORY"),
        "version": VERSION,
        "commit": "",
        "build": "",
    }))
}

/// Monitoring requests it to see an error arrive.
async fn error() -> Response {
    let body =
        json!({"code": 418, "errno": 999, "error": "I'm a teapot", "message": "ERROR:Success"});
    (StatusCode::IM_A_TEAPOT, Json(body)).into_response()
}
