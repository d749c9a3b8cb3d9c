//! Events: everything that can happen to the census, as the scheduler's shell reports it.

use std::time::Duration;

use census::class::{Class, PerClass};
use census::state::{Record, Verdict};
use census::time::Timestamp;
use protocol::Host;
use protocol::egress::{Deferral, Way, Wish};

use crate::blame::doubt::{Doubt, Witness};
use crate::blame::faults::CheckFault;
use crate::demand::start_rate::Load;
use crate::publication::{Force, PublishAgain};
use crate::slots::concurrency::Pressure;

pub use crate::demand::in_progress::SlotDemand;

#[derive(Debug)]
pub enum Event {
    /// Time has passed. Sent at [`crate::Scheduler::wakes_at`], or earlier.
    Tick,
    Pressure(Pressure),
    /// The clock was set, or this machine slept.
    ClockSet,
    /// Names were added, or rows changed otherwise: some may be due.
    RowsChanged,
    /// Answers [`crate::Command::CountDue`].
    Demand {
        /// Due hosts by class, counted up to the requested number.
        waiting: PerClass<u32>,
        /// When the next host is due. `None` if no host is.
        next_due: Option<Timestamp>,
        /// The load, if it was requested and could be measured.
        load: Option<Load>,
    },
    /// Answers [`crate::Command::Take`]. These hosts are in flight from now on.
    Taken {
        hosts: Vec<Taken>,
        /// Hosts to release, by the rules of admission.
        not_admitted: Vec<NotAdmitted>,
    },
    /// A host was taken regardless of its due time, and is in flight from now on.
    TakenOne {
        taken: Taken,
        trigger: Trigger,
    },
    /// A canary can't be checked: it is being checked already, or the rules forbid it.
    CanaryRefused {
        /// What its check should have shown to work.
        wish: Wish,
        left: usize,
    },
    /// Due hosts could not be counted or taken.
    StoreFailed {
        what: String,
    },
    /// The gateway has answered, or the name led nowhere, so it is known whether the check needs a
    /// slot. A check that was deferred before that reports nothing.
    Opened {
        check: CheckNumber,
        demand: SlotDemand,
    },
    /// A reading, not a check, wants a slot.
    SlotWanted {
        reading: u64,
    },
    /// The reading ended, or no longer waits.
    SlotReturned {
        reading: u64,
    },
    FirstOutput {
        check: CheckNumber,
    },
    CheckEnded {
        check: CheckNumber,
        outcome: CheckOutcome,
    },
    /// A host's row was written, or could not be.
    Written {
        host: Host,
        outcome: WriteOutcome,
    },
    /// Answers [`crate::Command::AskParts`].
    PartStatus(Result<(), String>),
    /// Answers [`crate::Command::AskParts`] for each gateway, if there are two; then
    /// [`Self::PartStatus`] does not include them.
    WayStatus {
        way: Way,
        status: Result<(), String>,
    },
    /// A part that every check needs does not work.
    PartFailed {
        what: String,
    },
    /// The host's owner opted out, and the store knows.
    OptedOut {
        host: Host,
    },
    /// A host that may be on the list withdrew otherwise than by a check, and the store knows.
    Withdrawn,
    /// The operator wants a list published now.
    PublishAsked(Force),
    /// The pages say what is no longer so.
    PagesOutdated,
    /// Answers [`crate::Command::Publish`].
    Published {
        /// What failed and is tried again soon.
        again: PublishAgain,
        /// Whether the pages show the current list.
        has_pages: bool,
        /// Whether it made a list that names a host.
        has_names: bool,
        /// The ordinary pause between two lists, with a new jitter.
        interval: Duration,
    },
}

/// Identifies a check until its host is no longer in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CheckNumber(pub u64);

/// The holder of a slot for a container, or a waiter for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SlotHolder {
    Check(CheckNumber),
    /// The reading of a list or of a proof, by the shell's number.
    Reading(u64),
}

/// Why a host is checked now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    Scheduled,
    Manual,
    /// Failures need a host that confirms them.
    Canary(Wish),
}

/// A host that is in flight from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Its record, already with its ordinary next due time.
    pub record: Box<Record>,
    /// Its class when it was taken.
    pub class: Class,
    /// Its latest checks in a row that ended in a counted fault.
    pub faults: u32,
}

/// A host that is in flight and may not be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAdmitted {
    pub host: Host,
    /// When it is due again. `None` means within the hour.
    pub due: Option<Timestamp>,
    /// The reason, for `explain`.
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It has a result about the host.
    Verdict {
        verdict: Verdict,
        /// What it shows to work, if a container found that the host responds.
        witness: Option<Witness>,
        /// What must be shown to work before a failing verdict counts.
        doubt: Doubt,
    },
    /// The check has to wait for its turn.
    Deferred {
        why: Deferral,
        retry_after: Duration,
    },
    Offline,
    Fault(CheckFault),
}

/// What was written for a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteOutcome {
    /// A verdict, which shows that the whole path works.
    Verdict,
    Released,
    Failed(String),
}
