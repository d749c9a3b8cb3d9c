//! Pixelfed: Mastodon's flat list, since 0.12.
//!
//! It is empty unless the operator shows it (`INSTANCE_SHOW_PEERS`), so an empty list is a refusal.

use super::mastodon;
use crate::peers::feed::{Session, Stop};

pub(in crate::peers) async fn collect(session: &mut Session<'_>) -> Result<(), Stop> {
    mastodon::collect(session).await?;
    match session.taken() {
        0 => Err(Stop::Refused),
        _ => Ok(()),
    }
}
