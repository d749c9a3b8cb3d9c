//! Mbin and kbin: one list of objects without pages.
//!
//! `/api/federated` is `{"instances":[{"domain":…}]}`. The lists of defederated and dead instances
//! are not requested.

use crate::peers::feed::{Session, Stop};
use crate::peers::page::{Shape, WithoutList};

pub(in crate::peers) static SHAPE: Shape = Shape {
    lists: &["instances"],
    names: &["domain"],
    inside: &[],
    shunned: &[],
    cursors: &[],
    without_list: WithoutList::NoAnswer,
};

pub(in crate::peers) async fn collect(session: &mut Session<'_>) -> Result<(), Stop> {
    session.get("/api/federated", &SHAPE).await.map(|_page| ())
}
