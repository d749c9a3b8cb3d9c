//! A crowd of hosts in simulated time: the product's scheduler and the gateway's paces, rows in
//! memory, and opens and checks with realistic durations. For stories of days about paces and
//! blame, not about the store.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::RandomState;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use census::class::{Class, PerClass, Tried};
use census::schedule::due_when_taken;
use census::state::{Record, Verdict};
use census::time::{Calendar, Timestamp};
use census::transition::transition;
use gateway::Paces;
use gateway::pace::{Charged, Late, Pace};
use orchestrator::ground::clock::Random;
use protocol::egress::{Deferral, Family};
use protocol::{DeadReason, Host};
use scheduler::blame::doubt::{Dns, Doubt, Witness};
use scheduler::blame::faults::{CheckFault, FaultScope};
use scheduler::command::{Command, Release, Start, Wait};
use scheduler::demand::start_rate::{AHEAD, COUNTED_MAX, Load};
use scheduler::event::{
    CheckNumber, CheckOutcome, SlotDemand, SlotHolder, Taken, Trigger, WriteOutcome,
};
use scheduler::publication::PublishAgain;
use scheduler::slots::SLOT_WAIT_MAX;
use scheduler::slots::concurrency::Bounds;
use scheduler::{Event, LastList, Scheduler, Settings};

const OPENS_MAX: u32 = 16;
const CHECKS_MAX: u32 = 4;
const STARTS_PER_SECOND: u32 = 10;

/// Durations: an answer from the gateway alone, one from DNS, an unanswered connection, a check of
/// a responding instance, and one that faults.
const ANSWER: Duration = Duration::from_millis(2);
const LOOK_UP: Duration = Duration::from_millis(30);
const DIAL_FAILED: Duration = Duration::from_secs(5);
const CHECK: Duration = Duration::from_secs(2);

const PUBLISH_INTERVAL: Duration = Duration::from_secs(6 * 3600);

/// Least wait of a responding host that was deferred.
const EARLY_ASK: Duration = Duration::from_secs(30);

/// Interval of successful checks elsewhere, if any, over the two families in turns: short enough
/// that failures are confirmed at once.
const ELSEWHERE_EVERY: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Responds,
    Silent,
    Faults,
}

#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub(crate) host: Host,
    pub(crate) group: String,
    pub(crate) address: IpAddr,
    pub(crate) behaviour: Behaviour,
    /// Whether it responded before the story begins.
    pub(crate) responded: bool,
    pub(crate) due: Timestamp,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Fate {
    pub(crate) visits: Vec<Timestamp>,
    /// How often the gateway deferred it.
    pub(crate) deferrals: usize,
    /// Its longest wait since it was due.
    pub(crate) wait_max: Duration,
    due: Option<Timestamp>,
}

/// Whether other checks succeed, unrelated to the crowd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    /// Every two seconds.
    Responds,
    /// There is only the crowd.
    Nothing,
}

/// A controller that is switched off, to show its benefit. The product has no such switch: this
/// shell withholds what the controller needs, or reverts its decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Off {
    Nothing,
    /// The gateway never learns that an instance responded at an address.
    Proofs,
    /// Responding hosts wait for their promised turn, like all others.
    EarlyAsks,
    /// Responding hosts ask again after half a minute, however many of them do.
    Stretch,
    /// The start rate rises again at once after each dial that the gateway could not make.
    SustainableRate,
}

#[derive(Debug, Clone, Copy)]
enum Happening {
    Resolved(CheckNumber),
    Accepted(CheckNumber),
    Ends(CheckNumber),
    Deferred(CheckNumber, Deferral, Duration),
    Elsewhere,
}

