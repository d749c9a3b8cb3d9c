//! Entry points for fuzz targets: the parsers of browsers' input.

use axum::http::{HeaderMap, HeaderValue, header};

use crate::form::Fields;

pub const FIELDS_MAX: usize = crate::form::FIELDS_MAX;

pub fn fields(bytes: &[u8]) -> Vec<(String, String)> {
    Fields::parse(bytes).into_pairs()
}

/// The value of a cookie in a header with these bytes. `None` if there is none.
pub fn cookie(bytes: &[u8], name: &str) -> Option<String> {
    let mut headers = HeaderMap::new();
    headers.insert(header::COOKIE, HeaderValue::from_bytes(bytes).ok()?);
    crate::cookies::value(&headers, name).map(str::to_owned)
}
