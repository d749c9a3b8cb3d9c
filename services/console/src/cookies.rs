//! The console's cookies. All have the prefix `__Host-`: a browser accepts them only from this
//! host, over TLS and for all paths (RFC 6265bis, section 4.1.3.2).

use axum::http::{HeaderMap, HeaderValue, header};

pub(crate) const SESSION: &str = "__Host-session";

/// The signed name of a browser in which a moderator has logged in.
pub(crate) const BROWSER: &str = "__Host-browser";

/// Binds a login form to its browser.
pub(crate) const LOGIN_FORM: &str = "__Host-login";

/// Hides cookies from scripts and from requests of other sites.
const FLAGS: &str = "Path=/; Secure; HttpOnly; SameSite=Strict";

/// A browser is known for 400 days, the longest that browsers keep a cookie.
const BROWSER_SECONDS: u32 = 400 * 24 * 3600;

/// The value of the cookie with this name. `None` if there is no such cookie, or more than one.
pub(crate) fn value<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(header::COOKIE).iter();
    let mut values = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(key, _)| *key == name)
        .map(|(_, value)| value);
    match (values.next(), values.next()) {
        (Some(one), None) => Some(one),
        (None | Some(_), _) => None,
    }
}

/// A cookie that ends with the browser.
pub(crate) fn set(name: &str, value: &str) -> Option<HeaderValue> {
    HeaderValue::try_from(format!("{name}={value}; {FLAGS}")).ok()
}

/// [`BROWSER`], which persists.
pub(crate) fn set_browser(value: &str) -> Option<HeaderValue> {
    let cookie = format!("{BROWSER}={value}; {FLAGS}; Max-Age={BROWSER_SECONDS}");
    HeaderValue::try_from(cookie).ok()
}

pub(crate) fn end(name: &str) -> Option<HeaderValue> {
    HeaderValue::try_from(format!("{name}=; {FLAGS}; Max-Age=0")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::COOKIE, line.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name_and_once() {
        for (lines, expect) in [
            (&["__Host-session=a"][..], Some("a")),
            (&["x=1; __Host-session=a; y=2"], Some("a")),
            (&["x=1", "__Host-session=a"], Some("a")),
            (&["__Host-session=a; __Host-session=b"], None),
            (&["a__Host-session=a"], None),
            (&["__host-session=a"], None),
            (&["__Host-session"], None),
            (&[], None),
        ] {
            assert_eq!(value(&headers(lines), SESSION), expect, "{lines:?}");
        }
    }

    #[test] // S84
    fn no_cookie_reaches_scripts_other_sites_or_plain_http() {
        let all = [set(SESSION, "a"), set_browser("b"), end(LOGIN_FORM)];
        for cookie in all {
            let cookie = cookie.unwrap();
            let text = cookie.to_str().unwrap();
            assert!(text.starts_with("__Host-"), "{text}");
            for flag in ["Path=/", "Secure", "HttpOnly", "SameSite=Strict"] {
                assert!(text.split("; ").any(|part| part == flag), "{text}: {flag}");
            }
        }
    }
}
