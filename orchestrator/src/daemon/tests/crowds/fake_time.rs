//! A census in fake time: real paces, real rules, real rows or a copy of them in memory; opens that take as long as they would.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use census::schedule::due_when_taken;
use census::share::{Room, Shares};
use census::state::{Record, Verdict};
use census::time::{Calendar, Timestamp};
use census::transition::transition;
use gateway::Paces;
use gateway::control::Deferral;
use gateway::pace::{Charged, Late, Pace};
use protocol::{DeadReason, Host, Private};
use store::{Candidate, Reader, Store};

use crate::clock::Dice;
use crate::daemon::verdicts::after_deferral;
use crate::due::EarlyAsks;

/// As the settings have it by default.
const OPENS_MAX: usize = 16;
const CHECKS_MAX: usize = 4;

/// How long what takes, in ms: an answer of the gateway alone, one of DNS, a connection that nobody answers, a check of a living instance.
const ANSWER: i64 = 2;
const LOOK_UP: i64 = 30;
const DIAL_FAILED: i64 = 5_000;
const CHECK: i64 = 2_000;

pub(super) const SECOND: i64 = 1_000;
pub(super) const HOUR: i64 = 3_600 * SECOND;

/// A name and what there is behind it.
#[derive(Debug, Clone)]
pub(super) struct Name {
    pub(super) host: Host,
    /// Its registered domain.
    pub(super) group: String,
    pub(super) address: IpAddr,
    pub(super) lives: bool,
    /// It has lived before the story begins.
    pub(super) lived: bool,
    /// When it is due first.
    pub(super) due: i64,
}

/// What became of a name.
#[derive(Debug, Clone, Default)]
pub(super) struct Fate {
    /// When it was dialled.
    pub(super) visits: Vec<i64>,
    pub(super) deferrals: usize,
    /// The longest it waited, from the moment that it was due.
    pub(super) wait_max: i64,
    due: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Resolved(usize),
    Deferred(usize, i64),
    Over(usize),
}

/// Where the rows are.
#[expect(clippy::large_enum_variant, reason = "a census has one of them")]
enum Rows {
    Memory {
        due: BTreeSet<(Timestamp, usize)>,
    },
    Database {
        runtime: tokio::runtime::Runtime,
        store: Store,
        reader: Reader,
        ids: HashMap<Host, usize>,
        _directory: tempfile::TempDir,
    },
}

/// The census.
pub(super) struct Census {
    pub(super) now: i64,
    pub(super) names: Vec<Name>,
    pub(super) fates: Vec<Fate>,
    pub(super) opens: usize,
    /// When which registered domain's servers were asked, which address was dialled.
    pub(super) look_ups: HashMap<String, Vec<i64>>,
    pub(super) dials: BTreeMap<IpAddr, Vec<i64>>,
    pace: Pace,
    began: Instant,
    rows: Rows,
    records: Vec<Record>,
    dice: Dice,
    early: EarlyAsks,
    shares: Shares,
    events: BinaryHeap<Reverse<(i64, Event)>>,
    /// When each place among the containers is free.
    places: [i64; CHECKS_MAX],
}

impl Census {
    /// Rows in memory, for crowds and times that a database would take too long over.
    pub(super) fn in_memory(names: Vec<Name>) -> Self {
        let rows = Rows::Memory {
            due: BTreeSet::new(),
        };
        Self::new(names, rows)
    }

    /// Rows in a database, through the store's own writer.
    pub(super) fn in_a_database(names: Vec<Name>) -> Self {
        // Where there is one, a directory that no disk holds up: what is tried here is no disk.
        let shared_memory = std::path::Path::new("/dev/shm");
        let directory = if shared_memory.is_dir() {
            tempfile::tempdir_in(shared_memory)
        } else {
            tempfile::tempdir()
        }
        .unwrap();
        let store = store::open(&directory.path().join("census.db")).unwrap();
        let rows = Rows::Database {
            runtime: tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap(),
            reader: store.reader().unwrap(),
            store,
            ids: HashMap::new(),
            _directory: directory,
        };
        Self::new(names, rows)
    }

