//! Detects when no check succeeds: failures pile up, in total or over one address family. Also
//! detects when some checks succeed, but none can confirm the failures (invariant I5).
//!
//! It takes the outcomes of checks, and reports once when a blackout begins, with the most likely
//! cause, and once when it ends. It does not decide whether the failures count:
//! [`crate::blame::doubt`] does. Pure: the caller passes the time.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use census::time::Timestamp;
use protocol::egress::Family;
use serde::{Deserialize, Serialize};

use crate::blame::doubt::{CANARY_AFTER, CONFIRM_WITHIN};

/// Failures in a row without a success before a blackout is reported. A list of peers often
/// contains a shorter run of unreachable names.
const FAILURES_MIN: u64 = 10;

/// The time without a success that is also required. A fast census meets ten unreachable names in a
/// row within a second.
const SILENT_FOR: Duration = Duration::from_secs(20);

/// The same while no check has succeeded since the start: a new census has five seeds, and its
/// first minutes are those in which the operator watches.
const FAILURES_AT_START_MIN: u64 = 3;
const SILENT_AT_START_FOR: Duration = Duration::from_secs(10);

/// The time without a success over one family while the other family works. Few hosts may use that
/// family, and the canary that is then checked for it needs time to answer.
const FAMILY_SILENT_FOR: Duration = CANARY_AFTER.saturating_add(Duration::from_secs(15));

/// Most kinds of failure that are distinguished. There are fewer reasons.
const KINDS_MAX: usize = 64;

const KINDS_TOLD: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Anywhere,
    /// Over IPv4.
    V4,
    /// Over IPv6.
    V6,
    /// At an address that could confirm the failures: a different one from theirs.
    Elsewhere,
}

/// A blackout, as `status` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoSuccess {
    pub scope: Scope,
    /// The first failure after the last success, in ms since 1970.
    pub since_ms: i64,
    /// Failed checks since then, none of which counts.
    pub failures: u64,
    /// The most frequent kinds of failure, with their numbers.
    pub most_often: Vec<(String, u64)>,
    /// What the operator should check first.
    pub hint: String,
}

/// A blackout that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Over {
    pub scope: Scope,
    pub lasted: Duration,
    /// Checks that failed during it.
    pub failures: u64,
    /// Those that waited in vain for a confirmation and were dropped.
    pub dropped: u64,
}

/// Tracks failures and successes to detect blackouts.
#[derive(Debug, Default)]
pub struct Blackout {
    all: Row,
    v4: Row,
    v6: Row,
    /// Failures that were dropped without a confirmation.
    unwitnessed: Row,
    has_lived: bool,
}

#[derive(Debug, Default)]
struct Row {
    since: Option<Timestamp>,
    failures: u64,
    kinds: BTreeMap<String, u64>,
    dropped: u64,
    /// Until this time a blackout of another scope explained the failures.
    explained_until: Option<Timestamp>,
    told: bool,
}

impl Blackout {
    /// Records a failed check. `kind` names the failure, and `families` are those of its dials.
    pub fn fail(&mut self, kind: &str, families: &[Family], now: Timestamp) {
        self.all.add(kind, now);
        for family in families {
            self.over(*family).add(kind, now);
        }
    }

    /// Records that a failure of this kind was dropped because no check confirmed it in time.
    pub fn dropped(&mut self, kind: &str, now: Timestamp) {
        let rows = [&mut self.all, &mut self.v4, &mut self.v6];
        let explained = rows.iter().any(|row| row.told);
        for row in rows {
            row.dropped = row.dropped.saturating_add(1);
        }
        if !explained {
            self.unwitnessed.add(kind, now);
            self.unwitnessed.dropped = self.unwitnessed.failures;
        }
    }

    /// Records that a failure was confirmed. Returns the blackout that this ends, if any.
    pub fn witnessed(&mut self, now: Timestamp) -> Option<Over> {
        let row = std::mem::take(&mut self.unwitnessed);
        row.told.then(|| row.end(Scope::Elsewhere, now))
    }

