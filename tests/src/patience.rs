//! How much longer than usual a test waits on a slow machine.

use std::time::Duration;

/// Longest wait for something that takes seconds or minutes on an idle machine. It only ends a test
/// that would otherwise wait forever: no test uses it to judge how fast anything is.
pub const PATIENCE: Duration = Duration::from_mins(20);

/// A limit, multiplied by the whole number in `FEDICENSUS_TEST_PATIENCE`, as for an emulated
/// machine.
///
/// It is for waits that only end a test that has failed anyway. What is promised to hosts and
/// operators is never multiplied.
pub fn patient(limit: Duration) -> Duration {
    limit.saturating_mul(factor())
}

/// Scales a test's demand, such as what a day is divided by or the number of checks at once: a slow
/// machine gets less. Otherwise responding hosts would be checked again before all others had their
/// first check, and nothing would ever be complete.
pub fn unhurried(much: u32) -> u32 {
    much.checked_div(factor()).unwrap_or(1).max(1)
}

fn factor() -> u32 {
    std::env::var_os("FEDICENSUS_TEST_PATIENCE")
        .and_then(|text| text.to_str()?.parse().ok())
        .unwrap_or(1)
}
