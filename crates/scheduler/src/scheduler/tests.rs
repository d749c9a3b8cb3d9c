//! The scheduler from its shell's point of view: events in, commands out.

mod books;
mod first_list;
mod opt_outs;
mod ways;

use std::hash::RandomState;
use std::net::IpAddr;

use census::class::PerClass;
use protocol::DeadReason;
use protocol::egress::{Deferral, Family};
use protocol::order::AskPeers;

use super::*;
use crate::blame::doubt::{Dns, Doubt, Witness};
use crate::blame::faults::{CheckFault, FaultScope};
use crate::demand::start_rate::Load;
use crate::event::{CheckOutcome, NotAdmitted, SlotDemand, Taken, Trigger, WriteOutcome};
use crate::publication::PublishAgain;
use crate::slots::SLOT_WAIT_MAX;

const START: Timestamp = Timestamp(1_700_000_000_000);
const SECOND: Duration = Duration::from_secs(1);
const CONTAINERS: u32 = 4;
const OPENS_MAX: u32 = 16;

fn host(number: u64) -> Host {
    Host::parse(&format!("h{number}.example")).unwrap()
}

fn settings(canaries: Vec<Host>) -> Settings {
    Settings {
        containers: Bounds {
            least: CONTAINERS,
            most: CONTAINERS,
        },
        opens_max: OPENS_MAX,
        starts_per_second: 100,
        canaries,
        has_second_way: false,
        peers_every: 3,
        calendar: Calendar::REAL,
        published: Some(LastList {
            first: Some(Timestamp(0)),
            at: Timestamp(0),
        }),
        publish_interval: Duration::from_secs(6 * 3600),
        count_again_after: SECOND,
        look_around_every: SECOND,
        name_key: RandomState::new(),
    }
}

struct Rig {
    scheduler: Scheduler,
    now: Timestamp,
    commands: Vec<Command>,
}

impl Rig {
    fn new() -> Self {
        Self::with(Vec::new())
    }

    /// A scheduler whose first list is published, and in which no host is due.
    fn with(canaries: Vec<Host>) -> Self {
        let mut rig = Self {
            scheduler: Scheduler::new(settings(canaries), START),
            now: START,
            commands: Vec::new(),
        };
        rig.on(Event::Tick);
        rig.on(Event::Published {
            again: PublishAgain::Nothing,
            has_pages: true,
            has_names: true,
            interval: Duration::from_secs(6 * 3600),
        });
        rig.on(Event::Demand {
            waiting: PerClass::default(),
            next_due: None,
            load: None,
        });
        rig.commands.clear();
        rig
    }

    fn on(&mut self, event: Event) -> Vec<Command> {
        let commands = self.scheduler.on(event, self.now);
        self.commands.extend(commands.iter().cloned());
        commands
    }

    fn pass(&mut self, duration: Duration) {
        self.now = self.now.plus(duration);
    }

    /// Lets a second pass and sends a tick, as the daemon does.
    fn tick(&mut self) -> Vec<Command> {
        self.pass(SECOND);
        self.on(Event::Tick)
    }

    fn taken(&mut self, number: u64, faults: u32) -> CheckNumber {
        let record = Record::discovered(host(number), START, self.now.plus(SECOND * 3600 * 29));
        let commands = self.on(Event::TakenOne {
            taken: Taken {
                record: Box::new(record),
                class: Class::New,
                faults,
            },
            trigger: Trigger::Scheduled,
        });
        let started = commands.iter().find_map(|command| match command {
            Command::Start(start) => Some(start.check),
            _ => None,
        });
        started.unwrap_or_else(|| panic!("{commands:?}"))
    }

    fn ended(&mut self, check: CheckNumber, outcome: CheckOutcome) -> Vec<Command> {
        self.on(Event::CheckEnded { check, outcome })
    }

    /// A check of this host from now until a second later.
    fn check(
        &mut self,
        number: u64,
        outcome: impl FnOnce(Timestamp) -> CheckOutcome,
    ) -> Vec<Command> {
        let (check, began) = (self.taken(number, 0), self.now);
        self.pass(SECOND);
        self.ended(check, outcome(began))
    }

