//! PeerTube: the instances that it follows and its followers, by page.
//!
//! `/api/v1/server/following` and `/followers` are
//! `{"total":n,"data":[{"following":{"host":…},"follower":{"host":…}}]}`. One of the two hosts is
//! the host itself, which the sink leaves out. The requests of a check bound the number of pages.

use crate::peers::feed::{Session, Stop};
use crate::peers::page::{Shape, WithoutList};

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

/// Requests both lists, the second one even if the first is refused.
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
