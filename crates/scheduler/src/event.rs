//! Events: everything that can happen to the census, as its shell reports it.

use std::time::Duration;

use census::class::{Class, PerClass};
use census::state::{Record, Verdict};
use census::time::Timestamp;
use protocol::Host;
use protocol::egress::{Deferral, Wish};

use crate::blame::doubt::{Doubt, Witness};
use crate::blame::faults::CheckFault;
use crate::demand::start_rate::Load;
use crate::publication::{Force, PublishAgain};
use crate::slots::concurrency::Pressure;

pub use crate::demand::in_progress::SlotDemand;

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// Time has passed. At [`crate::Scheduler::wakes_at`], or earlier.
    Tick,
    /// The machine was looked at.
    Pressure(Pressure),
    /// The clock was set, or this machine slept.
    ClockSet,
    /// Names were added, or rows changed otherwise: some may be due.
    RowsChanged,
    /// Answers [`crate::Command::CountDue`].
    Demand {
        /// Due hosts by class, counted no further than asked.
        waiting: PerClass<u32>,
        /// When the next host is due; `None` if no host is.
        next_due: Option<Timestamp>,
        /// The load, if it was asked for and could be measured.
        load: Option<Load>,
    },
    /// Answers [`crate::Command::Take`]: these are in flight from now on.
    Taken {
        /// To be checked.
        hosts: Vec<Taken>,
        /// To be given back, by the rules of admission.
        not_admitted: Vec<NotAdmitted>,
    },
    /// A host was taken whatever its due time, and is in flight from now on.
    TakenOne {
        /// The host.
        taken: Taken,
        /// Why.
        trigger: Trigger,
    },
    /// A canary can't be checked: it is being checked already, or may not be.
    CanaryRefused {
        /// What its check should have shown to work.
        wish: Wish,
        /// Canaries to try.
        left: usize,
    },
    /// Due hosts could not be counted or taken.
    StoreFailed {
        /// What went wrong.
        what: String,
    },
    /// The gateway has answered, or the name led nowhere: what the check needs now. A check that
    /// was deferred before anything was learned about its host reports none.
    Opened {
        /// The check.
        check: CheckNumber,
        /// Whether it needs a slot.
        demand: SlotDemand,
    },
    /// Something other than a check wants a slot.
    SlotWanted {
        /// Who.
        reading: u64,
    },
    /// It ended, or no longer waits.
    SlotReturned {
        /// Who.
        reading: u64,
    },
    /// A container gave its first output.
    FirstOutput {
        /// The check.
        check: CheckNumber,
    },
    /// A check ended.
    CheckEnded {
        /// The check.
        check: CheckNumber,
        /// How.
        outcome: CheckOutcome,
    },
    /// A host's row was written, or could not be.
    Written {
        /// The host.
        host: Host,
        /// What was written.
        outcome: WriteOutcome,
    },
    /// Answers [`crate::Command::AskParts`].
    PartStatus(Result<(), String>),
    /// A part that every check needs was found not to work.
    PartFailed {
        /// What does not work.
        what: String,
    },
    /// The host's owner asked to be left alone, and the store knows.
    OptedOut {
        /// The host.
        host: Host,
    },
    /// The operator wants a list published now.
    PublishAsked(Force),
    /// Answers [`crate::Command::Publish`].
    Published {
        /// What failed and is tried again soon.
        again: PublishAgain,
        /// The pages show the current list.
        has_pages: bool,
        /// The ordinary pause between two lists, newly drawn.
        interval: Duration,
    },
}

/// Names a check until its host is no longer in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CheckNumber(pub u64);

/// Who holds a slot among the containers, or waits for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SlotHolder {
    /// A check.
    Check(CheckNumber),
    /// A reading of a list or of a proof, by the shell's number.
    Reading(u64),
}

/// Why a host is checked now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// It is due.
    Scheduled,
    /// The operator asks for it.
    Manual,
    /// Failures need a host that confirms them.
    Canary(Wish),
}

/// A host that is in flight from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Its record, with its ordinary next due time already in it.
    pub record: Box<Record>,
    /// Its class when it was taken.
    pub class: Class,
    /// Its last checks that ended in a counted fault, in a row.
    pub faults: u32,
}

/// A host that is in flight and may not be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAdmitted {
    /// The host.
    pub host: Host,
    /// When it is due again; within the hour if `None`.
    pub due: Option<Timestamp>,
    /// Why, for `explain`.
    pub why: String,
}

/// How a check ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It says something about the host.
    Verdict {
        /// What.
        verdict: Verdict,
        /// What it shows to work, if a container found the host responding.
        witness: Option<Witness>,
        /// What must be shown to work before a failing verdict counts.
        doubt: Doubt,
    },
    /// Out of turn.
    Deferred {
        /// Why.
        why: Deferral,
        /// How long to wait at least.
        retry_after: Duration,
    },
    /// We have no network.
    Offline,
    /// A fault of ours.
    Fault(CheckFault),
}

/// What was written of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteOutcome {
    /// A verdict: the whole path works.
    Verdict,
    /// Anything else.
    Released,
    /// Nothing: the store failed.
    Failed(String),
}
