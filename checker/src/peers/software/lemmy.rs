//! Lemmy: the linked instances, in the three shapes that its versions send.
//!
//! The paths are `/api/v3/federated_instances` since 0.18, `/api/v3/site` before that, and
//! `/api/v4/federated_instances` since 1.0. `linked` holds names or objects, or there are pages of
//! views with a cursor. The lists of allowed and blocked instances are ignored, because these are
//! no peers.

use url::form_urlencoded;

use crate::peers::feed::{Session, Stop};
use crate::peers::page::{Shape, WithoutList};

/// Lists of linked instances, by version: `linked` below `federated_instances`, or pages of views.
pub(in crate::peers) static SHAPE: Shape = Shape {
    lists: &["federated_instances", "linked", "items", "data"],
    names: &["domain"],
    inside: &["instance"],
    shunned: &["blocked"],
    cursors: &["next_page"],
    without_list: WithoutList::NoAnswer,
};

/// The list within the description of a site, which leaves the list out when federation is off.
pub(in crate::peers) static SITE_SHAPE: Shape = Shape {
    lists: &["federated_instances", "linked"],
    cursors: &[],
    without_list: WithoutList::NoPeers,
    ..SHAPE
};

/// Requests the three paths until one answers.
pub(in crate::peers) async fn collect(session: &mut Session<'_>) -> Result<(), Stop> {
    for prefix in ["/api/v3", "/api/v4"] {
        let path = format!("{prefix}/federated_instances?kind=linked");
        match pages(session, &path).await {
            Err(Stop::Refused) if session.taken() == 0 => {}
            ended => return ended,
        }
    }
    let site = session.get("/api/v3/site", &SITE_SHAPE).await;
    site.map(|_page| ())
}

/// Requests `path` and follows its cursors, until there is none or the same one comes again.
pub(in crate::peers) async fn pages(session: &mut Session<'_>, path: &str) -> Result<(), Stop> {
    let mut page = session.get(path, &SHAPE).await?;
    let mut last = None;
    while let Some(cursor) = page.next.take() {
        if page.items == 0 || last.as_ref() == Some(&cursor) {
            return Ok(());
        }
        let encoded: String = form_urlencoded::byte_serialize(cursor.as_bytes()).collect();
        let next = format!("{path}&page_cursor={encoded}");
        last = Some(cursor);
        page = session.get(&next, &SHAPE).await?;
    }
    Ok(())
}