    /// Records a check that succeeded. Returns the blackouts that this ends.
    pub fn lived(&mut self, family: Family, now: Timestamp) -> Vec<Over> {
        self.has_lived = true;
        let all = std::mem::take(&mut self.all);
        let own = std::mem::take(self.over(family));
        if all.told {
            // The total blackout also explains the families' failures. Each family gets time to
            // succeed again before its own blackout is reported.
            for row in [&mut self.v4, &mut self.v6] {
                row.explained_until = Some(now);
            }
        }
        let scope = match family {
            Family::V4 => Scope::V4,
            Family::V6 => Scope::V6,
        };
        [(all, Scope::Anywhere), (own, scope)]
            .into_iter()
            .filter(|(row, _)| row.told)
            .map(|(row, scope)| row.end(scope, now))
            .collect()
    }

    /// The blackout that has begun since the last call. Each is returned once.
    pub fn look(&mut self, now: Timestamp) -> Option<NoSuccess> {
        let has_lived = self.has_lived;
        let rows = [
            (&mut self.all, Scope::Anywhere),
            (&mut self.v4, Scope::V4),
            (&mut self.v6, Scope::V6),
            (&mut self.unwitnessed, Scope::Elsewhere),
        ];
        for (row, scope) in rows {
            if row.begins(scope, has_lived, now) {
                return row.describe(scope);
            }
            if row.told && scope == Scope::Anywhere {
                return None;
            }
        }
        None
    }

    /// Whether no check at all succeeds.
    pub fn is_total(&self) -> bool {
        self.all.told
    }

    /// The first failure after the last success, whether or not that is a blackout.
    pub fn since(&self) -> Option<Timestamp> {
        self.all.since
    }

    /// The current blackout, if there is one.
    pub fn describe(&self) -> Option<NoSuccess> {
        let rows = [
            (&self.all, Scope::Anywhere),
            (&self.v4, Scope::V4),
            (&self.v6, Scope::V6),
            (&self.unwitnessed, Scope::Elsewhere),
        ];
        rows.into_iter()
            .find(|(row, _)| row.told)
            .and_then(|(row, scope)| row.describe(scope))
    }

    fn over(&mut self, family: Family) -> &mut Row {
        match family {
            Family::V4 => &mut self.v4,
            Family::V6 => &mut self.v6,
        }
    }
}

impl Row {
    fn add(&mut self, kind: &str, now: Timestamp) {
        let since = self.since.get_or_insert(now);
        // If the clock was set back, the row begins at the new time.
        *since = now.min(*since);
        self.failures = self.failures.saturating_add(1);
        if self.kinds.len() < KINDS_MAX || self.kinds.contains_key(kind) {
            let count = self.kinds.entry(kind.to_owned()).or_default();
            *count = count.saturating_add(1);
        }
    }

    fn begins(&mut self, scope: Scope, has_lived: bool, now: Timestamp) -> bool {
        let (failures_min, silent_for) = match scope {
            Scope::Anywhere if !has_lived => (FAILURES_AT_START_MIN, SILENT_AT_START_FOR),
            Scope::Anywhere | Scope::Elsewhere => (FAILURES_MIN, SILENT_FOR),
            Scope::V4 | Scope::V6 => (FAILURES_MIN, FAMILY_SILENT_FOR),
        };
        let silent = self.since.is_some_and(|at| now.since(at) >= silent_for);
        // What failed in a blackout of all still waits to be confirmed or dropped, and none of it
        // is checked before that.
        let explained = self.explained_until;
        let explained = explained.is_some_and(|until| now.since(until) < CONFIRM_WITHIN);
        let begins = !self.told && silent && !explained && self.failures >= failures_min;
        self.told |= begins;
        begins
    }

    fn end(self, scope: Scope, now: Timestamp) -> Over {
        Over {
            scope,
            lasted: now.since(self.since.unwrap_or(now)),
            failures: self.failures,
            dropped: self.dropped,
        }
    }

