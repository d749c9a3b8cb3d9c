//! The steps of one check: hello, robots.txt, NodeInfo, the finding, peers, done.
//!
//! Takes a fetcher for one host and prints events. What a host does becomes a finding; an error is
//! always a fault of ours.

use protocol::order::AskPeers;
use protocol::{DeadReason, Event, Instance, PeersOutcome, Private, Wall};

use crate::documents::nodeinfo::{self, About, NodeinfoError};
use crate::documents::optout;
use crate::documents::robots::{Extent, Rules};
use crate::emit::{Emitter, Fault};
use crate::fetch::{self, Accept, Answer, Failure, Fetcher, Target, TlsFailure};
use crate::peers;
use url::Url;

/// Runs one check and prints its events, `hello` first and `done` last.
pub async fn run(
    fetcher: &mut Fetcher,
    mut emitter: Emitter,
    ask_peers: AskPeers,
) -> Result<(), Fault> {
    emitter.hello()?;
    match look(fetcher).await {
        Ok(about) => {
            let private = private(fetcher, &about).await;
            emitter.emit(&Event::Alive(Instance {
                private,
                ..about.instance.clone()
            }))?;
            emitter = match ask_peers {
                AskPeers::Ask => peers::ask(fetcher, emitter, &about).await?,
                AskPeers::Skip => {
                    emitter.emit(&Event::PeersEnd {
                        outcome: PeersOutcome::None,
                        dropped: 0,
                    })?;
                    emitter
                }
            };
        }
        Err(finding) => emitter.emit(&finding)?,
    }
    Ok(emitter.done(fetcher)?)
}

/// What NodeInfo says about the host, or the finding that ends the check.
pub(crate) async fn look(fetcher: &mut Fetcher) -> Result<About, Event> {
    let rules = robots(fetcher).await.map_err(|no_rules| match no_rules {
        NoRules::Refused(refused) => refused.into(),
        NoRules::Unavailable(status) => Event::Dead {
            reason: DeadReason::RobotsUnavailable,
            status,
            to: None,
        },
        NoRules::Failed(failure) => finding(failure),
    })?;
    fetcher.obey(rules);

    let answer = ask(fetcher, nodeinfo::WELL_KNOWN_PATH).await?;
    if answer.status == 410 {
        return Err(Event::Gone {});
    }
    let pointer_url = answer.url.clone();
    let links = document(fetcher, answer, nodeinfo::links).await?;
    linked(fetcher, &pointer_url, &links).await
}

/// What the document behind the best link says. After a 404 the next best link is tried, at most
/// one for each version.
async fn linked(fetcher: &mut Fetcher, base: &Url, links: &[String]) -> Result<About, Event> {
    let mut asked = Vec::new();
    for link in links {
        let url = match fetcher.resolve(base, link.as_bytes()) {
            Target::Here(url) => url,
            Target::Elsewhere(host) => {
                return Err(dead_at(DeadReason::NodeinfoElsewhere, host.to_string()));
            }
            Target::Nowhere(text) => return Err(dead_at(DeadReason::NodeinfoElsewhere, text)),
        };
        if asked.contains(&url) {
            continue;
        }
        let answer = ask(fetcher, url.as_str()).await?;
        asked.push(url);
        if answer.status != 404 || answer.wall.is_some() {
            return document(fetcher, answer, nodeinfo::read).await;
        }
    }
    Err(dead_with(DeadReason::NoNodeinfo, 404))
}

/// Why no request may be made.
pub(crate) enum NoRules {
    /// The host limits how often it answers, with 429, or 503 and `Retry-After`; or a wall answered
    /// 3xx or 5xx. Other 4xx allow everything (RFC 9309 §2.3.1.3).
    Refused(Refusal),
    /// robots.txt answered in a way that forbids further requests, with this status if there was
    /// one.
    Unavailable(Option<u16>),
    /// The host did not answer.
    Failed(Failure),
}

