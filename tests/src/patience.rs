//! How much longer than usual a test waits on a slow machine.

use std::time::Duration;

/// A limit, multiplied by the whole number that `FEDICENSUS_TEST_PATIENCE` says, as for an emulated machine.
///
/// It is for waits that only end a test that has failed anyway. What is promised to hosts and operators is never multiplied.
pub fn patient(limit: Duration) -> Duration {
    let factor = std::env::var_os("FEDICENSUS_TEST_PATIENCE")
        .and_then(|text| text.to_str()?.parse().ok())
        .unwrap_or(1);
    limit.saturating_mul(factor)
}
