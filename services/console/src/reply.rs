//! Responses: pages, redirects, and files that are the same for every client.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

/// A page. No cache keeps it: after the log-out the browser's "back" shows nothing.
pub(crate) fn html(status: StatusCode, text: String) -> Response {
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, text).into_response()
}

/// A redirect to a path of the console.
pub(crate) fn see_other(to: &str) -> Response {
    let to = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static("/"));
    let headers = [
        (header::LOCATION, to),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

pub(crate) fn asset(kind: &'static str, content: &'static str) -> std::future::Ready<Response> {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("max-age=300"),
        ),
    ];
    std::future::ready((headers, content).into_response())
}