/// The rules of robots.txt (RFC 9309 §2.3.1).
pub(crate) async fn robots(fetcher: &mut Fetcher) -> Result<Rules, NoRules> {
    let ask = fetcher.ask_for("/robots.txt");
    let mut ask = ask.map_err(|_no_url| NoRules::Unavailable(None))?;
    ask.accept = Accept::Text;
    let answer = match fetcher.get(ask).await {
        Ok(answer) => answer,
        // Redirects that can't be followed make robots.txt unavailable, which allows everything.
        // They never count as a move.
        Err(
            Failure::Moved(_)
            | Failure::Temporary(_)
            | Failure::BadRedirect(_)
            | Failure::RedirectToSelf
            | Failure::RedirectLoop,
        ) => return Ok(Rules::AllowAll),
        Err(failure) => return Err(NoRules::Failed(failure)),
    };
    let status = answer.status;
    match status {
        200..=299 => {}
        400..=499 if status != 429 => return Ok(Rules::AllowAll),
        _ => {
            let refusal = refusal(answer).await.map_err(NoRules::Refused);
            return refusal.and(Err(NoRules::Unavailable(Some(status))));
        }
    }
    let bytes_max = fetcher.limits().robots_bytes;
    let mut body = answer.body(bytes_max).map_err(NoRules::Failed)?;
    let mut file = Vec::new();
    loop {
        match body.next().await {
            Ok(Some(piece)) => file.extend_from_slice(&piece),
            Ok(None) => return Ok(Rules::parse(&file, Extent::Whole)),
            Err(Failure::TooLarge) => return Ok(Rules::parse(&file, Extent::Cut)),
            Err(Failure::BrokenOff) => return Err(NoRules::Unavailable(None)),
            Err(failure) => return Err(NoRules::Failed(failure)),
        }
    }
}

/// Requests one of the two NodeInfo documents.
async fn ask(fetcher: &mut Fetcher, path: &str) -> Result<Answer, Event> {
    let ask = ask_for(fetcher, path)?;
    fetcher.get(ask).await.map_err(finding)
}

fn ask_for(fetcher: &Fetcher, path: &str) -> Result<fetch::Ask, Event> {
    let ask = fetcher.ask_for(path);
    ask.map_err(|_no_url| dead(DeadReason::NoNodeinfo))
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    wall: Option<Wall>,
    retry_after_s: Option<u64>,
}

impl From<Refusal> for Event {
    fn from(refusal: Refusal) -> Self {
        Self::Refused {
            status: refusal.status,
            wall: refusal.wall,
            retry_after_s: refusal.retry_after_s,
        }
    }
}

/// Fails if an answer other than 200 refuses: by its status, or as a wall.
async fn refusal(answer: Answer) -> Result<(), Refusal> {
    let (status, retry_after_s) = (answer.status, answer.retry_after_s);
    let is_busy = status == 503 && retry_after_s.is_some();
    let wall = answer.into_wall().await;
    if is_busy || wall.is_some() || matches!(status, 401 | 403 | 429 | 451) {
        return Err(Refusal {
            status,
            wall,
            retry_after_s,
        });
    }
    Ok(())
}

/// What a good answer says, or what its status or its wall means.
async fn document<T>(
    fetcher: &Fetcher,
    answer: Answer,
    read: impl FnOnce(&[u8]) -> Result<T, NodeinfoError>,
) -> Result<T, Event> {
    let (status, wall) = (answer.status, answer.wall);
    if status != 200 {
        refusal(answer).await?;
        return Err(match status {
            404 => dead_with(DeadReason::NoNodeinfo, status),
            _ => dead_with(DeadReason::Status, status),
        });
    }
    let refused = |wall| Event::Refused {
        status,
        wall: Some(wall),
        retry_after_s: None,
    };
    let unread = |failure| wall.map_or_else(|| finding(failure), refused);
    let bytes_max = fetcher.limits().nodeinfo_bytes;
    let mut body = answer.body(bytes_max).map_err(unread)?;
    let document = body.whole().await.map_err(unread)?;
    read(&document).map_err(|error| {
        let wall = wall.or_else(|| fetch::wall_in_body(status, &document));
        wall.map_or_else(|| no_nodeinfo(&error), refused)
    })
}

