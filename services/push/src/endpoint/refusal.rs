//! Why a message is refused: status, errno and text, as applications know them from autopush.

use serde::Serialize;
use thiserror::Error;

const MORE_INFO: &str = "http://autopush.readthedocs.io/en/latest/http.html#error-codes";

/// Seconds that an application should wait when the storage is busy or a user has too much.
pub const RETRY_AFTER_S: u32 = 120;

/// How long the answer that a subscription is gone may be cached, in seconds: it never returns.
pub const GONE_MAX_AGE_S: u32 = 86_400;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error("not found")]
    BadToken,
    #[error("no such user")]
    NoUser,
    #[error(
        "the body is too large: at most {} bytes",
        super::message::BODY_BYTES_MAX
    )]
    TooLarge,
    #[error("the user is gone")]
    UserGone,
    #[error("no such subscription")]
    NoSubscription,
    #[error("this kind of router is not supported")]
    RouterType,
    #[error("unauthorized: {0}")]
    Unauthorized(&'static str),
    #[error("the encryption headers: {0}")]
    Encryption(&'static str),
    #[error("TTL must be a whole number of seconds")]
    Ttl,
    #[error("{0}")]
    Topic(crate::notification::NoTopic),
    #[error("TTL must not be negative")]
    NegativeTtl,
    /// The user or the channel has the maximum of messages, or the storage is full.
    #[error("too many messages wait")]
    Full,
    #[error("too many users have registered from this address; try again in an hour")]
    Newcomers,
    #[error("the message could not be stored")]
    Storage,
    #[error("the request could not be read: {0}")]
    Unreadable(&'static str),
}

#[derive(Serialize)]
struct Body<'a> {
    code: u16,
    errno: Option<u16>,
    error: &'a str,
    message: String,
    more_info: &'a str,
}

impl Refusal {
    /// The HTTP status with its reason phrase, and the errno.
    fn numbers(&self) -> (u16, &'static str, Option<u16>) {
        match self {
            Self::BadToken => (404, "Not Found", Some(102)),
            Self::NoUser => (410, "Gone", Some(103)),
            Self::TooLarge => (413, "Payload Too Large", Some(104)),
            Self::UserGone => (410, "Gone", Some(105)),
            Self::NoSubscription => (410, "Gone", Some(106)),
            Self::RouterType => (400, "Bad Request", Some(108)),
            Self::Unauthorized(_) => (401, "Unauthorized", Some(109)),
            Self::Encryption(_) => (400, "Bad Request", Some(110)),
            Self::Ttl => (400, "Bad Request", Some(111)),
            Self::Topic(_) => (400, "Bad Request", Some(113)),
            Self::NegativeTtl => (400, "Bad Request", Some(114)),
            Self::Newcomers => (429, "Too Many Requests", None),
            Self::Full => (503, "Service Unavailable", Some(201)),
            Self::Storage => (500, "Internal Server Error", Some(201)),
            Self::Unreadable(_) => (400, "Bad Request", None),
        }
    }

    pub fn status(&self) -> u16 {
        self.numbers().0
    }

    pub fn errno(&self) -> Option<u16> {
        self.numbers().2
    }

    /// Header fields in addition to the body's type.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        match self.status() {
            410 => vec![("Cache-Control", format!("max-age={GONE_MAX_AGE_S}"))],
            429 | 500 | 503 => vec![("Retry-After", RETRY_AFTER_S.to_string())],
            _ => Vec::new(),
        }
    }

    /// The body as JSON. A 404 has none.
    pub fn body(&self) -> String {
        let (code, error, errno) = self.numbers();
        if code == 404 {
            return String::new();
        }
        let body = Body {
            code,
            errno,
            error,
            message: self.to_string(),
            more_info: MORE_INFO,
        };
        // Numbers and texts can always be serialised.
        serde_json::to_string(&body).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn each_refusal_has_autopushs_numbers() {
        let no_topic = crate::notification::NoTopic;
        for (refusal, status, errno) in [
            (Refusal::NoUser, 410, json!(103)),
            (Refusal::TooLarge, 413, json!(104)),
            (Refusal::UserGone, 410, json!(105)),
            (Refusal::NoSubscription, 410, json!(106)),
            (Refusal::RouterType, 400, json!(108)),
            (Refusal::Unauthorized(""), 401, json!(109)),
            (Refusal::Encryption(""), 400, json!(110)),
            (Refusal::Ttl, 400, json!(111)),
            (Refusal::Topic(no_topic), 400, json!(113)),
            (Refusal::NegativeTtl, 400, json!(114)),
            (Refusal::Full, 503, json!(201)),
            (Refusal::Newcomers, 429, Value::Null),
            (Refusal::Storage, 500, json!(201)),
            (Refusal::Unreadable(""), 400, Value::Null),
        ] {
            let body: Value = serde_json::from_str(&refusal.body()).unwrap();
            assert_eq!(refusal.status(), status, "{refusal:?}");
            assert_eq!(body["code"], json!(status));
            assert_eq!(body["errno"], errno, "{refusal:?}");
            assert!(body["message"].is_string() && body["error"].is_string());
        }
    }

    #[test]
    fn what_is_gone_stays_gone_for_a_day_and_a_404_says_nothing() {
        let gone = Refusal::NoSubscription.headers();
        assert_eq!(gone, [("Cache-Control", "max-age=86400".to_owned())]);
        let full = Refusal::Full.headers();
        assert_eq!(full, [("Retry-After", "120".to_owned())]);
        assert_eq!(Refusal::BadToken.status(), 404);
        assert_eq!(Refusal::BadToken.body(), "");
    }
}
