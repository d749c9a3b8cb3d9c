//! The guard of requests by which a page's visitor changes something.
//!
//! A page of another site can make its readers' browsers send a form or a text without asking. It
//! would act in their names, or use up their limits. Messages to Web Push endpoints and
//! registrations of endpoints need no guard: pages of all sites may send them.

use std::error::Error as StdError;
use std::time::Duration;

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body, Bytes};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName};
use thiserror::Error;
use tokio::time::timeout;

pub const JSON: &str = "application/json";
pub const FORM: &str = "application/x-www-form-urlencoded";

/// Browsers name the relation of a request's page to the site here (W3C, Fetch Metadata). Programs
/// and old browsers don't.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Accepted values of [`SITE`]: a page of this site, and a request without a page.
const OWN_SITES: [&str; 2] = ["same-origin", "none"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    pub kind: &'static str,
    pub bytes_max: usize,
    /// Time from the end of the head to the end of the body.
    pub time_max: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    #[error("the request comes from a page of another site: send it from this site's own page")]
    OtherSite,
    #[error("send the header `Content-Type: {0}`")]
    WrongKind(&'static str),
    #[error("the body is longer than {0} bytes")]
    TooLong(usize),
    #[error("the body did not arrive within {0:?}")]
    Late(Duration),
    #[error("the body did not arrive completely")]
    Broken,
}

impl Refused {
    pub fn status(self) -> StatusCode {
        match self {
            Self::OtherSite => StatusCode::FORBIDDEN,
            Self::WrongKind(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Late(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }
}

impl Guard {
    /// Checks a request's head, before the client is charged.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let is_own = |site| OWN_SITES.iter().any(|own| site == own);
        if !headers.get_all(SITE).iter().all(is_own) {
            return Err(Refused::OtherSite);
        }
        let mut kinds = headers.get_all(CONTENT_TYPE).iter();
        let kind = match (kinds.next(), kinds.next()) {
            (Some(one), None) => one.to_str().ok().and_then(|text| text.split(';').next()),
            (None | Some(_), _) => None,
        };
        match kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(self.kind)) {
            true => Ok(()),
            false => Err(Refused::WrongKind(self.kind)),
        }
    }

    /// Checks a request's head, and reads its body.
    pub async fn read<B>(&self, headers: &HeaderMap, body: B) -> Result<Bytes, Refused>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        self.check(headers)?;
        let read = timeout(self.time_max, Limited::new(body, self.bytes_max).collect());
        let read = read
            .await
            .map_err(|_elapsed| Refused::Late(self.time_max))?;
        let read = read.map_err(|error| match error.is::<LengthLimitError>() {
            true => Refused::TooLong(self.bytes_max),
            false => Refused::Broken,
        })?;
        Ok(read.to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use http_body_util::Full;
    use hyper::body::Frame;

    use super::*;

    const GUARD: Guard = Guard {
        kind: JSON,
        bytes_max: 4,
        time_max: Duration::from_secs(5),
    };

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let parsed = lines.iter().map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, value.parse().unwrap())
        });
        let mut headers = HeaderMap::new();
        for (name, value) in parsed {
            headers.append(name, value);
        }
        headers
    }

    const KIND: (&str, &str) = ("content-type", "Application/JSON; charset=utf-8");

    #[test]
    fn only_own_pages_and_programs_pass() {
        let site = |site| ("sec-fetch-site", site);
        for (lines, expect) in [
            (&[KIND][..], Ok(())),
            (&[KIND, site("same-origin")], Ok(())),
            (&[KIND, site("none")], Ok(())),
            (&[KIND, site("same-site")], Err(Refused::OtherSite)),
            (&[KIND, site("cross-site")], Err(Refused::OtherSite)),
            (&[KIND, site("Same-Origin")], Err(Refused::OtherSite)),
            (&[KIND, site("")], Err(Refused::OtherSite)),
            (
                &[KIND, site("same-origin"), site("cross-site")],
                Err(Refused::OtherSite),
            ),
        ] {
            assert_eq!(GUARD.check(&headers(lines)), expect, "{lines:?}");
        }
    }

    #[test]
    fn only_the_declared_type_passes() {
        let kind = |kind| ("content-type", kind);
        for lines in [
            &[][..],
            &[kind("text/plain")],
            &[kind("multipart/form-data; boundary=application/json")],
            &[kind("text/plain; application/json")],
            &[kind("application/jsonp")],
            &[kind("text/plain"), kind("application/json")],
        ] {
            let refused = Err(Refused::WrongKind(JSON));
            assert_eq!(GUARD.check(&headers(lines)), refused, "{lines:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_over_its_bounds_is_refused() {
        let whole = async |text: &'static str| {
            let body = Full::new(Bytes::from(text));
            GUARD.read(&headers(&[KIND]), body).await
        };
        assert_eq!(whole("1234").await, Ok(Bytes::from("1234")));
        assert_eq!(whole("12345").await, Err(Refused::TooLong(4)));
        let started = tokio::time::Instant::now();
        let late = GUARD.read(&headers(&[KIND]), NeverEnds).await;
        assert_eq!(late, Err(Refused::Late(GUARD.time_max)));
        assert_eq!(started.elapsed(), GUARD.time_max);
    }

    /// A body that never ends and sends nothing.
    struct NeverEnds;

    impl Body for NeverEnds {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Pending
        }
    }
}
