//! PieFed: Lemmy's shape under another path.
//!
//! The path is `/api/alpha/federated_instances`. As with Lemmy, allowed and blocked instances are
//! ignored. An operator can switch the API off, which counts as a refusal.

use super::lemmy;
use crate::peers::feed::{Session, Stop};

/// Requests the list, and further pages if a version ever has some.
pub(in crate::peers) async fn collect(session: &mut Session<'_>) -> Result<(), Stop> {
    lemmy::pages(session, "/api/alpha/federated_instances?kind=linked").await
}
