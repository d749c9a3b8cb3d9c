//! The head of an answer: status, what it says about trying again, and how to read its body.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use protocol::Wall;
use reqwest::Response;
use reqwest::header::HeaderMap;
use tokio::time::Instant;
use url::Url;

use super::body::{Body, Coding};
use super::failure::Failure;
use super::progress::Progress;
use super::wall;

/// An answer with its body still unread.
#[derive(Debug)]
pub struct Answer {
    /// The address that answered, after redirects.
    pub url: Url,
    /// The HTTP status; a redirect only to a wall.
    pub status: u16,
    /// `Retry-After` in seconds from now.
    pub retry_after_s: Option<u64>,
    /// The host's rate limit, from `X-RateLimit-*`.
    pub limit: RateLimit,
    /// The product that refuses robots in front of the host, if the head shows one. Means nothing
    /// if the body is a valid document.
    pub wall: Option<Wall>,
    /// Whether the content type is HTML, with which servers often answer for missing files and
    /// errors.
    pub is_html: bool,
    response: Response,
    deadline: Instant,
    progress: Progress,
    counted: Arc<AtomicU64>,
}

impl Answer {
    pub(super) fn new(
        url: Url,
        response: Response,
        wall: SystemTime,
        deadline: Instant,
        progress: Progress,
        counted: Arc<AtomicU64>,
    ) -> Self {
        let status = response.status().as_u16();
        let is_html = is_html(response.headers());
        Self {
            url,
            status,
            retry_after_s: retry_after(response.headers(), wall),
            limit: rate_limit(response.headers(), wall),
            wall: wall::in_head(status, is_html, response.headers()),
            is_html,
            response,
            deadline,
            progress,
            counted,
        }
    }

    /// The body. At most `bytes_max` decoded bytes of it are read.
    pub fn body(self, bytes_max: u64) -> Result<Body, Failure> {
        let coding = coding(self.response.headers())?;
        Ok(Body::new(
            self.response,
            coding,
            bytes_max,
            self.deadline,
            self.progress,
            self.counted,
        ))
    }
}

impl Answer {
    /// The wall that the head shows, or the beginning of the body. Reads no more than that.
    pub async fn into_wall(self) -> Option<Wall> {
        if self.wall.is_some() {
            return self.wall;
        }
        let status = self.status;
        let mut body = self.body(wall::BODY_BYTES_MAX).ok()?;
        let mut begun = Vec::new();
        while let Ok(Some(piece)) = body.next().await {
            begun.extend_from_slice(&piece);
        }
        wall::in_body(status, &begun)
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .trim()
}

/// `Retry-After` is a number of seconds or a date. Other values are ignored.
fn retry_after(headers: &HeaderMap, wall: SystemTime) -> Option<u64> {
    let value = text(headers, "retry-after");
    if let Ok(seconds) = value.parse() {
        return Some(seconds);
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(
        date.duration_since(wall)
            .map_or(0, |duration| duration.as_secs()),
    )
}

/// A host's rate limit from `X-RateLimit-*`, which Mastodon sends with every answer of its API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateLimit {
    pub remaining: Option<u64>,
    /// When requests are available again, in seconds from now.
    pub reset_s: Option<u64>,
}

fn rate_limit(headers: &HeaderMap, wall: SystemTime) -> RateLimit {
    let now_s = wall
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let reset = text(headers, "x-ratelimit-reset");
    // Seconds from now, seconds of the epoch, or RFC 3339: all three are in use.
    let reset_s = match reset.parse::<u64>() {
        Ok(seconds) if seconds < EPOCH_SECONDS_MIN => Some(seconds),
        Ok(moment) => Some(moment.saturating_sub(now_s)),
        Err(_) => unix_seconds(reset).map(|moment| moment.saturating_sub(now_s)),
    };
    RateLimit {
        remaining: text(headers, "x-ratelimit-remaining").parse().ok(),
        reset_s,
    }
}

/// A smaller number is a duration (below some 30 years), a larger one a time of the epoch.
const EPOCH_SECONDS_MIN: u64 = 1_000_000_000;

/// `2026-11-26T13:50:00.000000Z` in seconds of the epoch. Only UTC is supported, since this header
/// uses nothing else.
fn unix_seconds(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(str::parse::<u64>);
    let mut next = || date.next()?.ok();
    let (year, month, day) = (next()?, next()?, next()?);
    let mut time = time.splitn(3, ':');
    let hour: u64 = time.next()?.parse().ok()?;
    let minute: u64 = time.next()?.parse().ok()?;
    let second: u64 = time.next()?.split('.').next()?.parse().ok()?;
    let fits = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61;
    if !fits {
        return None;
    }
    // Days since 1970-03-01, with years that begin in March, so that leap days come last.
    let (year, month) = match month {
        1 | 2 => (year.checked_sub(1)?, month.checked_add(9)?),
        _ => (year, month.checked_sub(3)?),
    };
    let leap_days = |year: u64| {
        let centuries = year.checked_div(100)?;
        year.checked_div(4)?
            .checked_sub(centuries)?
            .checked_add(centuries.checked_div(4)?)
    };
    let days = year
        .checked_mul(365)?
        .checked_add(leap_days(year)?)?
        .checked_add(month.checked_mul(153)?.checked_add(2)?.checked_div(5)?)?
        .checked_add(day)?
        // The days up to 1970-01-01, counted in the same way.
        .checked_sub(719_469)?;
    days.checked_mul(24)?
        .checked_add(hour)?
        .checked_mul(60)?
        .checked_add(minute)?
        .checked_mul(60)?
        .checked_add(second)
}

fn is_html(headers: &HeaderMap) -> bool {
    let kind = text(headers, "content-type").split(';').next();
    let kind = kind.unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("text/html") || kind.eq_ignore_ascii_case("application/xhtml+xml")
}

/// Codings that we don't offer and whose bodies would be unreadable (IANA's HTTP content codings).
const CODINGS_NOT_OFFERED: [&str; 9] = [
    "aes128gcm",
    "br",
    "compress",
    "dcb",
    "dcz",
    "deflate",
    "exi",
    "pack200-gzip",
    "zstd",
];

/// How the body is encoded. A name that is no content coding, such as `utf-8` or `none`, was put
/// into the wrong header by hand and says nothing about the body.
fn coding(headers: &HeaderMap) -> Result<Coding, Failure> {
    let mut found = Coding::Plain;
    for value in headers.get_all("content-encoding") {
        let value = value.to_str().unwrap_or_default().to_ascii_lowercase();
        for name in value.split(',').map(str::trim) {
            let is_gzip = matches!(name, "gzip" | "x-gzip");
            if CODINGS_NOT_OFFERED.contains(&name) || (is_gzip && found == Coding::Gzip) {
                return Err(Failure::Encoding);
            }
            if is_gzip {
                found = Coding::Gzip;
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};
    use std::time::Duration;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let value = HeaderValue::from_str(value).unwrap();
            headers.append(HeaderName::from_static(name), value);
        }
        headers
    }

    fn check_retry(value: &str, expect: Option<u64>) {
        // 1994-11-06 08:49:37 UTC
        let wall = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(784_111_777));
        let wall = wall.unwrap();
        let found = retry_after(&headers(&[("retry-after", value)]), wall);
        assert_eq!(found, expect, "{value}");
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        check_retry("120", Some(120));
        check_retry("Sun, 06 Nov 1994 08:50:37 GMT", Some(60));
        check_retry("Sun, 06 Nov 1994 08:40:37 GMT", Some(0));
        check_retry("-1", None);
        check_retry("soon", None);
        check_retry("99999999999999999999999", None);
        check_retry("", None);
    }

