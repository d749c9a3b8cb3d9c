//! The loop: the daemon's, over a virtual clock.
//!
//! In: the parts on their stage, what really is. Out: what was measured, or the first invariant that was broken. Refused: nothing.
//!
//! It goes from one moment at which anything happens to the next, in whole seconds. Within a moment: owners opt out, containers start, checks end,
//! doubts are looked at, all of it is written, the door tries again who waits, the list is read, and what is due is taken.

mod doubts;
mod round;
mod writes;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::time::Duration;

use census::class::PerClass;
use census::group::Decision;
use census::share::{Room, Shares};
use census::state::{OptedOutBy, Record, State};
use census::time::{Jitter, Timestamp};
use orchestrator::confirm::Confirm;
use orchestrator::outage::Outage;
use orchestrator::silence::Silence;
use protocol::Host;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use store::{Decided, Taken};

use crate::course::{self, ANSWER_SECONDS_MAX, Check, Course, LOOK_UP, TIME_OUT};
use crate::engine::Engine;
use crate::guard::Guard;
use crate::measure::Measure;
use crate::names::{FARM, Name};
use crate::network::{Network, Shows};
use crate::pick::pick;
use crate::run::{Failure, Plan, Sabotage};
use crate::stage::Stage;
use crate::truth::{How, Now, Truth};

use doubts::InDoubt;
use writes::Write;

const SECOND: Duration = Duration::from_secs(1);

/// While failures wait or an outage lasts, the loop looks around this often. The daemon does so each second; the waits that it looks for are minutes.
const TICK: Duration = Duration::from_secs(10);

/// Names that wait are tried again this often, and new hosts grouped. The daemon does the one every ten minutes and the other every few seconds.
const ROUND: Duration = Duration::from_secs(3600);

/// The census at work.
#[derive(Debug)]
pub(crate) struct Census {
    pub(crate) plan: Plan,
    pub(crate) stage: Stage,
    pub(crate) truth: Truth,
    pub(crate) network: Network,
    pub(crate) engine: Engine,
    pub(crate) guard: Guard,
    pub(crate) measure: Measure,
    pub(crate) told: u64,
    chance: StdRng,
    confirm: Confirm<InDoubt>,
    outage: Outage,
    silence: Silence,
    /// Checks that end at a known moment, in the order in which they began.
    under_way: BTreeMap<(Timestamp, u64), Check>,
    /// Hosts that were opened and wait for the engine.
    queue: VecDeque<Check>,
    /// Hosts whose check was ended by their owner's word.
    aborted: HashSet<Host>,
    writes: Vec<Write>,
    /// Who named whom.
    named: Vec<(Host, Vec<u32>)>,
    /// Hosts that were named and for which the door has had no room.
    waiting: BTreeSet<u32>,
    began: u64,
    dials: (Timestamp, u32),
    /// Whose turn it is.
    shares: Shares,
    next_canary: u32,
    next_round: Timestamp,
    next_dump: Timestamp,
    /// When somebody is due next; none when that has to be asked.
    look_at: Option<Timestamp>,
}

impl Census {
    /// A census of a world that it knows.
    pub(crate) async fn new(plan: Plan) -> anyhow::Result<Self> {
        let (seed, start, end) = (plan.seed, plan.start, plan.end());
        let truth = Truth::new(plan.world.clone(), plan.hosts, seed, start);
        let stage = Stage::open(&plan.below, seed, start).await?;
        let mut measure = Measure::new(start);
        stage.adopt(&truth, &mut measure, seed, start).await?;
        let census = Self {
            network: Network::new(plan.world.outages, seed, start, end),
            engine: Engine::new(plan.capacity, start),
            guard: Guard::new(start),
            chance: StdRng::seed_from_u64(seed),
            confirm: Confirm::new(start),
            outage: Outage::default(),
            silence: Silence::default(),
            under_way: BTreeMap::new(),
            queue: VecDeque::new(),
            aborted: HashSet::new(),
            writes: Vec::new(),
            named: Vec::new(),
            waiting: BTreeSet::new(),
            told: 0,
            began: 0,
            dials: (start, 0),
            shares: Shares::default(),
            next_canary: 0,
            next_round: start,
            next_dump: start,
            look_at: None,
            plan,
            stage,
            truth,
            measure,
        };
        census.sabotage_the_start().await?;
        Ok(census)
    }

    /// Goes on until the end.
    ///
    /// # Errors
    /// The first invariant that was broken; or a fault of a part.
    pub(crate) async fn run(&mut self) -> Result<(), Failure> {
        let (mut now, end) = (self.plan.start, self.plan.end());
        while now < end {
            self.step(now).await?;
            now = self.next_moment(now)?;
        }
        self.stage.set(end);
        self.truth.advance(end);
        self.guard.step(end);
        self.read_the_list(end)
    }