    fn releases(&self) -> Vec<(&Host, &Released)> {
        let released = self.commands.iter().filter_map(|command| match command {
            Command::Release(release) => Some((&release.host, &release.why)),
            _ => None,
        });
        released.collect()
    }
}

fn alive_at(address: impl Into<IpAddr>) -> impl FnOnce(Timestamp) -> CheckOutcome {
    let address = address.into();
    move |began| CheckOutcome::Verdict {
        verdict: kit::alive(),
        witness: Some(Witness {
            began,
            lived: began.plus(SECOND),
            address,
            fresh: true,
        }),
        doubt: sound(),
    }
}

fn alive(began: Timestamp) -> CheckOutcome {
    alive_at([192, 0, 2, 1])(began)
}

fn sound() -> Doubt {
    Doubt {
        families: vec![Family::V4],
        dns: Dns::Sound,
    }
}

fn dead(_began: Timestamp) -> CheckOutcome {
    CheckOutcome::Verdict {
        verdict: Verdict::Dead {
            reason: DeadReason::Status,
            status: Some(500),
            to: None,
        },
        witness: None,
        doubt: sound(),
    }
}

fn fault(scope: FaultScope) -> impl Fn(Timestamp) -> CheckOutcome {
    move |_began| {
        CheckOutcome::Fault(CheckFault {
            scope,
            what: "as the test wants it".to_owned(),
            is_engine: false,
        })
    }
}

fn commits(commands: &[Command]) -> Vec<&Verdict> {
    let verdicts = commands.iter().filter_map(|command| match command {
        Command::CommitVerdict { verdict, .. } => Some(verdict),
        _ => None,
    });
    verdicts.collect()
}

#[test]
fn due_hosts_are_counted_and_taken_as_far_as_there_is_room() {
    let mut rig = Rig::new();
    let commands = rig.tick();
    let [Command::CountDue { most, with_load }] = commands.as_slice() else {
        panic!("{commands:?}");
    };
    assert_eq!((*most, *with_load), (OPENS_MAX, true));
    assert_eq!(rig.on(Event::RowsChanged), [], "one question at a time");
    let waiting = PerClass {
        living: 9,
        new: 9,
        retry: 9,
        dead: 9,
    };
    let commands = rig.on(Event::Demand {
        waiting,
        next_due: None,
        load: None,
    });
    let [Command::Take { wanted }] = commands.as_slice() else {
        panic!("{commands:?}");
    };
    assert_eq!(wanted.sum(), OPENS_MAX);
    assert!(wanted.living > wanted.dead, "{wanted:?}");
}

#[test]
fn when_nothing_is_due_it_asks_again_when_something_is_and_within_a_second() {
    let mut rig = Rig::new();
    for (next_due, expect) in [
        (None, SECOND),
        (Some(START.plus(SECOND * 9999)), SECOND),
        (Some(START), Duration::from_millis(50)),
    ] {
        rig.pass(SECOND * 3);
        rig.on(Event::Tick);
        rig.on(Event::Demand {
            waiting: PerClass::default(),
            next_due,
            load: None,
        });
        assert_eq!(rig.scheduler.wakes_at(rig.now).since(rig.now), expect);
    }
}

/// Otherwise each check that ends would be followed by a transaction for the next one alone.
#[test]
fn what_finds_room_within_a_portions_time_is_taken_in_one_write() {
    let mut rig = Rig::new();
    rig.tick();
    let hosts = |numbers: std::ops::Range<u64>| Event::Taken {
        hosts: numbers
            .map(|number| Taken {
                record: Box::new(Record::discovered(host(number), START, START)),
                class: Class::New,
                faults: 0,
            })
            .collect(),
        not_admitted: Vec::new(),
    };
    let commands = rig.on(hosts(0..3));
    assert_eq!(
        commands.len(),
        3,
        "three starts and no question: {commands:?}"
    );
    rig.pass(Duration::from_millis(10));
    assert_eq!(rig.on(Event::Tick), []);
    rig.pass(Duration::from_millis(40));
    let commands = rig.on(Event::Tick);
    assert!(
        matches!(commands.as_slice(), [Command::CountDue { .. }]),
        "{commands:?}"
    );
}