    fn new(names: Vec<Name>, rows: Rows) -> Self {
        let mut census = Self {
            now: 0,
            names: Vec::new(),
            fates: Vec::new(),
            opens: 0,
            look_ups: HashMap::new(),
            dials: BTreeMap::new(),
            pace: Pace::new(Paces::default(), 1),
            began: Instant::now(),
            rows,
            records: Vec::new(),
            dice: Dice::seeded(4),
            early: EarlyAsks::default(),
            shares: Shares::default(),
            events: BinaryHeap::new(),
            places: [0; CHECKS_MAX],
        };
        census.learn(names);
        census
    }

    /// Names come in.
    pub(super) fn learn(&mut self, names: Vec<Name>) {
        let first = self.names.len();
        for name in names {
            let mut record =
                Record::discovered(name.host.clone(), Timestamp(self.now), Timestamp(name.due));
            if name.lived {
                record.last_alive = Some(Timestamp(0));
            }
            self.records.push(record);
            self.fates.push(Fate::default());
            self.names.push(name);
        }
        let learned = first..self.names.len();
        match &mut self.rows {
            Rows::Memory { due } => {
                due.extend(learned.map(|id| (Timestamp(self.names[id].due), id)));
            }
            Rows::Database {
                runtime,
                store,
                ids,
                ..
            } => {
                let candidates = learned.clone().map(|id| Candidate {
                    host: self.names[id].host.clone(),
                    due: Timestamp(self.names[id].due),
                    first_seen: Timestamp(self.now),
                });
                let admission = store::Admission {
                    candidates: candidates.collect(),
                    ..store::Admission::default()
                };
                let added = runtime.block_on(store.writer().admit(admission));
                assert_eq!(added.unwrap(), vec![true; learned.len()]);
                ids.extend(learned.map(|id| (self.names[id].host.clone(), id)));
            }
        }
    }

    /// The gateway is killed and started again: it knows nothing of what was.
    pub(super) fn restart_gateway(&mut self) {
        self.pace = Pace::new(Paces::default(), 1);
    }

    /// Goes on until that moment.
    pub(super) fn run_until(&mut self, end: i64) {
        loop {
            self.fill();
            let event = self.events.peek().map(|Reverse((at, _))| *at);
            let due = self.next_due().filter(|_| self.events.len() < OPENS_MAX);
            let next = [event, due].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next < end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            while let Some(Reverse((at, event))) = self.events.pop() {
                if at > self.now {
                    self.events.push(Reverse((at, event)));
                    break;
                }
                self.happen(event);
            }
        }
    }

    fn next_due(&self) -> Option<i64> {
        match &self.rows {
            Rows::Memory { due } => due.first().map(|(due, _)| due.0),
            Rows::Database { reader, .. } => reader.next_due().unwrap().map(|due| due.0),
        }
    }

    fn fill(&mut self) {
        let room = OPENS_MAX.saturating_sub(self.events.len());
        if room == 0 || self.next_due().is_none_or(|due| due > self.now) {
            return;
        }
        for id in self.take(room) {
            let fate = &mut self.fates[id];
            fate.due.get_or_insert(self.now);
            self.open(id);
        }
    }

    fn take(&mut self, room: usize) -> Vec<usize> {
        let now = Timestamp(self.now);
        match &mut self.rows {
            Rows::Memory { due } => {
                let mut taken = Vec::new();
                while taken.len() < room
                    && let Some((moment, id)) = due.first().copied()
                    && moment <= now
                {
                    due.pop_first();
                    let record = &mut self.records[id];
                    record.due = due_when_taken(record, now, self.dice.jitter(), Calendar::REAL);
                    // Late by what the daemon itself was late.
                    self.fates[id].due.get_or_insert(moment.0);
                    taken.push(id);
                }
                taken
            }
            Rows::Database {
                runtime,
                store,
                ids,
                ..
            } => {
                let room = u32::try_from(room).unwrap();
                let jitters = self.dice.jitters(room);
                let taking = store.writer();
                let (room, shares) = (Room::empty(room), std::mem::take(&mut self.shares));
                let taking = taking.take_due(now, room, shares, jitters, Calendar::REAL);
                let (taken, shares) = runtime.block_on(taking).unwrap();
                self.shares = shares;
                let ids: Vec<_> = taken.iter().map(|taken| ids[&taken.record.host]).collect();
                for (id, taken) in ids.iter().zip(taken) {
                    self.records[*id] = taken.record;
                }
                ids
            }
        }
    }

