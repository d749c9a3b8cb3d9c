//! How much longer than usual a test waits on a slow machine.

use std::time::Duration;

/// Longest that a test waits for what happens within seconds or minutes on an idle machine. It only
/// ends a test that would wait for ever: no test judges by it how fast anything is.
pub const PATIENCE: Duration = Duration::from_mins(20);

/// A limit, multiplied by the whole number that `FEDICENSUS_TEST_PATIENCE` says, as for an emulated machine.
///
/// It is for waits that only end a test that has failed anyway. What is promised to hosts and operators is never multiplied.
pub fn patient(limit: Duration) -> Duration {
    limit.saturating_mul(factor())
}

/// How much a story asks for, such as what a day is divided by or how many checks run at once; on a slow machine that much less: else who lives is
/// asked again before all others were asked once, and nothing is ever at its end.
pub fn unhurried(much: u32) -> u32 {
    much.checked_div(factor()).unwrap_or(1).max(1)
}

fn factor() -> u32 {
    std::env::var_os("FEDICENSUS_TEST_PATIENCE")
        .and_then(|text| text.to_str()?.parse().ok())
        .unwrap_or(1)
}
