//! The course of a check: what gateway, engine and checker would do.

use std::time::Duration;

use census::time::Timestamp;
use gateway::pace::{Charged, Late};
use protocol::Host;
use protocol::egress::Deferral;
use protocol::order::AskPeers;
use scheduler::Event;
use scheduler::blame::doubt::Witness;
use scheduler::command::Start;
use scheduler::event::{CheckNumber, CheckOutcome, SlotDemand};

use super::known::Outcome;
use super::shell::{Happening, Shell};

/// A look-up, and an answer of the gateway by itself.
const LOOK_UP: Duration = Duration::from_millis(40);
const ANSWER: Duration = Duration::from_millis(2);

/// The gateway's waits after a failed look-up and for a family that it lacks.
const DNS_RETRY: Duration = Duration::from_secs(300);
const NO_FAMILY_RETRY: Duration = Duration::from_secs(3600);

/// Failed look-ups in a row after which the host is the cause.
const DNS_FAILURES_MAX: u32 = 3;

#[derive(Debug)]
pub(super) struct Check {
    pub(super) host: Host,
    /// The host in the world; `None` for an invented name.
    id: Option<usize>,
    peers: AskPeers,
    began: Timestamp,
    address: Option<std::net::IpAddr>,
}

impl Shell {
    /// Charges the look-up, and makes it.
    pub(super) fn open_host(&mut self, start: Start) -> anyhow::Result<()> {
        let peers = self.stage.services.asks_peers(&start);
        let id = self.world.id(&start.host);
        let known = id.and_then(|id| self.world.hosts.get(id));
        let domain = known.map_or(start.host.as_str(), |known| &known.domain);
        let takes = match known.map_or(Outcome::NoSuchName, |known| known.outcome) {
            Outcome::NoSuchName | Outcome::NoAnswerDns => {
                known.map_or(LOOK_UP, |known| known.opens_after)
            }
            Outcome::Alive
            | Outcome::RefusedTcp
            | Outcome::SilentTcp
            | Outcome::Tls
            | Outcome::NotNodeinfo
            | Outcome::SlowSilent => LOOK_UP,
        };
        let charged = self.pace.charge_group(domain, self.instant());
        if charged.is_ok() {
            self.tally.looked_up(domain, self.now)?;
        }
        let check = Check {
            id,
            peers,
            began: self.now,
            address: None,
            host: start.host,
        };
        self.checks.insert(start.check, check);
        match charged {
            Ok(()) => self.at(self.now.plus(takes), Happening::LookedUp(start.check)),
            Err(Late { why, retry_after }) => self.defer(start.check, why, retry_after, ANSWER),
        }
        Ok(())
    }

    pub(super) fn defer(
        &mut self,
        check: CheckNumber,
        why: Deferral,
        retry_after: Duration,
        after: Duration,
    ) {
        let at = self.now.plus(after);
        self.at(at, Happening::Deferred(check, why, retry_after));
    }

    pub(super) fn happen(&mut self, happening: Happening) -> anyhow::Result<()> {
        match happening {
            Happening::LookedUp(check) => self.looked_up(check)?,
            Happening::Accepted(check) => self.opened(check, SlotDemand::One),
            Happening::FirstOutput(check) => self.first_output(check),
            Happening::Ends(check) => self.end(check),
            Happening::Deferred(check, why, retry_after) => {
                self.ended(check, CheckOutcome::Deferred { why, retry_after });
            }
            Happening::ListMade => self.list_made(),
        }
        Ok(())
    }

    fn opened(&mut self, check: CheckNumber, demand: SlotDemand) {
        if self.checks.contains_key(&check) {
            self.events.push_back(Event::Opened { check, demand });
        }
    }

    /// DNS has answered: the host is dialled, if it has an address.
    fn looked_up(&mut self, number: CheckNumber) -> anyhow::Result<()> {
        let Some(check) = self.checks.get_mut(&number) else {
            return Ok(());
        };
        let known = check.id.and_then(|id| self.world.hosts.get(id));
        let Some(known) = known else {
            self.end(number);
            return Ok(());
        };
        match known.outcome {
            Outcome::NoSuchName => {
                self.end(number);
                return Ok(());
            }
            Outcome::NoAnswerDns => {
                let failures = check.id.map(|id| self.dns_failures.entry(id).or_default());
                let failures = failures.map_or(0, |failures| {
                    *failures += 1;
                    *failures
                });
                if failures >= DNS_FAILURES_MAX {
                    self.end(number);
                } else {
                    self.defer(number, Deferral::Dns, DNS_RETRY, ANSWER);
                }
                return Ok(());
            }
            Outcome::Alive
            | Outcome::RefusedTcp
            | Outcome::SilentTcp
            | Outcome::Tls
            | Outcome::NotNodeinfo
            | Outcome::SlowSilent => {}
        }
        if known.ipv6_only {
            self.defer(number, Deferral::NoFamily, NO_FAMILY_RETRY, ANSWER);
            return Ok(());
        }
        let instant = self.instant();
        let dial = known.opens_after.saturating_sub(LOOK_UP);
        let accepts = known.outcome.accepts();
        let targets = &known.targets;
        let turn = self
            .pace
            .charge_dial(targets, &mut Charged::default(), instant);
        let Some(turn) = turn else {
            let Late { why, retry_after } = self.pace.promise_dial(targets, 1, instant);
            self.defer(number, why, retry_after, ANSWER);
            return Ok(());
        };
        let address = targets.get(turn.index).map(std::net::SocketAddr::ip);
        let dialled = self.now.plus(turn.wait);
        if let Some(check) = self.checks.get_mut(&number) {
            check.address = address;
        }
        self.tally.dialled(address, dialled)?;
        let happening = if accepts {
            Happening::Accepted(number)
        } else {
            Happening::Ends(number)
        };
        self.at(dialled.plus(dial), happening);
        Ok(())
    }

    fn first_output(&mut self, number: CheckNumber) {
        let Some(check) = self.checks.get(&number) else {
            return;
        };
        let known = check.id.and_then(|id| self.world.hosts.get(id));
        let holds_for = known.map_or(Duration::ZERO, |known| known.holds_for);
        self.at(self.now.plus(holds_for), Happening::Ends(number));
        self.events.push_back(Event::FirstOutput { check: number });
    }

    fn end(&mut self, number: CheckNumber) {
        let Some(check) = self.checks.get(&number) else {
            return;
        };
        let known = check.id.and_then(|id| self.world.hosts.get(id));
        let outcome = known.map_or(Outcome::NoSuchName, |known| known.outcome);
        let knows = known.map_or(0, |known| known.knows);
        let (address, began, host) = (check.address, check.began, check.host.clone());
        let asks = check.peers == AskPeers::Ask;
        if !outcome.accepts() {
            self.opened(number, SlotDemand::None);
        }
        let (verdict, doubt) = outcome.found(address);
        let is_alive = outcome == Outcome::Alive;
        let witness = address.filter(|_| is_alive).map(|address| Witness {
            began,
            lived: self.now,
            address,
            fresh: true,
        });
        if let (true, Some(address)) = (is_alive, address) {
            self.pace.prove(address, self.instant());
            self.tally.prove(address);
            if asks {
                self.lists.push((host, knows));
            }
        }
        let outcome = CheckOutcome::Verdict {
            verdict,
            witness,
            doubt,
        };
        self.ended(number, outcome);
    }
}
