//! PieFed: the shape of Lemmy under an address of its own.
//!
//! In: `/api/alpha/federated_instances`. Refused: as in Lemmy's. An operator can switch the API off, which is a refusal.

use super::feed::{Session, Stop};
use super::lemmy;

/// Asks once, and for further pages if it ever gets some.
pub(super) async fn collect(session: &mut Session<'_>) -> Result<(), Stop> {
    lemmy::pages(session, "/api/alpha/federated_instances?kind=linked").await
}
