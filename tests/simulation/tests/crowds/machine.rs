//! One machine in simulated time, with a number of processors and room for a number of containers:
//! the product's scheduler, hosts that are always due, and lists that are made during the checks.
//! For stories about the machine's capacity.

use std::collections::BTreeMap;
use std::time::Duration;

use census::class::{Class, PerClass};
use census::state::Record;
use census::time::Timestamp;
use protocol::Host;
use scheduler::blame::doubt::{Dns, Doubt};
use scheduler::blame::faults::{CheckFault, FaultScope};
use scheduler::command::{Command, Release};
use scheduler::event::{CheckNumber, CheckOutcome, SlotDemand, SlotHolder, Taken, WriteOutcome};
use scheduler::slots::concurrency::{Bounds, Pressure};
use scheduler::{Event, Scheduler, Settings};

use crate::crowd::{published, settings};

const START: Timestamp = Timestamp(1_700_000_000_000);

/// All events happen at multiples of this.
const STEP: Duration = Duration::from_millis(100);

/// Times from a slot to the container's first output, to its end, and to the engine's failure if
/// there is no memory for it.
const FIRST_OUTPUT: Duration = Duration::from_millis(300);
const CHECK: Duration = Duration::from_secs(2);
const FAILED: Duration = Duration::from_millis(500);

/// Interval at which the daemon measures the machine's pressure.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Memory left, in checks: below the first number the daemon reports high pressure, below the
/// second an overload.
const CHECKS_LEFT: (u32, u32) = (4, 2);

/// Time for a list in a separate process with a whole processor.
const LIST: Duration = Duration::from_secs(20);

/// A controller that is switched off: this shell withholds the event that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Off {
    Nothing,
    /// The machine's pressure is not reported.
    Pressure,
    /// The scheduler receives the end of a publication when the list has just begun.
    Throttle,
}

#[derive(Debug)]
pub(crate) struct Machine {
    /// Containers that the engine failed to run.
    pub(crate) faults: u32,
    pub(crate) checks: u32,
    /// Time for the list. `None` until it is finished.
    pub(crate) list_took: Option<Duration>,
    off: Off,
    processors: f64,
    memory: u32,
    now: Timestamp,
    scheduler: Scheduler,
    named: u64,
    /// Running containers: since when, and whether they will fail.
    running: BTreeMap<CheckNumber, (Timestamp, bool)>,
    list: Option<(Duration, Timestamp)>,
}

impl Machine {
    /// A machine with this number of processors, and memory for this number of containers.
    pub(crate) fn new(processors: u32, memory: u32, containers: Bounds, off: Off) -> Self {
        let settings = Settings {
            count_again_after: Duration::from_secs(1),
            ..settings(containers, containers.most * 4, 100)
        };
        Self {
            faults: 0,
            checks: 0,
            list_took: None,
            off,
            processors: f64::from(processors),
            memory,
            now: START,
            scheduler: Scheduler::new(settings, START),
            named: 0,
            running: BTreeMap::new(),
            list: None,
        }
    }

    pub(crate) fn run(&mut self, span: Duration) {
        let end = self.now.plus(span);
        while self.now < end {
            self.end_checks();
            self.make_list();
            let since = u64::try_from(self.now.since(START).as_millis()).unwrap();
            if since.is_multiple_of(u64::try_from(LOOK_EVERY.as_millis()).unwrap()) {
                self.look();
            }
            self.on(Event::Tick);
            self.now = self.now.plus(STEP);
        }
    }

    fn look(&mut self) {
        let left = self.memory.saturating_sub(self.containers());
        let pressure = if left < CHECKS_LEFT.1 {
            Pressure::Overloaded
        } else if left < CHECKS_LEFT.0 {
            Pressure::High
        } else {
            Pressure::Low
        };
        if self.off != Off::Pressure {
            self.on(Event::Pressure(pressure));
        }
    }

