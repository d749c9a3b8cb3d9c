//! Canaries: hosts known to respond. The scheduler checks one when failures wait and no check that
//! could confirm them has succeeded for a minute. They are other people's servers, so their checks
//! request little more.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use census::time::Timestamp;
use protocol::Host;

/// Shortest interval between two requests for a canary's peers, equal to the shortest daily
/// interval. A host may be a canary every minute, and its list of peers is long.
const PEERS_EVERY: Duration = Duration::from_secs(27 * 3600);

/// Most checks of a canary a day, also while hosts fail for hours and none responds: at one a
/// minute four canaries last for three hours.
const CHECKS_MAX: usize = 48;

const DAY: Duration = Duration::from_hours(24);

/// The operator's canaries, and the position of the next one.
#[derive(Debug)]
pub(crate) struct Canaries {
    hosts: Vec<Host>,
    next: usize,
    /// When each canary had its turns of the last day, the oldest first.
    checked: HashMap<Host, VecDeque<Timestamp>>,
    /// When each canary's check last requested its peers.
    asked_peers: HashMap<Host, Timestamp>,
}

impl Canaries {
    pub(crate) fn new(hosts: Vec<Host>) -> Self {
        Self {
            hosts,
            next: 0,
            checked: HashMap::new(),
            asked_peers: HashMap::new(),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.hosts.len()
    }

    /// The next canary. `None` if it had all of a day's turns, or the operator named none.
    pub(crate) fn take_turn(&mut self, now: Timestamp) -> Option<Host> {
        let host = self.hosts.get(self.next)?.clone();
        let checked = self.checked.entry(host.clone()).or_default();
        while checked
            .front()
            .is_some_and(|at| !is_since(Some(at), DAY, now))
        {
            checked.pop_front();
        }
        if checked.len() >= CHECKS_MAX {
            return None;
        }
        checked.push_back(now);
        let after = self.next.saturating_add(1);
        self.next = after.checked_rem(self.hosts.len()).unwrap_or(0);
        Some(host)
    }

    /// Whether this canary's check may request its peers now. If so, records the time.
    pub(crate) fn may_ask_peers(&mut self, host: &Host, now: Timestamp) -> bool {
        let lately = is_since(self.asked_peers.get(host), PEERS_EVERY, now);
        if !lately {
            self.asked_peers.insert(host.clone(), now);
        }
        !lately
    }
}

/// Whether something happened less than `span` ago. If the clock was set back, a time in the future
/// must not block it forever.
fn is_since(at: Option<&Timestamp>, span: Duration, now: Timestamp) -> bool {
    at.is_some_and(|at| now.since(*at) < span && *at <= now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canaries_take_turns() {
        let [a, b] = ["a.example", "b.example"].map(|name| Host::parse(name).unwrap());
        let mut canaries = Canaries::new(vec![a.clone(), b.clone()]);
        let at = |minute: i64| Timestamp(minute * 60_000);
        let turns: Vec<_> = (0..3).map(|_| canaries.take_turn(at(0)).unwrap()).collect();
        assert_eq!(turns, [a.clone(), b, a]);
        assert_eq!(Canaries::new(Vec::new()).take_turn(at(0)), None);
    }

    #[test]
    fn a_canary_is_checked_at_most_48_times_in_any_day() {
        let a = Host::parse("a.example").unwrap();
        let mut canaries = Canaries::new(vec![a]);
        let minutes = (0..3 * 24 * 60).filter(|minute: &i64| {
            let now = Timestamp(minute * 60_000);
            canaries.take_turn(now).is_some()
        });
        let minutes: Vec<_> = minutes.collect();
        assert_eq!(minutes.len(), 3 * 48);
        assert!(
            minutes
                .windows(49)
                .all(|turns| turns[48] - turns[0] >= 24 * 60)
        );
    }

    #[test]
    fn a_canary_that_is_checked_each_minute_is_asked_for_its_peers_once_a_day() {
        let [a, b] = ["a.example", "b.example"].map(|name| Host::parse(name).unwrap());
        let mut canaries = Canaries::new(vec![a.clone(), b.clone()]);
        let day = 29 * 60;
        let asked = (0..3 * day)
            .filter(|minute| canaries.may_ask_peers(&a, Timestamp(minute * 60_000)))
            .count();
        assert_eq!(asked, 4, "at once and at most once in 27 hours");
        assert!(canaries.may_ask_peers(&b, Timestamp(0)), "each on its own");
        assert!(
            canaries.may_ask_peers(&a, Timestamp(0)),
            "the clock was set"
        );
    }
}