#[test]
fn a_host_that_may_not_be_checked_is_given_back_and_not_checked() {
    let mut rig = Rig::new();
    let refused = NotAdmitted {
        host: host(1),
        due: Some(START),
        why: "not asked: denied".to_owned(),
    };
    rig.on(Event::Taken {
        hosts: Vec::new(),
        not_admitted: vec![refused],
    });
    let why = Released::NotAdmitted("not asked: denied".to_owned());
    assert_eq!(rig.releases(), [(&host(1), &why)]);
    assert!(
        !rig.commands
            .iter()
            .any(|command| matches!(command, Command::Start(_)))
    );
    assert_eq!(rig.scheduler.snapshot().in_flight, 1, "until it is written");
}

#[test]
fn containers_that_come_up_let_more_run_at_once_and_engine_failures_fewer() {
    let mut settings = settings(Vec::new());
    settings.containers.least = 1;
    let mut rig = Rig {
        scheduler: Scheduler::new(settings, START),
        ..Rig::new()
    };
    let open = |rig: &mut Rig, number| {
        let check = rig.taken(number, 0);
        let demand = SlotDemand::One;
        let granted = rig.on(Event::Opened { check, demand });
        let grant = Command::GrantSlot(SlotHolder::Check(check));
        assert!(granted.contains(&grant), "{granted:?}");
        check
    };
    for number in 0..5 {
        let check = open(&mut rig, number);
        rig.on(Event::FirstOutput { check });
        rig.ended(check, alive(rig.now));
    }
    assert_eq!(rig.scheduler.snapshot().containers_allowed, 2);
    for number in 5..7 {
        let check = open(&mut rig, number);
        let mut outcome = fault(FaultScope::Transient)(rig.now);
        if let CheckOutcome::Fault(fault) = &mut outcome {
            fault.is_engine = true;
        }
        rig.ended(check, outcome);
    }
    assert_eq!(rig.scheduler.snapshot().containers_allowed, 1);
}

#[test]
fn a_check_waits_for_a_slot_and_is_turned_away_in_time() {
    let mut rig = Rig::new();
    let checks: Vec<_> = (0..=u64::from(CONTAINERS))
        .map(|number| rig.taken(number, 0))
        .collect();
    for check in &checks {
        let (check, demand) = (*check, SlotDemand::One);
        rig.on(Event::Opened { check, demand });
    }
    let last = SlotHolder::Check(*checks.last().unwrap());
    assert!(!rig.commands.contains(&Command::GrantSlot(last)));
    rig.pass(SLOT_WAIT_MAX);
    assert!(rig.tick().contains(&Command::TurnAway(last)));
}

#[test]
fn the_state_says_why_no_more_checks_run() {
    let mut rig = Rig::new();
    let limit = |rig: &Rig| rig.scheduler.snapshot().limit;
    assert_eq!(limit(&rig), Limit::Due);
    let deferred = |why| CheckOutcome::Deferred {
        why,
        retry_after: SECOND,
    };
    let check = rig.taken(1, 0);
    rig.ended(check, deferred(Deferral::GroupPace));
    assert_eq!(limit(&rig), Limit::Paces);
    rig.on(Event::Demand {
        waiting: PerClass::default(),
        next_due: None,
        load: Some(Load::default()),
    });
    assert_eq!(limit(&rig), Limit::Due);
    let check = rig.taken(2, 0);
    rig.ended(check, deferred(Deferral::DialPace));
    assert_eq!(limit(&rig), Limit::Dials);
    for number in 10..=10 + u64::from(CONTAINERS) {
        let (check, demand) = (rig.taken(number, 0), SlotDemand::One);
        rig.on(Event::Opened { check, demand });
    }
    assert_eq!(limit(&rig), Limit::Slots);
    assert_eq!(rig.scheduler.snapshot().containers_running, CONTAINERS);
}

