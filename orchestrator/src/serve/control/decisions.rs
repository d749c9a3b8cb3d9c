//! Decisions about groups and hosts, made by commands, by moderators in the console, and by owners.

use census::state::OptedOutBy;
use protocol::Host;
use store::{HostDecided, HostDecision, OptIn, OptOut, Ruling, Undone};

use super::wire::By;
use super::{ENDING, Handler, in_words};
use crate::daemon::Order;
use crate::groups::{self, Verb};

/// The recorded decider of a decision by command.
pub(super) const OPERATOR: &str = "operator, by command";

/// The recorded reason of a command without a reason.
const NO_REASON: &str = "none given";

/// The recorded reason of an undo with no earlier decision to return to.
const UNDONE: &str = "the decision before it was undone";

const SUPERSEDED: &str = "a later decision about the same group or host is in force: undo that one";
const UNKNOWN: &str = "there is no such decision";

impl Handler {
    pub(super) async fn opt_out(
        &self,
        host: &Host,
        by: By,
        undo: bool,
        reason: Option<&str>,
    ) -> Result<String, String> {
        match (by, undo) {
            (By::Owner, false) => Ok(out_in_words(host, by, self.leave_alone(host).await?)),
            (By::Owner, true) => back_in_words(host, by, self.take_back(host).await?),
            (By::Moderator, _) => {
                let decision = if undo {
                    HostDecision::PutBack
                } else {
                    HostDecision::TakeOut
                };
                let reason = groups::a_line(reason.unwrap_or(NO_REASON))?;
                let ruling = self.ruling(OPERATOR, reason);
                decided_in_words(host, self.decide_host(host, decision, ruling).await?)
            }
        }
    }

    /// Records an opt-out that the host's owner requested from the operator, and stops checks of
    /// the host.
    pub(crate) async fn leave_alone(&self, host: &Host) -> Result<OptOut, String> {
        let (now, by) = (self.services.clock.now(), OptedOutBy::Owner);
        let outcome = self.services.writer.opt_out(host, by, now).await;
        let outcome = outcome.map_err(in_words)?;
        self.stop_checks_of(host, outcome).await?;
        Ok(outcome)
    }

    /// Removes such an opt-out at the owner's request (invariant I7).
    pub(crate) async fn take_back(&self, host: &Host) -> Result<OptIn, String> {
        let (now, by) = (self.services.clock.now(), OptedOutBy::Owner);
        let outcome = self.services.writer.opt_in(host, by, now).await;
        outcome.map_err(in_words)
    }

    async fn stop_checks_of(&self, host: &Host, outcome: OptOut) -> Result<(), String> {
        if outcome == OptOut::DoneListed {
            self.order(Order::Unlist).await?;
        }
        self.order(Order::LeaveAlone { host: host.clone() }).await
    }

    /// Does nothing without a daemon, whose start publishes a list anyway.
    pub(super) async fn order(&self, order: Order) -> Result<(), String> {
        let Some((orders, _)) = &self.daemon else {
            return Ok(());
        };
        let sent = orders.send(order).await;
        sent.map_err(|_ended| ENDING.to_owned())
    }

    /// Decides about a group, and returns the decision's id and what follows from it.
    pub(crate) async fn decide_group(
        &self,
        domain: &str,
        verb: Verb,
        ruling: &Ruling,
    ) -> Result<(i64, String), String> {
        let services = &self.services;
        let (writer, names) = (&services.writer, services.gate.names());
        let calendar = services.calendar;
        let decided = groups::decide(writer, &names, domain, verb, ruling, calendar).await?;
        if verb == Verb::Deny {
            self.order(Order::Unlist).await?;
        }
        Ok(decided)
    }

    /// Removes a host or restores it, in the name of a moderator.
    pub(crate) async fn decide_host(
        &self,
        host: &Host,
        decision: HostDecision,
        ruling: Ruling,
    ) -> Result<HostDecided, String> {
        let writer = &self.services.writer;
        let decided = writer.decide_host(host, decision, ruling).await;
        let decided = decided.map_err(in_words)?;
        if let HostDecided::Out(outcome) = decided {
            self.stop_checks_of(host, outcome).await?;
        }
        Ok(decided)
    }

    pub(crate) async fn undo_host_decision(&self, id: i64, who: &str) -> Result<String, String> {
        let ruling = self.ruling(who, UNDONE);
        let undone = self.services.writer.undo_host_decision(id, ruling).await;
        match undone.map_err(in_words)? {
            Undone::Done((host, decided)) => {
                if let HostDecided::Out(outcome) = decided {
                    self.stop_checks_of(&host, outcome).await?;
                }
                decided_in_words(&host, decided)
            }
            Undone::Superseded => Err(SUPERSEDED.to_owned()),
            Undone::Unknown => Err(UNKNOWN.to_owned()),
        }
    }

    pub(crate) async fn undo_group_decision(&self, id: i64, who: &str) -> Result<String, String> {
        let ruling = self.ruling(who, UNDONE);
        let (writer, calendar) = (&self.services.writer, self.services.calendar);
        let undone = writer.undo_group_decision(id, ruling, calendar).await;
        match undone.map_err(in_words)? {
            Undone::Done((domain, decision)) => {
                let words = groups::decision_words(decision);
                Ok(format!("{domain}: undone; {words}"))
            }
            Undone::Superseded => Err(SUPERSEDED.to_owned()),
            Undone::Unknown => Err(UNKNOWN.to_owned()),
        }
    }

    pub(crate) fn ruling(&self, who: &str, reason: &str) -> Ruling {
        Ruling {
            at: self.services.clock.now(),
            who: who.to_owned(),
            reason: reason.to_owned(),
        }
    }
}

/// The effect of a moderator's decision about a host.
pub(crate) fn decided_in_words(host: &Host, decided: HostDecided) -> Result<String, String> {
    match decided {
        HostDecided::Out(outcome) => Ok(out_in_words(host, By::Moderator, outcome)),
        HostDecided::Back(outcome) => back_in_words(host, By::Moderator, outcome),
    }
}

fn out_in_words(host: &Host, by: By, outcome: OptOut) -> String {
    match outcome {
        OptOut::Done | OptOut::DoneListed => format!(
            "{host} opted out by {}: off the list within a quarter of an hour, and never checked again",
            by.who()
        ),
        OptOut::Joins { by: other } => format!(
            "{host} opted out already, by {}; it stays out until {} revokes that too",
            other.as_str(),
            by.who()
        ),
        OptOut::Stands { by } => format!(
            "{host} opted out already, by {}: nothing to do",
            by.as_str()
        ),
    }
}

fn back_in_words(host: &Host, by: By, outcome: OptIn) -> Result<String, String> {
    match outcome {
        OptIn::Done => Ok(format!(
            "{host}: {} revoked the opt-out; it is checked again",
            by.who()
        )),
        OptIn::StillOut { by: other } => Ok(format!(
            "{host}: {} revoked the opt-out; that of the {} remains, so it stays out",
            by.who(),
            other.as_str()
        )),
        OptIn::NotTheirs { by } => Err(format!(
            "{host}: this opt-out was made by {}, and only they can revoke it",
            by.as_str()
        )),
        OptIn::NotOptedOut | OptIn::Unknown => Err(format!("{host} has not opted out")),
    }
}
