//! Funkwhale: the domains it knows, by page.
//!
//! In: `/api/v1/federation/domains?page=n`: `{"count":n,"next":…,"results":[{"name":…}]}`. Refused: the address in `next`, which could lead
//! anywhere; that there is one is all that is taken from it.

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

/// Asks for pages until one has no next, or is empty.
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
