//! Lemmy: the linked instances, in the shapes that its versions send.
//!
//! The paths are `/api/v3/site` before 0.18, `/api/v3/federated_instances` before 1.0, and since
//! then `/api/v4/federated_instances`, which a private instance answers with 400. `linked` holds
//! names or objects, or there are pages of views with a cursor. The lists of allowed and blocked
//! instances are ignored, because these are no peers.

use url::form_urlencoded;

use crate::peers::feed::{Session, Stop};
use crate::peers::page::{Shape, WithoutList};

/// Lists of linked instances, by version: `linked` below `federated_instances`, or pages of views.
pub(in crate::peers) static SHAPE: Shape = Shape {
    inside: &["instance"],
    shunned: &["blocked"],
    cursors: &["next_page"],
    ..Shape::of(
        &["federated_instances", "linked", "items", "data"],
        &["domain"],
    )
};

/// The list within the description of a site, which lacks the list if federation is off.
pub(in crate::peers) static SITE_SHAPE: Shape = Shape {
    lists: &["federated_instances", "linked"],
    cursors: &[],
    without_list: WithoutList::NoPeers,
    ..SHAPE
};

/// Requests the list where this version has it. The alphas of 1.0 moved it to v4.
pub(in crate::peers) async fn collect(
    session: &mut Session<'_>,
    version: Option<&str>,
) -> Result<(), Stop> {
    const V3: &str = "/api/v3/federated_instances?kind=linked";
    // 50 is the largest page; more is an error, and the default is 20.
    const V4: &str = "/api/v4/federated_instances?kind=linked&limit=50";
    let mut numbers = version.unwrap_or_default().split('.').map(str::parse);
    let paths = match (numbers.next(), numbers.next()) {
        (Some(Ok(0_u32)), Some(Ok(0..18_u32))) => {
            let site = session.get("/api/v3/site", &SITE_SHAPE).await;
            return site.map(|_page| ());
        }
        (Some(Ok(0)), _) => [V3, V4],
        _ => [V4, V3],
    };
    match pages(session, paths[0]).await {
        Err(Stop::Missing) => pages(session, paths[1]).await,
        ended => ended,
    }
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
