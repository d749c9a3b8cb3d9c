//! Friendica: Mastodon's list; where that is missing, its own directory of servers.
//!
//! `/poco/@server` is an array of objects with `url`, or an object that holds the array as `entry`.

use super::mastodon;
use crate::peers::feed::{Session, Stop};
use crate::peers::page::{Shape, WithoutList};

pub(in crate::peers) static SHAPE: Shape = Shape {
    lists: &["entry"],
    names: &["url"],
    inside: &[],
    shunned: &[],
    cursors: &[],
    without_list: WithoutList::NoAnswer,
};

/// Requests the flat list, then the directory.
pub(in crate::peers) async fn collect(session: &mut Session<'_>) -> Result<(), Stop> {
    match mastodon::collect(session).await {
        Err(Stop::Refused | Stop::Failed) if session.taken() == 0 => {}
        ended => return ended,
    }
    session.get("/poco/@server", &SHAPE).await.map(|_page| ())
}
