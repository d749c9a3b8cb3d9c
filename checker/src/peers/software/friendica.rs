//! Friendica: Mastodon's list, and where that is missing, its own directory of servers.
//!
//! In: `/poco/@server`: an array of objects with `url`, or an object that holds it as `entry`. Refused: as everywhere, what is no name.

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

/// Asks for the flat list, then for the directory.
pub(in crate::peers) async fn collect(session: &mut Session<'_>) -> Result<(), Stop> {
    match mastodon::collect(session).await {
        Err(Stop::Refused | Stop::Failed) if session.taken() == 0 => {}
        ended => return ended,
    }
    session.get("/poco/@server", &SHAPE).await.map(|_page| ())
}
