//! The course of a check: what gateway, engine and checker would do.

use std::net::SocketAddr;
use std::time::Duration;

use census::state::Verdict;
use gateway::pace::{Charged, Late};
use protocol::egress::Deferral;
use protocol::order::AskPeers;
use scheduler::Event;
use scheduler::blame::doubt::Witness;
use scheduler::blame::faults::{CheckFault, FaultScope};
use scheduler::command::Start;
use scheduler::event::{CheckNumber, CheckOutcome, SlotDemand};
use scheduler::publication::PublishAgain;

use super::Shell;
use super::checks::{Check, Happening};
use super::story::Story;
use crate::world::known::Outcome;
use crate::world::network::Shows;
use crate::world::truth::Now;

/// An answer of the gateway by itself.
const ANSWER: Duration = Duration::from_millis(2);

/// The gateway's waits after a failed look-up and for a family that it lacks.
const DNS_RETRY: Duration = Duration::from_secs(300);
const NO_FAMILY_RETRY: Duration = Duration::from_secs(3600);

/// Failed look-ups in a row after which the host is the cause.
const DNS_FAILURES_MAX: u32 = 3;

impl<S: Story> Shell<S> {
    /// Charges the look-up, and makes it.
    pub(super) fn open_host(&mut self, start: Start) -> anyhow::Result<()> {
        let (now, instant, truth) = (self.now, self.instant(), &self.parts.truth);
        let id = truth.hosts.id(start.host.as_str());
        let known = truth.known(id);
        let domain = known.map_or(start.host.as_str(), |known| &known.domain);
        let outcome = truth.now(id).outcome();
        let takes = match (known, outcome) {
            (Some(known), Outcome::NoSuchName | Outcome::NoAnswerDns) => known.opens_after(outcome),
            _ => S::LOOK_UP,
        };
        let charged = self.pace.charge_group(domain, instant);
        if charged.is_ok() {
            self.visits.looked_up(domain, now)?;
        }
        let check = Check {
            id,
            way: start.wish.way,
            peers: self.parts.stage.services.asks_peers(&start),
            began: now,
            address: None,
            closed: None,
            host: start.host,
        };
        self.checks.insert(start.check, check);
        match charged {
            Ok(()) => self.at(now.plus(takes), Happening::LookedUp(start.check)),
            Err(late) => self.defer(start.check, late, ANSWER),
        }
        Ok(())
    }

    pub(super) fn defer(&mut self, check: CheckNumber, late: Late, after: Duration) {
        let deferred = Happening::Deferred(check, late.why, late.retry_after);
        self.at(self.now.plus(after), deferred);
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
        let Some(&Check { id, way, .. }) = self.checks.get(&number) else {
            return Ok(());
        };
        let known = self.parts.truth.known(id);
        let address = known.and_then(|known| known.addresses.first());
        let outcome = match self.parts.network.fails_at(way, self.now) {
            Some(Shows::Told) => {
                self.ended(number, CheckOutcome::Offline);
                return Ok(());
            }
            Some(shows) if shows.hides(address.copied()) => Outcome::SilentTcp,
            Some(_) | None => self.parts.truth.now(id).outcome(),
        };
        let (Some(id), Some(known)) = (id, known) else {
            self.close(number, Outcome::NoSuchName);
            self.end(number);
            return Ok(());
        };
        if outcome == Outcome::NoAnswerDns {
            let failures = self.dns_failures.entry(id).or_default();
            *failures += 1;
            if *failures < DNS_FAILURES_MAX {
                self.defer_for(number, Deferral::Dns, DNS_RETRY);
                return Ok(());
            }
        }
        if matches!(outcome, Outcome::NoSuchName | Outcome::NoAnswerDns) {
            self.close(number, outcome);
            self.end(number);
            return Ok(());
        }
        if known.ipv6_only {
            self.defer_for(number, Deferral::NoFamily, NO_FAMILY_RETRY);
            return Ok(());
        }
        self.dial(number, id, outcome)
    }

    fn defer_for(&mut self, number: CheckNumber, why: Deferral, retry_after: Duration) {
        self.defer(number, Late { why, retry_after }, ANSWER);
    }

