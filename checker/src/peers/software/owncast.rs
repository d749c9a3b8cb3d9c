//! Owncast: the servers that it follows, since 0.3.
//!
//! `/api/federation/servers` is `{"servers":[{"iri":"https://HOST/…"}]}` without pages. The list of
//! followers is about people, so it is never requested.

use crate::peers::feed::{Session, Stop};
use crate::peers::page::{Shape, WithoutList};

pub(in crate::peers) static SHAPE: Shape = Shape {
    lists: &["servers"],
    names: &["iri"],
    inside: &[],
    shunned: &[],
    cursors: &[],
    without_list: WithoutList::NoAnswer,
};

pub(in crate::peers) async fn collect(session: &mut Session<'_>) -> Result<(), Stop> {
    session
        .get("/api/federation/servers", &SHAPE)
        .await
        .map(|_page| ())
}
