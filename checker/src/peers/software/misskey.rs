//! Misskey and its forks: Mastodon's flat list; where that is missing, pages by POST.
//!
//! `POST /api/federation/instances` with `{"limit":100,"offset":n,"sort":"+firstRetrievedAt"}`
//! gives arrays of objects with `host`. Of the pages, suspended and blocked instances are left out;
//! the flat list does not mark blocked ones.
//! The requests of a check bound the number of pages.

use super::mastodon;
use crate::peers::feed::{Session, Stop};
use crate::peers::page::Shape;

const PATH: &str = "/api/federation/instances";

const PAGE_ITEMS: u64 = 100;

pub(in crate::peers) static SHAPE: Shape = Shape {
    shunned: &["isSuspended", "isBlocked"],
    ..Shape::of(&[], &["host"])
};

/// Requests the flat list, then pages until one is not full.
pub(in crate::peers) async fn collect(session: &mut Session<'_>) -> Result<(), Stop> {
    match mastodon::collect(session).await {
        // Older versions answer an unknown path with 404 or with the page of their user interface.
        // A private instance answers both paths with 401.
        Err(Stop::Missing | Stop::Failed) if session.taken() == 0 => {}
        ended => return ended,
    }
    let mut offset: u64 = 0;
    loop {
        let json =
            format!(r#"{{"limit":{PAGE_ITEMS},"offset":{offset},"sort":"+firstRetrievedAt"}}"#);
        let page = session.post(PATH, json, &SHAPE).await?;
        if page.items < PAGE_ITEMS {
            return Ok(());
        }
        offset = offset.saturating_add(page.items);
    }
}