    fn close(&mut self, number: CheckNumber, outcome: Outcome) {
        if let Some(check) = self.checks.get_mut(&number) {
            check.closed = Some(outcome);
        }
    }

    fn dial(&mut self, number: CheckNumber, id: u32, outcome: Outcome) -> anyhow::Result<()> {
        let instant = self.instant();
        let Some(known) = self.parts.truth.known(Some(id)) else {
            return Ok(());
        };
        let takes = known.opens_after(outcome).saturating_sub(S::LOOK_UP);
        let targets = known.addresses.iter();
        let targets: Vec<_> = targets.map(|ip| SocketAddr::new(*ip, 443)).collect();
        let turn = self
            .pace
            .charge_dial(&targets, &mut Charged::default(), instant);
        let Some(turn) = turn else {
            let late = self.pace.promise_dial(&targets, 1, instant);
            self.defer(number, late, ANSWER);
            return Ok(());
        };
        let address = targets.get(turn.index).map(SocketAddr::ip);
        let dialled = self.now.plus(turn.wait);
        if let Some(check) = self.checks.get_mut(&number) {
            check.address = address;
        }
        if let Some(address) = address {
            self.visits.dialled(address, dialled)?;
        }
        let happening = if outcome.accepts() {
            Happening::Accepted(number)
        } else {
            self.close(number, outcome);
            Happening::Ends(number)
        };
        self.at(dialled.plus(takes), happening);
        Ok(())
    }

    fn first_output(&mut self, number: CheckNumber) {
        let Some(check) = self.checks.get(&number) else {
            return;
        };
        let truth = &self.parts.truth;
        let outcome = truth.now(check.id).outcome();
        let known = truth.known(check.id);
        let holds_for = known.map_or(Duration::ZERO, |known| known.holds_for(outcome));
        self.containers += 1;
        self.at(self.now.plus(holds_for), Happening::Ends(number));
        self.events.push_back(Event::FirstOutput { check: number });
    }

    fn end(&mut self, number: CheckNumber) {
        let Some(check) = self.checks.get(&number) else {
            return;
        };
        let truth = &self.parts.truth;
        let now = match check.closed {
            Some(outcome) => Now::Down(outcome),
            None => match self
                .parts
                .network
                .fails_between(check.way, check.began, self.now)
            {
                Some(Shows::Told) => {
                    let fault = CheckFault {
                        scope: FaultScope::Transient,
                        what: "the network was lost during the check".to_owned(),
                        is_engine: false,
                    };
                    self.ended(number, CheckOutcome::Fault(fault));
                    return;
                }
                Some(shows) if shows.hides(check.address) => Now::Down(Outcome::SlowSilent),
                Some(_) | None => truth.now(check.id),
            },
        };
        let (verdict, doubt) = truth.found(now, check.address);
        let lives = matches!(verdict, Verdict::Alive(_));
        let witness = check.address.filter(|_| lives).map(|address| Witness {
            began: check.began,
            lived: self.now,
            address,
            fresh: true,
        });
        let list = check.id.filter(|_| lives && check.peers == AskPeers::Ask);
        self.lists.extend(list.map(|id| (check.host.clone(), id)));
        if check.closed.is_some() {
            self.opened(number, SlotDemand::None);
        }
        if let Some(Witness { address, .. }) = witness {
            self.pace.prove(address, self.instant());
            self.visits.prove(address);
        }
        let outcome = CheckOutcome::Verdict {
            verdict,
            witness,
            doubt,
        };
        self.ended(number, outcome);
    }

    /// A check ended, unless it was aborted before.
    fn ended(&mut self, check: CheckNumber, outcome: CheckOutcome) {
        if self.checks.remove(&check).is_some() {
            self.events.push_back(Event::CheckEnded { check, outcome });
        }
    }

    fn list_made(&mut self) {
        let services = &self.parts.stage.services;
        let interval = services.calendar.dump_interval(services.random.jitter());
        self.events.push_back(Event::Published {
            again: PublishAgain::Nothing,
            has_pages: true,
            has_names: self.has_names,
            interval,
        });
    }
}
