//! Canaries: hosts known to live, asked when failures wait and nobody who could bear witness has answered for a minute.
//!
//! They are other people's servers: what they are asked for besides is as little as their names' turn allows.

use std::collections::HashMap;
use std::time::Duration;

use census::time::Timestamp;
use gateway::control::Wish;
use protocol::Host;
use protocol::order::AskPeers;

use super::{Asked, Daemon};
use crate::check::Check;

/// A canary is asked for its peers no more often than this, the shortest daily interval: it may be a canary every minute, and its list is long.
const PEERS_EVERY: Duration = Duration::from_secs(27 * 3600);

/// Who they are and whose turn it is.
#[derive(Debug)]
pub(super) struct Canaries {
    hosts: Vec<Host>,
    next: usize,
    /// When each was last asked for its peers as a canary.
    asked_peers: HashMap<Host, Timestamp>,
}

impl Canaries {
    pub(super) fn new(hosts: Vec<Host>) -> Self {
        Self {
            hosts,
            next: 0,
            asked_peers: HashMap::new(),
        }
    }

    /// Each once, beginning with whose turn it is.
    fn in_turn(&self) -> Vec<Host> {
        let (behind, ahead) = self.hosts.split_at(self.next.min(self.hosts.len()));
        ahead.iter().chain(behind).cloned().collect()
    }

    /// The turn goes on to the one after.
    fn was_asked(&mut self, host: &Host) {
        let at = self.hosts.iter().position(|canary| canary == host);
        let after = at.map_or(0, |at| at.saturating_add(1));
        self.next = after.checked_rem(self.hosts.len()).unwrap_or(0);
    }

    /// Makes a check that of a canary.
    pub(super) fn bid(&mut self, check: &mut Check, wish: Wish) {
        check.wish = Wish {
            family: wish.family,
            fresh: wish.fresh || check.wish.fresh,
        };
        let asks_peers = check.order.peers == AskPeers::Ask;
        if asks_peers && !self.may_ask_peers(&check.host, check.began) {
            check.order.peers = AskPeers::Skip;
        }
    }

    /// Whether this one may be asked for its peers now; notes that it was.
    fn may_ask_peers(&mut self, host: &Host, now: Timestamp) -> bool {
        let asked = self.asked_peers.get(host);
        // A clock that was set back must not keep it from being asked for ever.
        let lately = asked.is_some_and(|at| now.since(*at) < PEERS_EVERY && *at <= now);
        if !lately {
            self.asked_peers.insert(host.clone(), now);
        }
        !lately
    }
}

impl Daemon {
    /// Asks a canary for each thing that those who wait have nobody to show.
    pub(super) async fn ask_canaries(&mut self, now: Timestamp) {
        for wish in self.confirm.wants_canaries(now) {
            for host in self.canaries.in_turn() {
                self.canaries.was_asked(&host);
                let asked = self.take_by_name(&host, now, Asked::Canary(wish)).await;
                if asked.is_ok() {
                    tracing::info!(%host, ?wish.family, waiting = self.confirm.waiting(), "failures wait and nobody who could bear witness has answered for a minute: asking a canary");
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use census::state::Record;
    use gateway::control::{Family, Request};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::UnixListener;

    use super::*;
    use crate::tools::Tools;
    use crate::tools::tests::tools;

    fn canaries() -> (Canaries, [Host; 3]) {
        let hosts = ["a.example", "b.example", "c.example"].map(|name| Host::parse(name).unwrap());
        (Canaries::new(hosts.to_vec()), hosts)
    }

    #[test]
    fn they_take_turns() {
        let (mut canaries, [a, b, c]) = canaries();
        assert_eq!(canaries.in_turn(), [a.clone(), b.clone(), c.clone()]);
        canaries.was_asked(&a);
        assert_eq!(canaries.in_turn(), [b.clone(), c.clone(), a.clone()]);
        canaries.was_asked(&c);
        assert_eq!(canaries.in_turn(), [a, b, c]);
        assert!(Canaries::new(Vec::new()).in_turn().is_empty());
    }

    #[test]
    fn a_canary_that_is_asked_each_minute_is_asked_for_its_peers_once_a_day() {
        let (mut canaries, [a, b, _]) = canaries();
        let day = 29 * 60;
        let asked = (0..3 * day)
            .filter(|minute| canaries.may_ask_peers(&a, Timestamp(minute * 60_000)))
            .count();
        assert_eq!(asked, 4, "at once and at most once in 27 hours");
        assert!(canaries.may_ask_peers(&b, Timestamp(0)), "each by itself");
        assert!(
            canaries.may_ask_peers(&a, Timestamp(0)),
            "the clock was set"
        );
    }

    /// What a gateway is asked for when this check's way is to be opened.
    async fn asked_of_a_gateway(check: &Check, tools: &Tools, listener: &UnixListener) -> Request {
        let gateway = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut line = String::new();
            let mut reader = BufReader::new(&mut stream);
            reader.read_line(&mut line).await.unwrap();
            stream.write_all(b"{\"offline\":{}}\n").await.unwrap();
            serde_json::from_str(&line).unwrap()
        };
        let (opened, request) = tokio::join!(crate::egress::open(check, tools), gateway);
        opened.unwrap();
        request
    }

    #[tokio::test]
    async fn a_canarys_way_is_opened_as_those_who_wait_need_it() {
        let directory = tempfile::tempdir().unwrap();
        let store = store::open(&directory.path().join("census.db")).unwrap();
        let socket = directory.path().join("gateway.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let tools = tools(&store, &socket);
        let (mut canaries, [host, ..]) = canaries();
        let record = Record::discovered(host, Timestamp(0), Timestamp(0));
        let needed = Wish {
            family: Some(Family::V4),
            fresh: true,
        };
        for (expect_wish, expect_peers) in [
            (Wish::default(), AskPeers::Ask),
            (needed, AskPeers::Ask),
            (needed, AskPeers::Skip),
        ] {
            let mut check = Check::new(&record, &tools, None);
            if !expect_wish.is_none() {
                canaries.bid(&mut check, needed);
            }
            match asked_of_a_gateway(&check, &tools, &listener).await {
                Request::Open { wish, order, .. } => {
                    assert_eq!((wish, order.peers), (expect_wish, expect_peers));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
