//! Whatever happens in whatever order, the books balance.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// Something that may happen to a census at any time.
#[derive(Debug, Clone)]
enum Step {
    Pass(u64),
    Answer(u8),
    Open(u8),
    End(u8, u8),
    Write(u8, bool),
    Parts(bool),
    Way(Way, bool),
    OptOut(u8),
    ClockSet(i64),
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..5000_u64).prop_map(Step::Pass),
        4 => any::<u8>().prop_map(Step::Answer),
        4 => any::<u8>().prop_map(Step::Open),
        6 => (any::<u8>(), any::<u8>()).prop_map(|(which, how)| Step::End(which, how)),
        6 => (any::<u8>(), prop::bool::weighted(0.95)).prop_map(|(which, works)| Step::Write(which, works)),
        2 => any::<bool>().prop_map(Step::Parts),
        1 => (prop::sample::select(&Way::ALL), any::<bool>()).prop_map(|(way, works)| Step::Way(way, works)),
        1 => any::<u8>().prop_map(Step::OptOut),
        1 => (-200_000_000..200_000_000_i64).prop_map(Step::ClockSet),
    ]
}

/// A shell that carries out commands in any order and at any time, and keeps books.
struct Shell {
    scheduler: Scheduler,
    now: Timestamp,
    counting: bool,
    wanted: Option<PerClass<u32>>,
    asks_parts: bool,
    running: BTreeMap<CheckNumber, Host>,
    opened: BTreeSet<CheckNumber>,
    granted: BTreeSet<CheckNumber>,
    writing: Vec<(Host, WriteOutcome)>,
    /// Hosts between being taken and being written.
    in_flight: BTreeSet<Host>,
    hosts: u64,
}

impl Shell {
    fn on(&mut self, event: Event) -> Result<(), TestCaseError> {
        for command in self.scheduler.on(event, self.now) {
            match command {
                Command::CountDue { most, .. } => {
                    prop_assert!(!self.counting && self.wanted.is_none(), "one at a time");
                    prop_assert!(most > 0 && most <= OPENS_MAX);
                    prop_assert!(self.scheduler.outage().is_none(), "during an outage");
                    self.counting = true;
                }
                Command::Take { wanted } => self.wanted = Some(wanted),
                Command::TakeCanary(_) => prop_assert!(false, "there is none"),
                Command::Start(start) => {
                    self.running.insert(start.check, start.host);
                }
                Command::GrantSlot(SlotHolder::Check(check)) => {
                    prop_assert!(self.opened.contains(&check), "{check:?} did not ask");
                    self.granted.insert(check);
                    let holders = self.granted.len();
                    prop_assert!(holders <= usize::try_from(CONTAINERS).unwrap());
                }
                Command::TurnAway(SlotHolder::Check(check)) => {
                    self.opened.remove(&check);
                }
                Command::GrantSlot(_) | Command::TurnAway(_) => prop_assert!(false, "no reading"),
                Command::Abort { check } => self.forget(check),
                Command::CommitVerdict { record, .. } => {
                    self.write(record.host, WriteOutcome::Verdict)?;
                }
                Command::Release(release) => self.write(release.host, WriteOutcome::Released)?,
                Command::AskParts => {
                    prop_assert!(!self.asks_parts, "one at a time");
                    self.asks_parts = true;
                }
                Command::Publish { .. } => {}
                Command::RememberWay { .. } | Command::Report(_) => {}
            }
        }
        let snapshot = self.scheduler.snapshot();
        prop_assert_eq!(snapshot.in_flight, self.in_flight.len());
        let running: u32 = snapshot.in_progress.values().sum();
        prop_assert_eq!(usize::try_from(running).unwrap(), self.running.len());
        Ok(())
    }

    fn write(&mut self, host: Host, outcome: WriteOutcome) -> Result<(), TestCaseError> {
        prop_assert!(self.in_flight.contains(&host), "{host} is not in flight");
        let twice = self.writing.iter().any(|(other, _)| *other == host);
        prop_assert!(!twice, "{host} is written twice");
        self.writing.push((host, outcome));
        Ok(())
    }

    fn forget(&mut self, check: CheckNumber) {
        self.running.remove(&check);
        self.opened.remove(&check);
        self.granted.remove(&check);
    }