    async fn step(&mut self, now: Timestamp) -> Result<(), Failure> {
        self.stage.set(now);
        self.guard.step(now);
        for number in self.truth.advance(now) {
            self.opt_out(number, now).await?;
        }
        self.start_containers(now)?;
        while let Some(entry) = self.under_way.first_entry()
            && entry.key().0 <= now
        {
            let check = entry.remove();
            self.conclude(check, now)?;
        }
        self.look_at_doubts(now).await?;
        self.write_all(now).await?;
        if now >= self.next_round {
            self.round(now).await?;
            self.next_round = now.plus(ROUND);
        }
        if now >= self.next_dump {
            self.read_the_list(now)?;
            let jitter = self.stage.tools.dice.jitter();
            self.next_dump = now.plus(self.stage.tools.calendar.dump_interval(jitter));
        }
        self.fill(now).await
    }

    /// The next moment at which anything happens; a second from now at least.
    fn next_moment(&mut self, now: Timestamp) -> Result<Timestamp, Failure> {
        let mut next = self.next_round.min(self.next_dump);
        if let Some((ends, _)) = self.under_way.keys().next() {
            next = next.min(*ends);
        }
        if !self.queue.is_empty() {
            next = next.min(self.engine.next());
        }
        if self.confirm.waiting() > 0 || self.outage.describe().is_some() {
            next = next.min(now.plus(TICK));
        }
        if self.room().free > 0 && !self.outage.is_on() {
            next = next.min(self.look_at()?);
        }
        let second = i64::try_from(SECOND.as_millis()).unwrap_or(1000);
        let whole = next.0.div_euclid(second) + i64::from(next.0.rem_euclid(second) > 0);
        Ok(Timestamp(whole.saturating_mul(second)).max(now.plus(SECOND)))
    }

    /// When somebody is due next.
    fn look_at(&mut self) -> Result<Timestamp, Failure> {
        if let Some(known) = self.look_at {
            return Ok(known);
        }
        let never = Timestamp(i64::MAX / 2);
        let next = self.stage.reader.next_due()?.unwrap_or(never);
        self.look_at = Some(next);
        Ok(next)
    }

    /// How many more hosts may be opened, and what is open.
    fn room(&self) -> Room {
        let most = self.outage.room(self.engine.opens_max());
        let mut under_way = PerClass::<u32>::default();
        for check in self.under_way.values().chain(&self.queue) {
            *under_way.of_mut(check.class) += 1;
        }
        Room {
            free: most.saturating_sub(under_way.sum()),
            most,
            under_way,
        }
    }

    /// Takes what is due and opens it.
    async fn fill(&mut self, now: Timestamp) -> Result<(), Failure> {
        let room = self.room();
        if room.free == 0 || self.outage.is_on() || self.look_at()? > now {
            return Ok(());
        }
        let greedy = if self.does(Sabotage::PickTooMany) {
            5
        } else {
            0
        };
        let asked = Room {
            free: room.free + greedy,
            ..room
        };
        let taken = pick(&self.stage.tools, asked, &mut self.shares).await?;
        self.look_at = None;
        self.guard.picked(taken.len(), room.free)?;
        if let Some(first) = taken.first() {
            let row = self.stage.reader.record(&first.record.host)?;
            self.guard.row(&first.record.host, row.as_ref())?;
        }
        for taken in taken {
            self.sabotage_the_taken(&taken, now).await?;
            self.open(taken, now)?;
        }
        Ok(())
    }

    /// A host that was taken is looked up, and dialled.
    fn open(&mut self, mut taken: Taken, now: Timestamp) -> Result<(), Failure> {
        if self.does(Sabotage::StayDue) {
            taken.record.due = Some(now);
        }
        self.guard.taken(&taken)?;
        let host = taken.record.host.as_str();
        let name = Name::of(host).ok_or_else(|| Failure::Stranger(host.to_owned()))?;
        self.measure.counts.checks += 1;
        match name {
            Name::Host(number) => {
                self.measure.knows(number, now);
                self.waiting.remove(&number);
                self.measure.taken(number, &taken.record, &self.truth);
            }
            Name::Farm(_) | Name::Apart(_) => self.measure.counts.invented += 1,
        }
        let course = if !self.has_a_turn(now) {
            Course::OutOfTurn
        } else {
            match self.network.fails_at(now) {
                Some(Shows::Told) => Course::Offline,
                Some(Shows::Silent) => Course::Closed(How::NoAnswer),
                None => course::course_of(name, &self.truth),
            }
        };
        let check = Check {
            record: Box::new(taken.record),
            class: taken.class,
            name,
            began: now,
            course,
        };
        match course {
            Course::OutOfTurn | Course::Offline | Course::Closed(How::NoName) => {
                self.goes_on_until(now.plus(LOOK_UP), check);
            }
            Course::Closed(_) => self.goes_on_until(now.plus(TIME_OUT), check),
            Course::Container => self.queue.push_back(check),
        }
        Ok(())
    }

