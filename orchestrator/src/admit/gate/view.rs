//! The gate's state as `status` shows it.

use admission::{Room, Terms, TestDomain};
use census::time::{Timestamp, rfc3339};
use serde::{Deserialize, Serialize};

use super::state::GateState;
use crate::admit::policy::Files;

/// What `status` and the daemon's log say while `[lab] test_domain` is on.
pub const TEST_DOMAIN_WARNING: &str = "anyone can submit hosts as `test.sigsum.org`, because its secret key is public: remove `test_domain` from the settings file's `[lab]` and restart";

/// Why a name waits, as text.
pub fn why_it_waits(room: Room) -> &'static str {
    match room {
        Room::Rule => "the admission rules had no room for its domain or submitter",
        Room::Source => "its source had brought too many new names that day",
        Room::SharedSuffix => "too many new names came below its shared suffix that day",
        Room::Total => "the day's total of new names was reached",
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateView {
    /// Names admitted in this window, without those that the operator brought or that a rule for
    /// their submitter admitted.
    pub admitted: u32,
    /// New names refused in this window since the start.
    pub refused: u64,
    /// Names skipped in this window since the start: they were banned, or had neither room nor a
    /// place to wait, so they were not looked up. Nearly all are unknown; memory misses a few known
    /// ones.
    pub passed_over: u64,
    /// Names that wait for room.
    pub waiting: u64,
    /// When the next window begins, in seconds since 1970.
    pub window_end_s: Option<u64>,
    /// The rules and lists in force, as text.
    pub in_force: String,
    /// Whether the lists of the operator's seeds and sources are taken whole.
    pub is_young: bool,
    /// Whether tokens of `test.sigsum.org`, which anyone can make, are accepted.
    pub takes_test_domain: bool,
}

impl GateView {
    pub(super) fn of(state: &GateState, files: &Files, terms: &Terms) -> Self {
        Self {
            admitted: state.counters.total().saturating_add(state.beyond_total),
            refused: state.refused,
            passed_over: state.passed_over,
            waiting: u64::try_from(state.waiting.len()).unwrap_or(u64::MAX),
            window_end_s: state.counters.window_end_s(),
            in_force: files.in_words(terms),
            is_young: state.young_left_s > 0,
            takes_test_domain: terms.policy.test_domain == TestDomain::Allow,
        }
    }

    /// The state in one line.
    pub fn text(&self) -> String {
        let until = self
            .window_end_s
            .and_then(|end| i64::try_from(end).ok())
            .map(|end| format!(" until {}", rfc3339(Timestamp(end.saturating_mul(1000)))))
            .unwrap_or_default();
        let young = if self.is_young {
            "; on its first day, the seeds' and sources' lists are taken whole"
        } else {
            ""
        };
        format!(
            "{} admitted, {} refused, {} passed over in the window{until}; {} wait; {}{young}",
            self.admitted, self.refused, self.passed_over, self.waiting, self.in_force
        )
    }
}