    fn instant(&self) -> Instant {
        self.began + Duration::from_millis(self.now.unsigned_abs())
    }

    fn open(&mut self, id: usize) {
        self.opens += 1;
        let (instant, group) = (self.instant(), &self.names[id].group);
        match self.pace.charge_group(group, instant) {
            Ok(()) => {
                let asked = self.look_ups.entry(group.clone()).or_default();
                asked.push(self.now);
                self.at(LOOK_UP, Event::Resolved(id));
            }
            Err(late) => self.defer(id, late),
        }
    }

    fn dial(&mut self, id: usize) {
        let Name { address, lives, .. } = self.names[id];
        let targets = [SocketAddr::new(address, 443)];
        let instant = self.instant();
        let turn = self
            .pace
            .charge_dial(&targets, &mut Charged::default(), instant);
        let Some(turn) = turn else {
            let late = self.pace.promise_dial(&targets, 1, instant);
            self.defer(id, late);
            return;
        };
        let dialled = self.now + i64::try_from(turn.wait.as_millis()).unwrap();
        self.dials.entry(address).or_default().push(dialled);
        let fate = &mut self.fates[id];
        fate.visits.push(dialled);
        let due = fate.due.take().expect("it was due");
        fate.wait_max = fate.wait_max.max(dialled - due);
        if lives {
            let place = self.places.iter_mut().min().unwrap();
            *place = dialled.max(*place) + CHECK;
            let over = *place - self.now;
            self.at(over, Event::Over(id));
        } else {
            self.at(dialled - self.now + DIAL_FAILED, Event::Over(id));
        }
    }

    fn defer(&mut self, id: usize, late: Late) {
        let Late { why, retry_after } = late;
        assert!(
            why != Deferral::DialPace || retry_after > Duration::ZERO,
            "{why:?} without a wait is a busy loop"
        );
        self.fates[id].deferrals += 1;
        // As the gateway answers: rounded up.
        let told =
            Duration::from_millis(u64::try_from(retry_after.as_micros().div_ceil(1000)).unwrap());
        let mut wait = after_deferral(&self.records[id], why, told, self.dice.jitter());
        if wait < told {
            wait = self.early.put_off(wait, told, Timestamp(self.now));
        }
        let due = self.now + i64::try_from(wait.as_millis()).unwrap();
        self.at(ANSWER, Event::Deferred(id, due));
    }

    fn at(&mut self, after: i64, event: Event) {
        self.events.push(Reverse((self.now + after, event)));
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Resolved(id) => self.dial(id),
            Event::Deferred(id, due) => match &mut self.rows {
                Rows::Memory { due: rows } => {
                    rows.insert((Timestamp(due), id));
                }
                Rows::Database { runtime, store, .. } => {
                    let writer = store.writer();
                    let note = Some("put off".to_owned());
                    let release = writer.release(&self.names[id].host, Timestamp(due), note);
                    runtime.block_on(release).unwrap();
                }
            },
            Event::Over(id) => self.settle(id),
        }
    }

    fn settle(&mut self, id: usize) {
        let verdict = if self.names[id].lives {
            self.pace.prove(self.names[id].address, self.instant());
            Verdict::Alive {
                software: "mastodon".to_owned(),
                version: None,
                private: Private::No,
            }
        } else {
            Verdict::Dead {
                reason: DeadReason::Unreachable,
                status: None,
                to: None,
            }
        };
        let now = Timestamp(self.now);
        let record = &self.records[id];
        let change = transition(record, &verdict, now, self.dice.jitter(), Calendar::REAL);
        assert!(!change.forget, "not within these stories' time");
        self.records[id] = change.record.clone();
        match &mut self.rows {
            Rows::Memory { due } => {
                let next = change.record.due.expect("it is asked again");
                due.insert((next, id));
            }
            Rows::Database { runtime, store, .. } => {
                let settled = runtime.block_on(store.writer().settle(change));
                assert!(!settled.unwrap().overruled);
            }
        }
    }
}