#[derive(Debug)]
pub(crate) struct Crowd {
    pub(crate) now: Timestamp,
    pub(crate) names: Vec<Name>,
    pub(crate) fates: Vec<Fate>,
    pub(crate) opens: usize,
    /// When each registered domain's name servers were queried.
    pub(crate) look_ups: HashMap<String, Vec<Timestamp>>,
    pub(crate) dials: BTreeMap<IpAddr, Vec<Timestamp>>,
    /// How long no check could start.
    pub(crate) stopped_for: Duration,
    start: Timestamp,
    began: Instant,
    pace: Pace,
    random: Random,
    off: Off,
    load: Load,
    scheduler: Scheduler,
    ids: HashMap<Host, usize>,
    records: Vec<Record>,
    /// The failed attempts since each name's last verdict.
    tried: Vec<Tried>,
    due: PerClass<BTreeSet<(Timestamp, usize)>>,
    checks: HashMap<CheckNumber, (usize, Timestamp)>,
    /// By time. Events at the same time are in the order of their causes.
    happenings: BTreeMap<(Timestamp, usize), Happening>,
    caused: usize,
    elsewhere_v6: bool,
}

impl Crowd {
    /// A census of these names that begins now.
    pub(crate) fn new(names: Vec<Name>, elsewhere: Elsewhere, start: Timestamp) -> Self {
        let (least, most) = (CHECKS_MAX, CHECKS_MAX);
        let settings = settings(Bounds { least, most }, OPENS_MAX, STARTS_PER_SECOND);
        let mut crowd = Self {
            now: start,
            names: Vec::new(),
            fates: Vec::new(),
            opens: 0,
            look_ups: HashMap::new(),
            dials: BTreeMap::new(),
            stopped_for: Duration::ZERO,
            start,
            began: Instant::now(),
            pace: Pace::new(Paces::default(), 1),
            random: Random::seeded(4),
            off: Off::Nothing,
            load: Load::default(),
            scheduler: Scheduler::new(settings, start),
            ids: HashMap::new(),
            records: Vec::new(),
            tried: Vec::new(),
            due: PerClass::default(),
            checks: HashMap::new(),
            happenings: BTreeMap::new(),
            caused: 0,
            elsewhere_v6: false,
        };
        crowd.learn(names);
        if elsewhere == Elsewhere::Responds {
            crowd.at(Duration::ZERO, Happening::Elsewhere);
        }
        crowd
    }

    pub(crate) fn without(mut self, off: Off) -> Self {
        self.off = off;
        self
    }

    pub(crate) fn learn(&mut self, names: Vec<Name>) {
        for name in names {
            let id = self.names.len();
            let mut record = Record::discovered(name.host.clone(), self.now, name.due);
            record.last_alive = name.responded.then_some(self.start);
            // Checked daily from the beginning: second checks of new hosts are another story.
            record.last_checked = Some(self.start);
            self.ids.insert(name.host.clone(), id);
            self.records.push(record);
            self.tried.push(Tried::Never);
            self.fates.push(Fate::default());
            self.names.push(name);
            self.enqueue(id);
        }
        self.on(Event::RowsChanged);
    }

    /// The gateway is killed and restarted, and has forgotten everything.
    pub(crate) fn restart_gateway(&mut self) {
        self.pace = Pace::new(Paces::default(), 1);
    }

    pub(crate) fn run_until(&mut self, end: Timestamp) {
        self.on(Event::Tick);
        loop {
            let mut next = self.scheduler.wakes_at(self.now).max(self.now);
            if let Some(((at, _), _)) = self.happenings.first_key_value() {
                next = next.min(*at);
            }
            let next = next.min(end);
            if self.scheduler.outage().is_some() {
                self.stopped_for += next.since(self.now);
            }
            self.now = next;
            if next == end {
                return;
            }
            while let Some(first) = self.happenings.first_entry()
                && first.key().0 <= self.now
            {
                let happening = first.remove();
                self.happen(happening);
            }
            self.on(Event::Tick);
        }
    }

    fn at(&mut self, after: Duration, happening: Happening) {
        self.caused += 1;
        let at = (self.now.plus(after), self.caused);
        self.happenings.insert(at, happening);
    }