#[test]
fn a_failure_counts_only_when_others_succeeded_around_it() {
    let mut rig = Rig::new();
    let commands = rig.check(1, dead);
    assert!(commits(&commands).is_empty());
    rig.pass(SECOND * 60);
    let commands = rig.check(2, alive);
    assert_eq!(commits(&commands).len(), 1, "its own: {commands:?}");
    let why = Released::FailedOnce("dead status, status 500".to_owned());
    assert_eq!(rig.releases(), [(&host(1), &why)]);
    rig.check(1, dead);
    let commands = rig.check(3, alive);
    assert_eq!(commits(&commands).len(), 2, "it failed again: {commands:?}");
}

#[test]
fn a_failure_that_nobody_confirms_is_dropped() {
    let mut rig = Rig::new();
    rig.check(1, dead);
    for _ in 0..119 {
        rig.tick();
    }
    assert_eq!(rig.releases(), []);
    rig.tick();
    let why = Released::Unconfirmed("dead status, status 500".to_owned());
    assert_eq!(rig.releases(), [(&host(1), &why)]);
}

#[test]
fn failures_that_wait_have_a_canary_checked_and_the_next_one_if_it_cannot_be() {
    let mut rig = Rig::with(vec![host(100), host(101)]);
    rig.check(1, dead);
    let turn = loop {
        assert!(rig.now < START.plus(SECOND * 90), "no canary");
        let commands = rig.tick();
        let turn = commands.into_iter().find_map(|command| match command {
            Command::TakeCanary(turn) => Some(turn),
            _ => None,
        });
        if let Some(turn) = turn {
            break turn;
        }
    };
    assert_eq!(
        (&turn.host, turn.wish.family),
        (&host(100), Some(Family::V4))
    );
    let refused = |turn: &crate::command::CanaryTurn| Event::CanaryRefused {
        wish: turn.wish,
        left: turn.left,
    };
    let commands = rig.on(refused(&turn));
    let Some(Command::TakeCanary(second)) = commands.first() else {
        panic!("{commands:?}");
    };
    assert_eq!(second.host, host(101));
    assert_eq!(rig.on(refused(second)), [], "all of them were tried");
    let taken = Taken {
        record: Box::new(Record::discovered(host(101), START, START)),
        class: Class::Living,
        faults: 0,
    };
    let trigger = Trigger::Canary(turn.wish);
    let commands = rig.on(Event::TakenOne { taken, trigger });
    let start = commands.iter().find_map(|command| match command {
        Command::Start(start) => Some(start.wish),
        _ => None,
    });
    let wish = Wish {
        family: Some(Family::V4),
        fresh: false,
        ..Wish::default()
    };
    assert_eq!(start, Some(wish));
}

#[test]
fn a_fault_that_reaches_every_check_stops_them_until_the_parts_work() {
    let mut rig = Rig::new();
    rig.check(1, fault(FaultScope::Global));
    assert!(rig.scheduler.outage().is_some());
    let commands = [rig.tick(), rig.tick()].concat();
    let counts = |commands: &[Command]| {
        commands
            .iter()
            .any(|c| matches!(c, Command::CountDue { .. }))
    };
    assert!(!counts(&commands) && commands.contains(&Command::AskParts));
    rig.on(Event::PartStatus(Err("still".to_owned())));
    for _ in 0..3 {
        rig.tick();
    }
    let commands = rig.on(Event::PartStatus(Ok(())));
    assert!(counts(&commands), "{commands:?}");
    assert!(
        commands
            .iter()
            .any(|c| matches!(c, Command::Report(Notice::OutageOver { .. })))
    );
}

