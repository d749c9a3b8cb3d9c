//! Walk mode: collects names of other hosts from a host's public posts, threads and favourites,
//! instead of checking it.
//!
//! Takes a fetcher and the order for a walk. Prints `hello`, names as `peers` lines, `walked` and
//! `done`. Rejects what robots.txt forbids, everything over the bounds, and accounts that do not
//! want to be found, with their posts. Posts, accounts and the steps ahead exist only in this
//! process; only names of hosts leave it. Nothing here judges the host.

mod account;
mod ask;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod id;
mod mastodon;
mod misskey;
mod plan;
mod reading;

use protocol::{DeadReason, Event, Private, WalkOrder, WalkOutcome, limits};

use crate::check;
use crate::documents::nodeinfo::About;
use crate::emit::{Emitter, Fault};
use crate::fetch::Fetcher;
use crate::peers::Family;
use crate::peers::sink::Sink;
use ask::{Left, Stop};
use mastodon::Mastodon;
use misskey::Misskey;
use plan::{Plan, Step};
use reading::Reading;

/// Walks through one host and prints its events, `hello` first and `done` last.
pub async fn run(
    fetcher: &mut Fetcher,
    mut emitter: Emitter,
    order: WalkOrder,
) -> Result<(), Fault> {
    emitter.hello()?;
    let mut plan = Plan::new(order.seed);
    let end = match dialect(fetcher).await {
        Ok(dialect) => follow(fetcher, dialect, &mut plan).await,
        Err(end) => end,
    };
    let own = Some(fetcher.host().clone());
    let mut sink = Sink::new(emitter, own, limits::WALK_HOSTS_MAX);
    for host in plan.hosts() {
        if sink.offer(host.as_str()).is_err() {
            break;
        }
    }
    let closed = sink.close()?;
    let mut emitter = closed.emitter;
    emitter.emit(&Event::Walked {
        outcome: match closed.full {
            true => WalkOutcome::Truncated,
            false => end.outcome,
        },
        requests: fetcher.requests(),
        posts: plan.posts(),
        retry_after_s: end.retry_after_s,
    })?;
    Ok(emitter.done(fetcher)?)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ended {
    outcome: WalkOutcome,
    retry_after_s: Option<u64>,
}

impl Ended {
    fn plain(outcome: WalkOutcome) -> Self {
        Self {
            outcome,
            retry_after_s: None,
        }
    }
}

/// The API that the host's software speaks.
#[derive(Debug)]
enum Dialect {
    Mastodon(Mastodon),
    Misskey(Misskey),
}

impl Dialect {
    async fn take(&mut self, fetcher: &mut Fetcher, step: &Step) -> Result<(Reading, Left), Stop> {
        match self {
            Self::Mastodon(mastodon) => mastodon.take(fetcher, step).await,
            Self::Misskey(misskey) => misskey.take(fetcher, step).await,
        }
    }
}

/// Reads robots.txt and NodeInfo, like a check: the host's software, and whether the host wants to
/// be left alone.
async fn dialect(fetcher: &mut Fetcher) -> Result<Dialect, Ended> {
    let about = check::look(fetcher).await.map_err(of_finding)?;
    if check::private(fetcher, &about).await == Private::Yes {
        return Err(Ended::plain(WalkOutcome::Disallowed));
    }
    match Family::of(&about) {
        Family::Mastodon => mastodon(fetcher, &about).await,
        Family::Misskey => Ok(Dialect::Misskey(Misskey::default())),
        // These publish their peers, or have no conversations of this kind.
        Family::Lemmy
        | Family::PieFed
        | Family::Pixelfed
        | Family::Rows
        | Family::Unknown
        | Family::Silent => Err(Ended::plain(WalkOutcome::None)),
    }
}

async fn mastodon(fetcher: &mut Fetcher, about: &About) -> Result<Dialect, Ended> {
    let mastodon = Mastodon::of(fetcher, about).await;
    mastodon.map(Dialect::Mastodon).map_err(of_stop)
}

/// The end of a walk that a check's finding means.
fn of_finding(finding: Event) -> Ended {
    let plain = Ended::plain;
    match finding {
        Event::OptedOut {} => plain(WalkOutcome::Disallowed),
        Event::Gone {} | Event::Moved { .. } => plain(WalkOutcome::NotFound),
        Event::Refused {
            status: 401 | 403 | 451,
            ..
        }
        | Event::Refused { wall: Some(_), .. } => plain(WalkOutcome::AccessControlled),
        Event::Refused { retry_after_s, .. } => Ended {
            outcome: WalkOutcome::Unresponsive,
            retry_after_s,
        },
        Event::Dead {
            reason: DeadReason::NotNodeinfo,
            ..
        } => plain(WalkOutcome::NotJson),
        Event::Dead {
            reason: DeadReason::NoNodeinfo | DeadReason::NodeinfoElsewhere,
            ..
        } => plain(WalkOutcome::NotFound),
        Event::Dead { .. }
        | Event::Hello { .. }
        | Event::Alive(_)
        | Event::Peers { .. }
        | Event::PeersEnd { .. }
        | Event::SuffixLines { .. }
        | Event::Listed { .. }
        | Event::Unlisted { .. }
        | Event::Walked { .. }
        | Event::Posted { .. }
        | Event::Unposted { .. }
        | Event::Done { .. } => plain(WalkOutcome::Unresponsive),
    }
}

/// The end of a walk whose feed, from which it starts, could not be read.
fn of_stop(stop: Stop) -> Ended {
    let outcome = match stop {
        Stop::Disallowed => WalkOutcome::Disallowed,
        Stop::Closed => WalkOutcome::AccessControlled,
        Stop::NotFound => WalkOutcome::NotFound,
        Stop::NotJson => WalkOutcome::NotJson,
        Stop::TooLong | Stop::Spent => WalkOutcome::Truncated,
        Stop::Unresponsive { .. } => WalkOutcome::Unresponsive,
    };
    let retry_after_s = match stop {
        Stop::Unresponsive { retry_after_s } => retry_after_s,
        Stop::Disallowed
        | Stop::Closed
        | Stop::NotFound
        | Stop::NotJson
        | Stop::TooLong
        | Stop::Spent => None,
    };
    Ended {
        outcome,
        retry_after_s,
    }
}

/// Takes one step after another, until nothing new comes or a bound is reached.
async fn follow(fetcher: &mut Fetcher, mut dialect: Dialect, plan: &mut Plan) -> Ended {
    while let Some(step) = plan.next() {
        match dialect.take(fetcher, &step).await {
            Ok((reading, left)) => {
                plan.learn(&step, reading);
                if left == Left::Nothing {
                    return Ended::plain(WalkOutcome::Truncated);
                }
            }
            Err(stop) if step == Step::Feed => return of_stop(stop),
            Err(stop @ (Stop::Unresponsive { .. } | Stop::Spent)) => return of_stop(stop),
            Err(Stop::Closed | Stop::Disallowed) => plan.close(&step),
            // A post may have been deleted or be too long. The next one is tried.
            Err(Stop::NotFound | Stop::NotJson | Stop::TooLong) => {
                plan.learn(&step, Reading::default());
            }
        }
    }
    Ended::plain(WalkOutcome::Complete)
}