    fn describe(&self, scope: Scope) -> Option<NoSuccess> {
        let mut kinds: Vec<_> = self.kinds.clone().into_iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        kinds.truncate(KINDS_TOLD);
        Some(NoSuccess {
            scope,
            since_ms: self.since?.0,
            failures: self.failures,
            hint: hint(kinds.first().map_or("", |(kind, _)| kind), scope),
            most_often: kinds,
        })
    }
}

impl NoSuccess {
    /// The most frequent kinds, on one line.
    pub fn kinds(&self) -> String {
        let kinds: Vec<_> = self
            .most_often
            .iter()
            .map(|(kind, count)| format!("{kind} ×{count}"))
            .collect();
        kinds.join(", ")
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anywhere => "NO CHECK SUCCEEDS",
            Self::V4 => "NO CHECK SUCCEEDS over IPv4",
            Self::V6 => "NO CHECK SUCCEEDS over IPv6",
            Self::Elsewhere => "NO FAILURE IS CONFIRMED",
        })
    }
}

impl fmt::Display for NoSuccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.scope {
            Scope::Anywhere => "checks in a row failed",
            Scope::V4 => "checks in a row failed over IPv4",
            Scope::V6 => "checks in a row failed over IPv6",
            Scope::Elsewhere => {
                "checks failed and were dropped, because no responding host could confirm them"
            }
        };
        write!(
            f,
            "{} {what}, none counts against its host; most often: {}. {}",
            self.failures,
            self.kinds(),
            self.hint
        )
    }
}