    #[test]
    fn a_rate_limit_is_read_as_servers_write_it() {
        // 2026-11-26T13:45:00Z
        let wall = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(1_795_700_700));
        let wall = wall.unwrap();
        for (reset, expect) in [
            ("2026-11-26T13:50:00.000000Z", Some(300)),
            ("2026-11-26T13:40:00Z", Some(0)),
            ("2027-03-01T13:45:00Z", Some(95 * 86_400)),
            ("1795700760", Some(60)),
            ("30", Some(30)),
            ("2026-11-26T13:50:00+01:00", None),
            ("2026-13-26T13:50:00Z", None),
            ("99999999999999999999-11-26T13:50:00Z", None),
            ("", None),
        ] {
            let found = rate_limit(&headers(&[("x-ratelimit-reset", reset)]), wall);
            assert_eq!(found.reset_s, expect, "{reset}");
        }
        let found = rate_limit(&headers(&[("x-ratelimit-remaining", "0")]), wall);
        assert_eq!(found.remaining, Some(0));
        assert_eq!(unix_seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(unix_seconds("2000-02-29T00:00:00Z"), Some(951_782_400));
    }

    #[test]
    fn one_gzip_is_the_only_encoding() {
        let coding_of = |values: &[&str]| {
            let lines: Vec<_> = values
                .iter()
                .map(|value| ("content-encoding", *value))
                .collect();
            coding(&headers(&lines))
        };
        assert_eq!(coding_of(&[]), Ok(Coding::Plain));
        assert_eq!(coding_of(&[""]), Ok(Coding::Plain));
        assert_eq!(coding_of(&["identity"]), Ok(Coding::Plain));
        assert_eq!(coding_of(&["GZip"]), Ok(Coding::Gzip));
        assert_eq!(coding_of(&["utf-8, x-gzip"]), Ok(Coding::Gzip));
        for value in ["UTF-8", "none", "binary", "application/json", "\u{e9}"] {
            assert_eq!(coding_of(&[value]), Ok(Coding::Plain));
        }
        for value in ["BR", "gzip, gzip", "gzip,br", "deflate", "zstd"] {
            assert_eq!(coding_of(&[value]), Err(Failure::Encoding));
        }
        assert_eq!(coding_of(&["gzip", "gzip"]), Err(Failure::Encoding));
    }
}
