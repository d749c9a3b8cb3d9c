//! Mbin and kbin: one list of objects, never paged.
//!
//! In: `/api/federated`: `{"instances":[{"domain":…}]}`. Refused: nothing beyond what every list is; the lists of defederated and dead instances are
//! not asked for.

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

/// Asks once.
pub(in crate::peers) async fn collect(session: &mut Session<'_>) -> Result<(), Stop> {
    session.get("/api/federated", &SHAPE).await.map(|_page| ())
}