    fn nth(&self, which: u8) -> Option<CheckNumber> {
        let count = self.running.len();
        let at = usize::from(which).checked_rem(count)?;
        self.running.keys().nth(at).copied()
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Pass(ms) => {
                self.now = self.now.plus(Duration::from_millis(ms));
                self.on(Event::Tick)?;
                let wakes_at = self.scheduler.wakes_at(self.now);
                prop_assert!(wakes_at > self.now, "a shell would spin");
                Ok(())
            }
            Step::Answer(count) => self.answer(count),
            Step::Open(which) => match self.nth(which) {
                Some(check) if self.opened.insert(check) => {
                    let demand = SlotDemand::One;
                    self.on(Event::Opened { check, demand })
                }
                Some(_) | None => Ok(()),
            },
            Step::End(which, how) => self.end(which, how),
            Step::Write(which, works) => {
                let Some(at) = usize::from(which).checked_rem(self.writing.len()) else {
                    return Ok(());
                };
                let (host, outcome) = self.writing.swap_remove(at);
                if works {
                    self.in_flight.remove(&host);
                    return self.on(Event::Written { host, outcome });
                }
                let outcome = WriteOutcome::Failed("disk full".to_owned());
                self.on(Event::Written { host, outcome })
            }
            Step::Parts(work) => {
                if !std::mem::take(&mut self.asks_parts) {
                    return Ok(());
                }
                let status = work.then_some(()).ok_or_else(|| "broken".to_owned());
                self.on(Event::PartStatus(status))
            }
            Step::Way(way, works) => {
                let status = works.then_some(()).ok_or_else(|| "broken".to_owned());
                self.on(Event::WayStatus { way, status })
            }
            Step::OptOut(which) => match self.nth(which) {
                Some(check) => {
                    let host = self.running.get(&check).cloned().unwrap();
                    self.on(Event::OptedOut { host })
                }
                None => Ok(()),
            },
            Step::ClockSet(by) => {
                self.now = Timestamp(self.now.0 + by);
                self.on(Event::ClockSet)
            }
        }
    }

    fn answer(&mut self, count: u8) -> Result<(), TestCaseError> {
        if let Some(wanted) = self.wanted.take() {
            let hosts = wanted.sum().min(u32::from(count % 8));
            let hosts = (0..hosts).map(|_| self.next_host()).collect();
            return self.on(Event::Taken {
                hosts,
                not_admitted: Vec::new(),
            });
        }
        if !std::mem::take(&mut self.counting) {
            return Ok(());
        }
        if count == 0 {
            let what = "the store".to_owned();
            return self.on(Event::StoreFailed { what });
        }
        let each = u32::from(count % 9);
        self.on(Event::Demand {
            waiting: PerClass::each(|_class| each),
            next_due: None,
            load: None,
        })
    }

    fn end(&mut self, which: u8, how: u8) -> Result<(), TestCaseError> {
        let Some(check) = self.nth(which) else {
            return Ok(());
        };
        self.forget(check);
        let outcome = match how % 8 {
            0 | 1 => alive_at([192, 0, 2, how])(self.now.minus(SECOND)),
            2 | 3 => dead(self.now),
            4 => CheckOutcome::Deferred {
                why: Deferral::DialPace,
                retry_after: SECOND,
            },
            5 => fault(FaultScope::HostSuspected)(self.now),
            6 => fault(FaultScope::Transient)(self.now),
            _ if how > 200 => CheckOutcome::Offline,
            _ if how > 100 => fault(FaultScope::Way)(self.now),
            _ => fault(FaultScope::Global)(self.now),
        };
        self.on(Event::CheckEnded { check, outcome })
    }

    fn next_host(&mut self) -> Taken {
        self.hosts += 1;
        let record = Record::discovered(host(self.hosts), START, START);
        self.in_flight.insert(record.host.clone());
        Taken {
            record: Box::new(record),
            class: Class::ALL[usize::try_from(self.hosts % 4).unwrap()],
            faults: 0,
        }
    }
}

proptest! {
    /// Whatever happens in whatever order: no host is lost or written twice, no slot is granted
    /// twice, nothing is requested twice, and in the end no host is in flight.
    #[test]
    fn the_books_balance(steps in prop::collection::vec(steps(), 1..300), two in any::<bool>()) {
        let mut settings = settings(Vec::new());
        settings.has_second_way = two;
        let steps = steps.into_iter().filter(|step| two || !matches!(step, Step::Way(..)));
        let mut shell = Shell {
            scheduler: Scheduler::new(settings, START),
            now: START,
            counting: false,
            wanted: None,
            asks_parts: false,
            running: BTreeMap::new(),
            opened: BTreeSet::new(),
            granted: BTreeSet::new(),
            writing: Vec::new(),
            in_flight: BTreeSet::new(),
            hosts: 0,
        };
        for step in steps {
            shell.step(step)?;
        }
        // Everything works again: all open work ends.
        shell.counting = false;
        for _ in 0..400 {
            while !shell.running.is_empty() {
                shell.step(Step::End(0, 0))?;
            }
            while !shell.writing.is_empty() {
                shell.step(Step::Write(0, true))?;
            }
            for way in Way::ALL.into_iter().filter(|_| two) {
                shell.step(Step::Way(way, true))?;
            }
            shell.step(Step::Parts(true))?;
            shell.step(Step::Pass(1000))?;
            shell.counting = false;
        }
        prop_assert!(shell.in_flight.is_empty(), "{:?}", shell.in_flight);
    }
}