    fn goes_on_until(&mut self, ends: Timestamp, check: Check) {
        self.began += 1;
        self.under_way.insert((ends, self.began), check);
    }

    /// Whether the gateway may dial once more within this second.
    fn has_a_turn(&mut self, now: Timestamp) -> bool {
        if self.dials.0 != now {
            self.dials = (now, 0);
        }
        self.dials.1 += 1;
        self.dials.1 <= self.plan.dials_a_second()
    }

    /// The engine starts as many containers as it can.
    fn start_containers(&mut self, now: Timestamp) -> Result<(), Failure> {
        while !self.queue.is_empty() && self.engine.start(now) {
            let Some(check) = self.queue.pop_front() else {
                break;
            };
            let is_silent = matches!(
                course::now_of(check.name, &self.truth),
                Now::Down(How::Accepts) | Now::Dead(How::Accepts)
            );
            let lasts = if is_silent {
                TIME_OUT
            } else {
                SECOND
                    * u32::try_from(self.chance.random_range(1..=ANSWER_SECONDS_MAX)).unwrap_or(1)
            };
            self.goes_on_until(now.plus(lasts), check);
        }
        let at_once = self.engine.at_once() + 1.0;
        let started = self.engine.started();
        self.guard
            .started(started, self.plan.capacity, at_once)
            .map_err(Failure::from)
    }

    /// An owner opts a host out by word of mouth: a check of it ends at once.
    async fn opt_out(&mut self, number: u32, now: Timestamp) -> Result<(), Failure> {
        let host = Name::Host(number).host()?;
        self.measure.counts.words += 1;
        if !self.does(Sabotage::DeafToWord) {
            let writer = &self.stage.tools.writer;
            writer.opt_out(&host, OptedOutBy::Owner, now).await?;
        }
        self.measure.knows(number, now);
        let mut open = self.under_way.values().chain(&self.queue);
        if open.any(|check| check.record.host == host) {
            self.aborted.insert(host.clone());
        }
        self.guard.word(host);
        self.look_at = None;
        Ok(())
    }

    pub(crate) fn does(&self, what: Sabotage) -> bool {
        self.plan.sabotage == Some(what)
    }

    /// `at_least`, and up to as much again, or ten seconds, more: as the daemon spreads what it puts off.
    fn spread(&self, at_least: Duration) -> Duration {
        let Jitter(drawn) = self.stage.tools.dice.jitter();
        let width = at_least.max(SECOND * 10);
        at_least.saturating_add(width.mul_f64(f64::from(drawn) / f64::from(u32::MAX)))
    }

    /// What breaks an invariant on purpose, once a host was taken.
    async fn sabotage_the_taken(&self, taken: &Taken, now: Timestamp) -> Result<(), Failure> {
        if self.does(Sabotage::ReleaseEarly) {
            let writer = &self.stage.tools.writer;
            writer.release(&taken.record.host, now, None).await?;
        }
        Ok(())
    }

    /// What breaks an invariant on purpose, before the start.
    async fn sabotage_the_start(&self) -> anyhow::Result<()> {
        let writer = &self.stage.tools.writer;
        let day = SECOND * 24 * 3600;
        let start = self.plan.start;
        // Nobody of the world has this number before years have gone by.
        let stranger = Name::Host(self.plan.hosts + 10_000);
        if self.does(Sabotage::ListTheOld) {
            let mut record =
                Record::discovered(stranger.host()?, start.minus(day * 30), start.plus(day));
            record.state = State::Alive;
            record.last_alive = Some(start.minus(day * 20));
            writer.adopt(vec![record]).await?;
        }
        if self.does(Sabotage::ForgetQuietly) {
            let host = stranger.host()?;
            let mut record = Record::discovered(host, start.minus(day * 366), start.plus(day));
            record.state = State::Dead;
            writer.adopt(vec![record]).await?;
        }
        if self.does(Sabotage::AllowTheFarm) {
            let decided = Decided {
                at: start,
                decision: Decision::Allow,
                reason: "a test of the invariant".to_owned(),
                who: "the simulation".to_owned(),
            };
            let farm = FARM.to_owned();
            let calendar = self.stage.tools.calendar;
            writer.decide_group(farm, decided, calendar).await?;
        }
        Ok(())
    }
}