    fn instant(&self) -> Instant {
        self.began + self.now.since(self.start)
    }

    /// Adds the host to the due ones by its record.
    fn enqueue(&mut self, id: usize) {
        let class = Class::of(&self.records[id], self.tried[id]);
        if let Some(due) = self.records[id].due {
            self.due.of_mut(class).insert((due, id));
        }
    }

    fn on(&mut self, event: Event) {
        for command in self.scheduler.on(event, self.now) {
            self.carry_out(command);
        }
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::CountDue { most, with_load } => self.count_due(most, with_load),
            Command::Take { wanted } => self.take(wanted),
            Command::Start(start) => self.open(&start),
            Command::GrantSlot(SlotHolder::Check(check)) => {
                self.on(Event::FirstOutput { check });
                self.at(CHECK, Happening::Ends(check));
            }
            Command::TurnAway(SlotHolder::Check(check)) => {
                let outcome = CheckOutcome::Deferred {
                    why: Deferral::Full,
                    retry_after: SLOT_WAIT_MAX,
                };
                self.ended(check, outcome);
            }
            Command::CommitVerdict { record, verdict } => self.commit(&record, &verdict),
            Command::Release(Release { host, wait, .. }) => {
                let wait = self.wait_with_what_is_off(wait);
                let due = wait.due(self.now, self.random.jitter(), Calendar::REAL);
                if let Some(id) = self.ids.get(&host).copied() {
                    self.tried[id] = Tried::InVain;
                    self.records[id].due = Some(due);
                    self.enqueue(id);
                }
                let outcome = WriteOutcome::Released;
                self.on(Event::Written { host, outcome });
                self.on(Event::RowsChanged);
            }
            Command::AskParts => self.on(Event::PartStatus(Ok(()))),
            Command::Publish { .. } => self.on(published()),
            // There are no canaries, readings or opt-outs, and the log is not used.
            Command::TakeCanary(_)
            | Command::GrantSlot(SlotHolder::Reading(_))
            | Command::TurnAway(SlotHolder::Reading(_))
            | Command::Abort { .. }
            | Command::RememberWay { .. }
            | Command::Report(_) => {}
        }
    }

    fn wait_with_what_is_off(&self, wait: Wait) -> Wait {
        match (self.off, wait) {
            // Only a host that asks before its turn has an `at_most`, which is its turn.
            (Off::EarlyAsks, Wait::Spread { at_most, .. }) if at_most < Duration::MAX => {
                Wait::Until(self.now.plus(at_most))
            }
            (Off::Stretch, Wait::Spread { at_least, at_most }) if at_most < Duration::MAX => {
                Wait::Spread {
                    at_least: at_least.min(EARLY_ASK),
                    at_most,
                }
            }
            (_, wait) => wait,
        }
    }

    fn count_due(&mut self, most: u32, with_load: bool) {
        let now = self.now;
        let count = |from: Timestamp, until: Timestamp, most: u32| {
            let all = Class::ALL.into_iter().flat_map(|class| {
                self.due
                    .of(class)
                    .range((from, 0)..(until.plus(Duration::from_millis(1)), 0))
            });
            u32::try_from(all.take(usize::try_from(most).unwrap_or(0)).count()).unwrap_or(most)
        };
        if with_load {
            let soon = now.plus(Duration::from_millis(1));
            self.load = Load {
                late: count(Timestamp(i64::MIN), now, COUNTED_MAX),
                coming: count(soon, now.plus(AHEAD), COUNTED_MAX),
            };
        }
        // Each reported load raises the rate.
        let load = (with_load || self.off == Off::SustainableRate).then_some(self.load);
        let waiting = PerClass::each(|class| {
            let due = self.due.of(class).iter();
            let due = due.take_while(|(due, _)| *due <= now);
            u32::try_from(due.take(usize::try_from(most).unwrap_or(0)).count()).unwrap_or(most)
        });
        let firsts = Class::ALL
            .into_iter()
            .filter_map(|class| self.due.of(class).first());
        let next_due = firsts.map(|(due, _)| *due).min();
        self.on(Event::Demand {
            waiting,
            next_due,
            load,
        });
    }

    fn take(&mut self, wanted: PerClass<u32>) {
        let mut hosts = Vec::new();
        for class in Class::ALL {
            for _ in 0..*wanted.of(class) {
                let Some((due, id)) = self.due.of_mut(class).pop_first() else {
                    break;
                };
                self.fates[id].due.get_or_insert(due);
                hosts.push(self.taken(id, class));
            }
        }
        self.on(Event::Taken {
            hosts,
            not_admitted: Vec::new(),
        });
    }

    fn taken(&mut self, id: usize, class: Class) -> Taken {
        let record = &mut self.records[id];
        record.due = due_when_taken(record, self.now, self.random.jitter(), Calendar::REAL);
        Taken {
            record: Box::new(record.clone()),
            class,
            faults: 0,
        }
    }

    fn open(&mut self, start: &Start) {
        // A check elsewhere ends where it is started.
        let Some(id) = self.ids.get(&start.host).copied() else {
            self.succeed_elsewhere(start.check);
            return;
        };
        self.opens += 1;
        self.checks.insert(start.check, (id, self.now));
        let (instant, group) = (self.instant(), &self.names[id].group);
        match self.pace.charge_group(group, instant) {
            Ok(()) => {
                let asked = self.look_ups.entry(group.clone()).or_default();
                asked.push(self.now);
                self.at(LOOK_UP, Happening::Resolved(start.check));
            }
            Err(late) => self.defer(start.check, late),
        }
    }

    fn defer(&mut self, check: CheckNumber, Late { why, retry_after }: Late) {
        assert!(
            why != Deferral::DialPace || retry_after > Duration::ZERO,
            "{why:?} without a wait is a busy loop"
        );
        let (id, _) = self.checks[&check];
        self.fates[id].deferrals += 1;
        // Rounded up, like the gateway's answer.
        let told = u64::try_from(retry_after.as_micros().div_ceil(1000)).unwrap();
        let told = Duration::from_millis(told);
        self.at(ANSWER, Happening::Deferred(check, why, told));
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Resolved(check) => self.dial(check),
            Happening::Accepted(check) => {
                let demand = SlotDemand::One;
                self.on(Event::Opened { check, demand });
            }
            Happening::Ends(check) => self.end(check),
            Happening::Deferred(check, why, retry_after) => {
                self.ended(check, CheckOutcome::Deferred { why, retry_after });
            }
            Happening::Elsewhere => {
                let host = Host::parse("elsewhere.example").unwrap();
                let record = Record::discovered(host, self.now, self.now);
                self.on(Event::TakenOne {
                    taken: Taken {
                        record: Box::new(record),
                        class: Class::Living,
                        faults: 0,
                    },
                    trigger: Trigger::Manual,
                });
                self.at(ELSEWHERE_EVERY, Happening::Elsewhere);
            }
        }
    }

    fn dial(&mut self, check: CheckNumber) {
        let (id, _) = self.checks[&check];
        let Name {
            address, behaviour, ..
        } = self.names[id];
        let targets = [SocketAddr::new(address, 443)];
        let instant = self.instant();
        let turn = self
            .pace
            .charge_dial(&targets, &mut Charged::default(), instant);
        let Some(turn) = turn else {
            let late = self.pace.promise_dial(&targets, 1, instant);
            self.defer(check, late);
            return;
        };
        let dialled = self.now.plus(turn.wait);
        self.dials.entry(address).or_default().push(dialled);
        let fate = &mut self.fates[id];
        fate.visits.push(dialled);
        let due = fate.due.take().expect("it was due");
        fate.wait_max = fate.wait_max.max(dialled.since(due));
        match behaviour {
            Behaviour::Responds | Behaviour::Faults => {
                self.at(turn.wait, Happening::Accepted(check));
            }
            Behaviour::Silent => self.at(turn.wait + DIAL_FAILED, Happening::Ends(check)),
        }
    }

    fn end(&mut self, check: CheckNumber) {
        let (id, began) = self.checks[&check];
        let address = self.names[id].address;
        let outcome = match self.names[id].behaviour {
            Behaviour::Responds => {
                if self.off != Off::Proofs {
                    self.pace.prove(address, self.instant());
                }
                alive(began, self.now, address)
            }
            Behaviour::Silent => {
                let demand = SlotDemand::None;
                self.on(Event::Opened { check, demand });
                CheckOutcome::Verdict {
                    verdict: Verdict::Dead {
                        reason: DeadReason::Unreachable,
                        status: None,
                        to: None,
                    },
                    witness: None,
                    doubt: Doubt {
                        families: vec![Family::of(address)],
                        dns: Dns::Fresh(None),
                    },
                }
            }
            Behaviour::Faults => CheckOutcome::Fault(CheckFault {
                scope: FaultScope::HostSuspected,
                what: "the checker exited with 0, but its finding did not arrive".to_owned(),
                is_engine: false,
            }),
        };
        self.ended(check, outcome);
    }

    fn ended(&mut self, check: CheckNumber, outcome: CheckOutcome) {
        self.checks.remove(&check);
        self.on(Event::CheckEnded { check, outcome });
    }

    /// A check unrelated to the crowd succeeds, over both families in turns.
    fn succeed_elsewhere(&mut self, check: CheckNumber) {
        self.elsewhere_v6 = !self.elsewhere_v6;
        let address: IpAddr = if self.elsewhere_v6 {
            [0x2a00, 1, 0, 0, 0, 0, 0, 1].into()
        } else {
            [9, 9, 9, 9].into()
        };
        self.ended(check, alive(self.now, self.now, address));
    }

    fn commit(&mut self, record: &Record, verdict: &Verdict) {
        if let Some(id) = self.ids.get(&record.host).copied() {
            let jitter = self.random.jitter();
            let change = transition(record, verdict, self.now, jitter, Calendar::REAL);
            assert!(!change.forget, "not within these stories' time");
            self.records[id] = change.record;
            self.tried[id] = Tried::Never;
            self.enqueue(id);
        }
        self.on(Event::Written {
            host: record.host.clone(),
            outcome: WriteOutcome::Verdict,
        });
    }
}

/// Settings of a census without canaries, whose shell reports each row that becomes due sooner.
pub(crate) fn settings(containers: Bounds, opens_max: u32, starts_per_second: u32) -> Settings {
    Settings {
        containers,
        opens_max,
        starts_per_second,
        canaries: Vec::new(),
        has_second_way: false,
        peers_every: 3,
        calendar: Calendar::REAL,
        published: Some(LastList {
            first: Some(Timestamp(0)),
            at: Timestamp(0),
        }),
        publish_interval: PUBLISH_INTERVAL,
        count_again_after: Duration::from_secs(3600),
        look_around_every: Duration::from_secs(1),
        name_key: RandomState::new(),
    }
}

pub(crate) fn published() -> Event {
    Event::Published {
        again: PublishAgain::Nothing,
        has_pages: true,
        has_names: true,
        interval: PUBLISH_INTERVAL,
    }
}

fn alive(began: Timestamp, now: Timestamp, address: IpAddr) -> CheckOutcome {
    CheckOutcome::Verdict {
        verdict: kit::alive(),
        witness: Some(Witness {
            began,
            lived: now,
            address,
            fresh: true,
        }),
        doubt: Doubt {
            families: vec![Family::of(address)],
            dns: Dns::Sound,
        },
    }
}