/// Whether the instance asks to be left out of statistics. Unknown if the flag can't be read.
pub(crate) async fn private(fetcher: &mut Fetcher, about: &About) -> Private {
    if about.instance.private == Private::Yes {
        return Private::Yes;
    }
    let Some(flag) = optout::flag_of(about.software()) else {
        return Private::No;
    };
    let bytes_max = fetcher.limits().flag_bytes;
    let Ok(ask) = fetcher.ask_for(flag.path()) else {
        return Private::Unknown;
    };
    let document = match fetcher.get(ask).await {
        Ok(answer) if answer.status == 200 => match answer.body(bytes_max) {
            Ok(mut body) => body.whole().await,
            Err(failure) => Err(failure),
        },
        Ok(_) | Err(_) => return Private::Unknown,
    };
    document.map_or(Private::Unknown, |document| flag.read(&document))
}

/// The finding that a failure means for robots.txt and NodeInfo.
fn finding(failure: Failure) -> Event {
    match failure {
        Failure::Disallowed => Event::OptedOut {},
        Failure::Moved(to) => Event::Moved { to },
        Failure::Temporary(to) => dead_at(DeadReason::TemporaryRedirect, to.to_string()),
        Failure::BadRedirect(Some(to)) => dead_at(DeadReason::BadRedirect, to),
        Failure::BadRedirect(None) => dead(DeadReason::BadRedirect),
        Failure::RedirectToSelf => dead(DeadReason::RedirectToSelf),
        // A check without requests left was sent from page to page.
        Failure::RedirectLoop | Failure::Requests => dead(DeadReason::RedirectLoop),
        Failure::Tls(failure) => dead(tls_reason(failure)),
        Failure::Http | Failure::BrokenOff => dead(DeadReason::Http),
        Failure::Timeout => dead(DeadReason::Timeout),
        Failure::Deadline => dead(DeadReason::Deadline),
        Failure::TooSlow => dead(DeadReason::TooSlow),
        Failure::TooLarge => dead(DeadReason::TooLarge),
        Failure::Encoding => dead(DeadReason::Encoding),
    }
}

fn tls_reason(failure: TlsFailure) -> DeadReason {
    match failure {
        TlsFailure::Expired => DeadReason::TlsExpired,
        TlsFailure::NotYetValid => DeadReason::TlsNotYetValid,
        TlsFailure::WrongName => DeadReason::TlsWrongName,
        TlsFailure::SelfSigned => DeadReason::TlsSelfSigned,
        TlsFailure::UnknownIssuer => DeadReason::TlsUnknownIssuer,
        TlsFailure::IncompleteChain => DeadReason::TlsIncompleteChain,
        TlsFailure::Unsupported => DeadReason::TlsUnsupported,
        TlsFailure::Closed => DeadReason::TlsClosed,
        TlsFailure::Other => DeadReason::Tls,
    }
}

fn no_nodeinfo(error: &NodeinfoError) -> Event {
    match error {
        NodeinfoError::NoLink => dead(DeadReason::NoNodeinfo),
        NodeinfoError::Json(_) | NodeinfoError::NotNodeinfo => dead(DeadReason::NotNodeinfo),
    }
}

fn dead(reason: DeadReason) -> Event {
    Event::Dead {
        reason,
        status: None,
        to: None,
    }
}

fn dead_with(reason: DeadReason, status: u16) -> Event {
    Event::Dead {
        reason,
        status: Some(status),
        to: None,
    }
}

/// Both texts fit an event: a host name takes at most 253 bytes, and other texts have their own
/// bounds.
fn dead_at(reason: DeadReason, to: String) -> Event {
    Event::Dead {
        reason,
        status: None,
        to: Some(to),
    }
}
