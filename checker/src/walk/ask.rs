//! One request of a walk: takes a path and gives a whole JSON document, or why there is none.

use crate::fetch::{Ask, Failure, Fetcher};
use protocol::limits::WALK_ANSWER_BYTES_MAX;

/// Why a step gave nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Disallowed,
    /// The host shows this only after a login: 400 (used by Misskey), 401, 403, 422 or 451.
    Closed,
    /// It does not exist, or is elsewhere: any other 4xx, or a redirect to another host.
    NotFound,
    /// The answer is not JSON of this kind.
    NotJson,
    /// The answer is over its bound.
    TooLong,
    /// A bound of the walk is reached: time, requests or bytes.
    Spent,
    /// No answer in time, none at all, 429 or 5xx.
    Unresponsive {
        /// When the host allows the next request, in seconds from now.
        retry_after_s: Option<u64>,
    },
}

/// Whether the host allows more requests now, by its `X-RateLimit-Remaining`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Something,
    Nothing,
}

/// Requests JSON at `path`, and posts `json` if it is given.
pub(super) async fn document(
    fetcher: &mut Fetcher,
    path: &str,
    json: Option<String>,
) -> Result<(Vec<u8>, Left), Stop> {
    let ask = fetcher.ask_for(path).map_err(|_no_url| Stop::NotFound)?;
    let answer = fetcher.get(Ask { post: json, ..ask }).await;
    let answer = answer.map_err(Stop::from)?;
    let retry_after_s = answer.retry_after_s.or(answer.limit.reset_s);
    match answer.status {
        _ if answer.wall.is_some() => return Err(Stop::Closed),
        200 if answer.is_html => return Err(Stop::NotJson),
        200 => {}
        400 | 401 | 403 | 422 | 451 => return Err(Stop::Closed),
        429 | 500..=599 => return Err(Stop::Unresponsive { retry_after_s }),
        400..=499 => return Err(Stop::NotFound),
        _ => return Err(Stop::NotJson),
    }
    let left = match answer.limit.remaining {
        Some(0) => Left::Nothing,
        Some(_) | None => Left::Something,
    };
    let mut body = answer.body(WALK_ANSWER_BYTES_MAX).map_err(Stop::from)?;
    Ok((body.whole().await.map_err(Stop::from)?, left))
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Disallowed => Self::Disallowed,
            Failure::Moved(_)
            | Failure::Temporary(_)
            | Failure::BadRedirect(_)
            | Failure::RedirectToSelf
            | Failure::RedirectLoop => Self::NotFound,
            Failure::TooLarge => Self::TooLong,
            Failure::Requests | Failure::Deadline => Self::Spent,
            Failure::Encoding => Self::NotJson,
            Failure::Tls(_)
            | Failure::Http
            | Failure::BrokenOff
            | Failure::Timeout
            | Failure::TooSlow => Self::Unresponsive {
                retry_after_s: None,
            },
        }
    }
}
