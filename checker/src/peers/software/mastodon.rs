//! Mastodon and all that speak its API: one flat list, never paged.
//!
//! In: `/api/v1/instance/peers`: an array of names; GoToSocial and some proxies send objects with `domain`. Refused: names that are suspended
//! there; obfuscated ones are no names anyway. The list is not there where limited federation or the operator says so.

use crate::peers::feed::{Session, Stop};
use crate::peers::page::{Shape, WithoutList};

/// Where the list stands.
pub(in crate::peers) const PATH: &str = "/api/v1/instance/peers";

/// How it looks.
pub(in crate::peers) static SHAPE: Shape = Shape {
    lists: &[],
    names: &["domain"],
    inside: &[],
    shunned: &["suspended_at"],
    cursors: &[],
    without_list: WithoutList::NoAnswer,
};

/// Asks once.
pub(in crate::peers) async fn collect(session: &mut Session<'_>) -> Result<(), Stop> {
    session.get(PATH, &SHAPE).await.map(|_page| ())
}
