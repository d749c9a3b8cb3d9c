//! Mastodon and all software that speaks its API: one flat list without pages.
//!
//! `/api/v1/instance/peers` is an array of names. GoToSocial and some proxies send objects with
//! `domain`. Instances that are suspended there are left out, and obfuscated names are no valid
//! names anyway. The list is missing in limited federation mode or if the operator hides it.

use crate::peers::feed::{Session, Stop};
use crate::peers::page::Shape;

pub(in crate::peers) const PATH: &str = "/api/v1/instance/peers";

pub(in crate::peers) static SHAPE: Shape = Shape {
    shunned: &["suspended_at"],
    ..Shape::of(&[], &["domain"])
};

pub(in crate::peers) async fn collect(session: &mut Session<'_>) -> Result<(), Stop> {
    session.get(PATH, &SHAPE).await.map(|_page| ())
}