    fn containers(&self) -> u32 {
        u32::try_from(self.running.len()).unwrap()
    }

    fn end_checks(&mut self) {
        let (now, running) = (self.now, self.running.clone());
        for (check, (since, fails)) in running {
            let lasted = now.since(since);
            if lasted == FIRST_OUTPUT && !fails {
                self.on(Event::FirstOutput { check });
            }
            if lasted >= if fails { FAILED } else { CHECK } {
                self.running.remove(&check);
                let outcome = self.outcome(fails);
                self.on(Event::CheckEnded { check, outcome });
            }
        }
    }

    fn outcome(&mut self, fails: bool) -> CheckOutcome {
        if fails {
            self.faults += 1;
            return CheckOutcome::Fault(CheckFault {
                scope: FaultScope::Transient,
                what: "the engine started no container".to_owned(),
                is_engine: true,
            });
        }
        self.checks += 1;
        CheckOutcome::Verdict {
            verdict: kit::alive(),
            witness: None,
            doubt: Doubt {
                families: Vec::new(),
                dns: Dns::Sound,
            },
        }
    }

    /// Each container keeps a processor busy, and a list gets its share.
    fn make_list(&mut self) {
        let Some((left, began)) = self.list else {
            return;
        };
        let share = (self.processors / f64::from(self.containers() + 1)).min(1.0);
        let left = left.saturating_sub(STEP.mul_f64(share));
        self.list = Some((left, began));
        if left.is_zero() {
            self.list = None;
            self.list_took = Some(self.now.since(began));
            if self.off != Off::Throttle {
                self.on(published());
            }
        }
    }

    fn on(&mut self, event: Event) {
        for command in self.scheduler.on(event, self.now) {
            self.carry_out(command);
        }
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::CountDue { most, .. } => self.on(Event::Demand {
                waiting: PerClass {
                    living: most,
                    ..PerClass::default()
                },
                next_due: Some(self.now),
                load: None,
            }),
            Command::Take { wanted } => {
                let hosts = (0..wanted.sum()).map(|_| self.taken()).collect();
                self.on(Event::Taken {
                    hosts,
                    not_admitted: Vec::new(),
                });
            }
            Command::Start(start) => self.on(Event::Opened {
                check: start.check,
                demand: SlotDemand::One,
            }),
            Command::GrantSlot(SlotHolder::Check(check)) => {
                let fails = self.containers() >= self.memory;
                self.running.insert(check, (self.now, fails));
            }
            Command::TurnAway(SlotHolder::Check(check)) => {
                let outcome = CheckOutcome::Deferred {
                    why: protocol::egress::Deferral::Full,
                    retry_after: scheduler::slots::SLOT_WAIT_MAX,
                };
                self.on(Event::CheckEnded { check, outcome });
            }
            Command::CommitVerdict { record, .. } => self.on(Event::Written {
                host: record.host,
                outcome: WriteOutcome::Verdict,
            }),
            Command::Release(Release { host, .. }) => self.on(Event::Written {
                host,
                outcome: WriteOutcome::Released,
            }),
            Command::AskParts => self.on(Event::PartStatus(Ok(()))),
            Command::Publish { .. } => {
                self.list = Some((LIST, self.now));
                if self.off == Off::Throttle {
                    self.on(published());
                }
            }
            // There are no canaries, readings or opt-outs, and the log is not used.
            Command::TakeCanary(_)
            | Command::GrantSlot(SlotHolder::Reading(_))
            | Command::TurnAway(SlotHolder::Reading(_))
            | Command::Abort { .. }
            | Command::RememberWay { .. }
            | Command::Report(_) => {}
        }
    }

    fn taken(&mut self) -> Taken {
        self.named += 1;
        let host = Host::parse(&format!("h{}.example", self.named)).unwrap();
        Taken {
            record: Box::new(Record::discovered(host, self.now, self.now)),
            class: Class::Living,
            faults: 0,
        }
    }
}
