//! Parses forms, with bounds that apply before the parsing.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, header};
use url::form_urlencoded;

/// Longest body in bytes: a hundred domains with a reason.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Longest time from the end of the head to the end of the body. The web server in front already
/// has the whole body.
const BODY_TIME_MAX: Duration = Duration::from_secs(5);

/// Most fields of a form.
pub(crate) const FIELDS_MAX: usize = 500;

/// The fields of a form or a query.
#[derive(Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(crate) fn of_query(query: Option<&str>) -> Self {
        Self::parse(query.unwrap_or_default().as_bytes())
    }

    /// The fields of a body. `None` if it is not a form, too long, or late.
    pub(crate) async fn of_body(headers: &HeaderMap, body: Body) -> Option<Self> {
        let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
        if kind.split(';').next()?.trim() != "application/x-www-form-urlencoded" {
            return None;
        }
        let read = tokio::time::timeout(BODY_TIME_MAX, to_bytes(body, BODY_BYTES_MAX));
        Some(Self::parse(&read.await.ok()?.ok()?))
    }

    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let pairs = form_urlencoded::parse(bytes).into_owned();
        Self(pairs.take(FIELDS_MAX).collect())
    }

    #[cfg(feature = "fuzzing")]
    pub(crate) fn into_pairs(self) -> Vec<(String, String)> {
        self.0
    }

    /// The first value of a field. Empty if there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        let mut of_name = self.0.iter().filter(|(key, _)| key == name);
        of_name
            .next()
            .map(|(_, value)| value.as_str())
            .unwrap_or_default()
    }

    pub(crate) fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        let of_name = self.0.iter().filter(move |(key, _)| key == name);
        of_name.map(|(_, value)| value.as_str())
    }

    /// A field's number. 0 if there is none.
    pub(crate) fn number<T: std::str::FromStr + Default>(&self, name: &str) -> T {
        self.text(name).parse().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn fields(kind: &str, body: &'static str) -> Option<Fields> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, kind.parse().unwrap());
        Fields::of_body(&headers, Body::from(body)).await
    }

    #[tokio::test]
    async fn a_form_is_its_fields_and_nothing_else_is_a_form() {
        let form = "application/x-www-form-urlencoded; charset=utf-8";
        let sent = fields(form, "a=1&b=%C3%A4+%26&a=2").await.unwrap();
        assert_eq!(sent.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!((sent.text("b"), sent.text("c")), ("ä &", ""));
        assert_eq!(sent.number::<u32>("a"), 1);
        assert!(fields("text/plain", "a=1").await.is_none());
        assert!(fields("application/json", "{}").await.is_none());
    }

    #[tokio::test]
    async fn a_body_over_its_bound_is_no_form() {
        let mut headers = HeaderMap::new();
        let form = "application/x-www-form-urlencoded".parse().unwrap();
        headers.insert(header::CONTENT_TYPE, form);
        for (bytes, expect) in [(BODY_BYTES_MAX, true), (BODY_BYTES_MAX + 1, false)] {
            let body = Body::from(vec![b'a'; bytes]);
            let sent = Fields::of_body(&headers, body).await;
            assert_eq!(sent.is_some(), expect, "{bytes}");
        }
    }
}