fn hint(kind: &str, scope: Scope) -> String {
    let family = match scope {
        Scope::Anywhere => None,
        Scope::V4 => Some("IPv4"),
        Scope::V6 => Some("IPv6"),
        Scope::Elsewhere => {
            return "Does this machine's resolver return one address for all names? Do IPv4 and IPv6 both reach the Internet?".to_owned();
        }
    };
    if let Some(family) = family {
        return format!(
            "Does {family} reach the Internet from this machine? A route that leads nowhere makes its hosts fail; without any route they are deferred"
        );
    }
    let text = match kind {
        "dns" | "no_such_name" | "no_address" | "dns_broken" | "address_refused" => {
            "Does this machine's resolver answer, and correctly?"
        }
        "tls_unknown_issuer" => {
            "Does a proxy intercept TLS? It must let this machine's connections through. Are the checker's trust roots outdated?"
        }
        _ if kind.starts_with("tls") => {
            "Is this machine's clock right? Does its resolver return the right addresses? Does a proxy alter TLS? Are the \
             checker's trust roots outdated?"
        }
        "unreachable" | "timeout" | "deadline" | "too_slow" | "http" | "robots_unavailable" => {
            "Does this machine reach the Internet? Does a firewall block the gateway, or port 443?"
        }
        _ => "Is the checker's image complete and of this version?",
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp(second * 1000)
    }

    fn fail(blackout: &mut Blackout, kind: &str, families: &[Family], times: u64, second: i64) {
        for _ in 0..times {
            blackout.fail(kind, families, at(second));
        }
    }

    #[test]
    fn three_failures_before_any_success_are_enough() {
        let mut blackout = Blackout::default();
        fail(&mut blackout, "no_such_name", &[], 2, 0);
        assert_eq!(blackout.look(at(60)), None, "two names may be wrong");
        fail(&mut blackout, "no_such_name", &[], 1, 60);
        let told = blackout.look(at(60)).unwrap();
        assert!(told.hint.contains("resolver"), "{told}");
        let mut early = Blackout::default();
        fail(&mut early, "no_such_name", &[], 5, 0);
        assert_eq!(early.look(at(9)), None, "others are being checked");
        assert!(early.look(at(10)).is_some());
    }

    #[test]
    fn it_is_told_once_when_it_begins_and_once_when_it_ends() {
        let mut blackout = Blackout::default();
        blackout.lived(Family::V4, at(0));
        fail(&mut blackout, "tls", &[Family::V4], 8, 0);
        fail(&mut blackout, "unreachable", &[Family::V4], 1, 1);
        assert_eq!(blackout.look(at(30)), None, "nine may be by chance");
        fail(&mut blackout, "tls", &[Family::V4], 1, 2);
        assert_eq!(blackout.look(at(19)), None, "not for long yet");
        let told = blackout.look(at(20)).unwrap();
        assert_eq!(
            told.to_string(),
            "10 checks in a row failed, none counts against its host; most often: tls ×9, unreachable ×1. Is this machine's clock right? \
             Does its resolver return the right addresses? Does a proxy alter TLS? Are the checker's trust roots outdated?"
        );
        assert_eq!(blackout.look(at(21)), None, "only once");
        fail(&mut blackout, "tls", &[Family::V4], 5, 40);
        assert_eq!(blackout.describe().unwrap().failures, 15);
        blackout.dropped("tls", at(125));
        let over = blackout.lived(Family::V4, at(130));
        let expect = Over {
            scope: Scope::Anywhere,
            lasted: Duration::from_secs(130),
            failures: 15,
            dropped: 1,
        };
        assert_eq!(over, [expect]);
        assert_eq!(blackout.describe(), None);
        assert!(blackout.lived(Family::V4, at(131)).is_empty());
    }

    #[test]
    fn who_lives_between_keeps_it_quiet() {
        let mut blackout = Blackout::default();
        blackout.lived(Family::V4, at(0));
        for round in 0..10 {
            fail(&mut blackout, "unreachable", &[Family::V4], 9, round * 30);
            assert_eq!(blackout.look(at(round * 30 + 29)), None);
            assert!(blackout.lived(Family::V4, at(round * 30 + 29)).is_empty());
        }
    }

    #[test]
    fn what_was_told_of_all_is_not_told_again_of_the_family_that_lives_last() {
        let mut blackout = Blackout::default();
        blackout.lived(Family::V4, at(0));
        fail(&mut blackout, "unreachable", &[Family::V4], 20, 0);
        assert_eq!(blackout.look(at(20)).unwrap().scope, Scope::Anywhere);
        assert_eq!(blackout.lived(Family::V6, at(30)).len(), 1);
        blackout.lived(Family::V6, at(45));
        assert_eq!(blackout.look(at(149)), None);
        assert_eq!(blackout.look(at(150)).unwrap().scope, Scope::V4);
        let over = blackout.lived(Family::V4, at(151));
        assert_eq!(over.len(), 1, "it is IPv4 alone again");
    }

    #[test]
    fn that_those_who_live_are_no_witnesses_is_told() {
        let mut blackout = Blackout::default();
        for second in 0..10 {
            fail(&mut blackout, "tls", &[Family::V4], 1, second * 30);
            blackout.lived(Family::V4, at(second * 30));
            blackout.dropped("tls", at(second * 30 + 1));
        }
        let told = blackout.look(at(272)).unwrap();
        assert_eq!((told.scope, told.failures), (Scope::Elsewhere, 10));
        assert!(told.hint.contains("one address"));
        assert!(blackout.lived(Family::V4, at(273)).is_empty());
        assert!(blackout.describe().is_some(), "they go on living");
        let over = blackout.witnessed(at(300)).unwrap();
        assert_eq!((over.scope, over.dropped), (Scope::Elsewhere, 10));
        assert_eq!(blackout.describe(), None);
    }

    #[test]
    fn one_family_is_told_of_while_the_other_lives() {
        let mut blackout = Blackout::default();
        fail(&mut blackout, "unreachable", &[Family::V6], 10, 0);
        blackout.lived(Family::V4, at(10));
        assert_eq!(blackout.look(at(74)), None, "a canary may show it yet");
        let told = blackout.look(at(75)).unwrap();
        assert_eq!((told.scope, told.failures), (Scope::V6, 10));
        assert!(told.hint.contains("IPv6"));
        assert!(blackout.lived(Family::V4, at(130)).is_empty());
        assert!(blackout.describe().is_some(), "IPv4 says nothing of IPv6");
        assert_eq!(blackout.lived(Family::V6, at(131)).len(), 1);
        assert_eq!(blackout.describe(), None);
    }
}
