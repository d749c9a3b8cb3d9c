//! Funkwhale: the domains that it knows, by page.
//!
//! `/api/v1/federation/domains?page=n` is `{"count":n,"next":…,"results":[{"name":…}]}`. The
//! address in `next` is never followed, because it could lead anywhere. It only shows that there is
//! a next page.

use crate::peers::feed::{Session, Stop};
use crate::peers::page::{Shape, WithoutList};

pub(in crate::peers) static SHAPE: Shape = Shape {
    lists: &["results"],
    names: &["name"],
    inside: &[],
    shunned: &[],
    cursors: &["next"],
    without_list: WithoutList::NoAnswer,
};

/// Requests pages until one has no next page or is empty.
pub(in crate::peers) async fn collect(session: &mut Session<'_>) -> Result<(), Stop> {
    let mut number: u64 = 1;
    loop {
        let path = format!("/api/v1/federation/domains?page={number}&page_size=100");
        let page = session.get(&path, &SHAPE).await?;
        if page.next.is_none() || page.items == 0 {
            return Ok(());
        }
        number = number.saturating_add(1);
    }
}
