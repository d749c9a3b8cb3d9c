//! PieFed: the shape of Lemmy under an address of its own.
//!
//! In: `/api/alpha/federated_instances`. Refused: as in Lemmy's. An operator can switch the API off, which is a refusal.

use super::lemmy;
use crate::peers::feed::{Session, Stop};

/// Asks once, and for further pages if it ever gets some.
pub(in crate::peers) async fn collect(session: &mut Session<'_>) -> Result<(), Stop> {
    lemmy::pages(session, "/api/alpha/federated_instances?kind=linked").await
}