#[test]
fn hosts_whose_row_could_not_be_written_are_given_back_when_the_store_works() {
    let mut rig = Rig::new();
    rig.check(1, alive);
    rig.on(Event::Written {
        host: host(1),
        outcome: WriteOutcome::Failed("disk full".to_owned()),
    });
    assert!(rig.scheduler.outage().is_some());
    assert_eq!(rig.scheduler.snapshot().in_flight, 1);
    rig.on(Event::PartStatus(Ok(())));
    assert_eq!(rig.releases(), [(&host(1), &Released::StoreFailed)]);
    rig.on(Event::Written {
        host: host(1),
        outcome: WriteOutcome::Released,
    });
    assert_eq!(rig.scheduler.snapshot().in_flight, 0);
}

/// The third time, if other checks succeed and hardly any other host faults.
#[test]
fn a_host_that_alone_keeps_faulting_becomes_dead_and_one_among_many_does_not() {
    let outcome_after = |faults, others: u64| {
        let mut rig = Rig::new();
        for number in 0..others {
            rig.check(1000 + number, fault(FaultScope::HostSuspected));
            rig.check(2, alive);
        }
        for _ in 0..2 {
            let check = rig.taken(1, faults);
            rig.ended(check, fault(FaultScope::HostSuspected)(rig.now));
            rig.check(3, alive);
            rig.pass(SECOND * 30);
        }
        let dead = commits(&rig.commands)
            .iter()
            .any(|verdict| verdict.is_failing());
        let counted = Released::CountedFault("as the test wants it".to_owned());
        (dead, rig.releases().contains(&(&host(1), &counted)))
    };
    assert_eq!(outcome_after(0, 0), (false, true));
    assert_eq!(outcome_after(2, 0), (true, false));
    assert_eq!(outcome_after(2, 15), (false, false));
}

#[test]
fn a_host_that_was_taken_when_an_outage_began_is_given_back() {
    let mut rig = Rig::new();
    let what = "the disk is full".to_owned();
    rig.on(Event::PartFailed { what: what.clone() });
    rig.on(Event::Taken {
        hosts: vec![Taken {
            record: Box::new(Record::discovered(host(1), START, START)),
            class: Class::New,
            faults: 0,
        }],
        not_admitted: Vec::new(),
    });
    assert_eq!(rig.releases(), [(&host(1), &Released::Fault(what))]);
}

/// A part that fails every second must not delay the next test of the parts.
#[test]
fn a_part_that_goes_on_failing_is_asked_again_within_seconds() {
    let mut rig = Rig::new();
    let asked = (0..3).any(|_| {
        let what = "the database is away".to_owned();
        rig.on(Event::PartFailed { what });
        rig.tick().contains(&Command::AskParts)
    });
    assert!(asked);
}

#[test]
fn a_canary_is_asked_for_what_is_needed_and_for_its_peers_once_a_day() {
    let mut rig = Rig::with(vec![host(100)]);
    let needed = Wish {
        family: Some(Family::V6),
        fresh: true,
        ..Wish::default()
    };
    let start = |rig: &mut Rig| {
        let taken = Taken {
            record: Box::new(Record::discovered(host(100), START, START)),
            class: Class::Living,
            faults: 0,
        };
        let trigger = Trigger::Canary(needed);
        let commands = rig.on(Event::TakenOne { taken, trigger });
        let start = commands.iter().find_map(|command| match command {
            Command::Start(start) => Some((start.wish, start.peers)),
            _ => None,
        });
        start.unwrap()
    };
    assert_eq!(start(&mut rig), (needed, AskPeers::Ask));
    assert_eq!(start(&mut rig), (needed, AskPeers::Skip));
}

#[test]
fn parts_must_answer_also_while_checks_end() {
    let mut rig = Rig::new();
    rig.taken(1, 0);
    let asked = |rig: &mut Rig, seconds: u32| {
        (0..seconds)
            .flat_map(|_| rig.tick())
            .filter(|command| *command == Command::AskParts)
            .count()
    };
    assert_eq!(asked(&mut rig, 4), 0);
    rig.check(2, alive);
    assert_eq!(asked(&mut rig, 9), 1);
    rig.on(Event::PartStatus(Ok(())));
    assert_eq!(asked(&mut rig, 4), 0);
    rig.on(Event::PartStatus(Err("the launcher hangs".to_owned())));
    assert!(rig.scheduler.outage().is_some());
}
