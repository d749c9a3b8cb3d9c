//! Canaries: hosts known to respond. The scheduler checks one when failures wait and no check that
//! could confirm them has succeeded for a minute. They are other people's servers, so their checks
//! request little more.

use std::collections::HashMap;
use std::time::Duration;

use census::time::Timestamp;
use protocol::Host;

/// Shortest interval between two requests for a canary's peers, equal to the shortest daily
/// interval. A host may be a canary every minute, and its list of peers is long.
const PEERS_EVERY: Duration = Duration::from_secs(27 * 3600);

/// The operator's canaries, and the position of the next one.
#[derive(Debug)]
pub(crate) struct Canaries {
    hosts: Vec<Host>,
    next: usize,
    /// When each canary's check last requested its peers.
    asked_peers: HashMap<Host, Timestamp>,
}

impl Canaries {
    pub(crate) fn new(hosts: Vec<Host>) -> Self {
        Self {
            hosts,
            next: 0,
            asked_peers: HashMap::new(),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.hosts.len()
    }

    /// The next canary. `None` if the operator named none.
    pub(crate) fn take_turn(&mut self) -> Option<Host> {
        let host = self.hosts.get(self.next)?.clone();
        let after = self.next.saturating_add(1);
        self.next = after.checked_rem(self.hosts.len()).unwrap_or(0);
        Some(host)
    }

    /// Whether this canary's check may request its peers now. If so, records the time.
    pub(crate) fn may_ask_peers(&mut self, host: &Host, now: Timestamp) -> bool {
        let asked = self.asked_peers.get(host);
        // If the clock was set back, a time in the future must not block the request forever.
        let lately = asked.is_some_and(|at| now.since(*at) < PEERS_EVERY && *at <= now);
        if !lately {
            self.asked_peers.insert(host.clone(), now);
        }
        !lately
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canaries_take_turns() {
        let [a, b] = ["a.example", "b.example"].map(|name| Host::parse(name).unwrap());
        let mut canaries = Canaries::new(vec![a.clone(), b.clone()]);
        let turns: Vec<_> = (0..3).map(|_| canaries.take_turn().unwrap()).collect();
        assert_eq!(turns, [a.clone(), b, a]);
        assert_eq!(Canaries::new(Vec::new()).take_turn(), None);
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
