//! Errors as `application/problem+json` (RFC 9457): a status, a code for machines, and a sentence
//! for people.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use local_socket::guard::Refused;
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub status: StatusCode,
    /// The problem's code, for machines. It never changes once it is documented.
    pub code: &'static str,
    /// What the problem is, and what to do about it.
    pub detail: String,
    pub retry_after: Option<Duration>,
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'a str,
    status: u16,
    code: &'a str,
    detail: &'a str,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            retry_after: None,
        }
    }

    /// 400: the request or its token is malformed or not valid.
    pub fn bad(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// 403: the request is valid, but the client may not decide this.
    pub fn forbidden(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, detail)
    }

    /// Any other status without a further header.
    pub fn other(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(status, code, detail)
    }

    /// 429: too many requests.
    pub fn too_soon(code: &'static str, detail: impl Into<String>, retry_after: Duration) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, code, detail)
        }
    }

    /// 503: this can't be decided now.
    pub fn unavailable(
        code: &'static str,
        detail: impl Into<String>,
        retry_after: Duration,
    ) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail)
        }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let code = match refused {
            Refused::OtherSite => "other_site",
            Refused::WrongKind(_) => "not_json",
            Refused::TooLong(_) => "body_too_long",
            Refused::Late(_) => "body_too_slow",
            Refused::Broken => "body_not_whole",
        };
        Self::other(refused.status(), code, refused.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = Body {
            kind: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            code: self.code,
            detail: &self.detail,
        };
        let json = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = (self.status, json).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(wait) = self.retry_after {
            // Rounded up, so that a client that waits exactly this long is in time.
            let seconds = u64::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u64::MAX);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        response
    }
}
