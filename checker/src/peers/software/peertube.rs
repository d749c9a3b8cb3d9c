//! PeerTube: whom it follows and who follows it, by page.
//!
//! In: `/api/v1/server/following` and `/followers`: `{"total":n,"data":[{"following":{"host":…},"follower":{"host":…}}]}`. One of the two is the
//! host itself, which the sink leaves out. The number of pages is bounded by the requests of a check.

use crate::peers::feed::{Session, Stop};
use crate::peers::page::{Shape, WithoutList};

/// The largest page that PeerTube gives.
const PAGE_ITEMS: u64 = 100;

pub(in crate::peers) static FOLLOWING: Shape = Shape {
    lists: &["data"],
    names: &["host"],
    inside: &["following"],
    shunned: &[],
    cursors: &[],
    without_list: WithoutList::NoAnswer,
};

pub(in crate::peers) static FOLLOWERS: Shape = Shape {
    inside: &["follower"],
    ..FOLLOWING
};

/// Asks for both lists; the second is asked for even if the first is refused.
pub(in crate::peers) async fn collect(session: &mut Session<'_>) -> Result<(), Stop> {
    let following = pages(session, "following", &FOLLOWING).await;
    if following == Err(Stop::Truncated) {
        return following;
    }
    let followers = pages(session, "followers", &FOLLOWERS).await;
    following.and(followers)
}

async fn pages(session: &mut Session<'_>, list: &str, shape: &'static Shape) -> Result<(), Stop> {
    let mut start: u64 = 0;
    loop {
        let path = format!("/api/v1/server/{list}?start={start}&count={PAGE_ITEMS}&state=accepted");
        let page = session.get(&path, shape).await?;
        if page.items < PAGE_ITEMS {
            return Ok(());
        }
        start = start.saturating_add(page.items);
    }
}
