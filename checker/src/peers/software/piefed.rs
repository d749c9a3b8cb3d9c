//! PieFed: Lemmy's list, under two paths.
//!
//! `/api/alpha/federated_instances` answers 400 unless the operator switches that API on;
//! `/api/v3/federated_instances` has no switch. As with Lemmy, allowed and blocked instances are
//! ignored.

use super::lemmy;
use crate::peers::feed::{Session, Stop};

/// Requests the list, and further pages if a version ever has some.
pub(in crate::peers) async fn collect(session: &mut Session<'_>) -> Result<(), Stop> {
    match lemmy::pages(session, "/api/alpha/federated_instances?kind=linked").await {
        Err(Stop::Refused | Stop::Missing) if session.taken() == 0 => {}
        ended => return ended,
    }
    lemmy::pages(session, "/api/v3/federated_instances?kind=linked").await
}
