//! Hosts in league whose checks fault whenever they are asked, told in fake time over the real rules of doubt, blame and outages (invariant I5).
//!
//! Left out are paces, which slow everybody down alike, and the rows: whoever faults is never settled here, however many are `alone` with it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use census::time::{Calendar, Timestamp};
use protocol::Host;

use crate::clock::Dice;
use crate::confirm::{Confirm, Dns, Doubt, Outcome, Witness};
use crate::daemon::verdicts::ASK_AGAIN_AFTER;
use crate::daemon::writes::spread;
use crate::fault::{Faulters, Lately, Whose};
use crate::outage::{Outage, Seen};

const REAL: Calendar = Calendar::REAL;
const SECOND: i64 = 1_000;
const HOUR: i64 = 3_600 * SECOND;

/// Checks at once, by default.
const CHECKS_MAX: u32 = 4;

/// How long a check takes.
const CHECK: i64 = 2 * SECOND;

#[derive(Debug, Clone, Copy)]
struct Waiting {
    number: usize,
    ordinary: Timestamp,
    lately: Lately,
}

/// The first `honest` hosts always live, the others always fault.
struct Census {
    honest: usize,
    hosts: Vec<Host>,
    due: BinaryHeap<Reverse<(Timestamp, usize)>>,
    /// When it ends, whom it asks, and when that one is ordinarily due.
    under_way: BinaryHeap<Reverse<(Timestamp, usize, Timestamp)>>,
    confirm: Confirm<Waiting>,
    faulters: Faulters,
    outage: Outage,
    dice: Dice,
    now: Timestamp,
    asked: Vec<Vec<Timestamp>>,
    seconds_stopped: i64,
}

impl Census {
    fn of(honest: usize, in_league: usize) -> Self {
        let dice = Dice::seeded(42);
        let now = Timestamp(1_700_000_000_000);
        let hosts: Vec<_> = (0..honest + in_league)
            .map(|number| Host::parse(&format!("n{number}.example")).unwrap())
            .collect();
        let due = (0..hosts.len())
            .map(|number| Reverse((now.plus(REAL.first_check(dice.jitter())), number)))
            .collect();
        Self {
            honest,
            asked: vec![Vec::new(); hosts.len()],
            hosts,
            due,
            under_way: BinaryHeap::new(),
            confirm: Confirm::new(now),
            faulters: Faulters::default(),
            outage: Outage::default(),
            dice,
            now,
            seconds_stopped: 0,
        }
    }

    fn run(&mut self, hours: i64) {
        let until = Timestamp(self.now.0 + hours * HOUR);
        while self.now < until {
            self.now = Timestamp(self.now.0 + SECOND);
            while self
                .under_way
                .peek()
                .is_some_and(|next| next.0.0 <= self.now)
            {
                let Reverse((_, number, ordinary)) = self.under_way.pop().unwrap();
                self.ended(number, ordinary);
            }
            self.tick();
            self.fill();
        }
    }

    fn tick(&mut self) {
        if self.confirm.waiting() > 0 {
            for waiting in self.confirm.expire(self.now) {
                self.give_back(waiting, Whose::Untold(waiting.lately));
            }
        }
        if self.outage.wants_look(self.now) {
            self.outage.parts_work(self.now);
        }
        self.seconds_stopped += i64::from(self.outage.is_on());
    }

    fn fill(&mut self) {
        let most = usize::try_from(self.outage.room(CHECKS_MAX)).unwrap();
        while self.under_way.len() < most
            && self.due.peek().is_some_and(|next| next.0.0 <= self.now)
        {
            let Reverse((_, number)) = self.due.pop().unwrap();
            self.asked[number].push(self.now);
            let ordinary = self.now.plus(REAL.day(self.dice.jitter()));
            let end = Timestamp(self.now.0 + CHECK);
            self.under_way.push(Reverse((end, number, ordinary)));
        }
    }

    fn ended(&mut self, number: usize, ordinary: Timestamp) {
        if number < self.honest {
            self.outage.works(self.now);
            let witness = Witness {
                began: Timestamp(self.now.0 - CHECK),
                lived: self.now,
                address: [192, 0, 2, 1].into(),
                fresh: true,
            };
            let decided = self.confirm.alive(&self.hosts[number], witness, self.now);
            for (waiting, outcome) in decided {
                match outcome {
                    Outcome::AskAgain => {
                        let wait = spread(ASK_AGAIN_AFTER, self.dice.jitter());
                        self.due_at(waiting.number, self.now.plus(wait));
                    }
                    Outcome::Counts => self.give_back(waiting, Whose::Theirs),
                }
            }
            self.due_at(number, ordinary);
            return;
        }
        let host = self.hosts[number].clone();
        let lately = self.faulters.note(&host, self.now);
        let waiting = Waiting {
            number,
            ordinary,
            lately,
        };
        let doubt = Doubt {
            families: Vec::new(),
            dns: Dns::Sound,
        };
        let began = Timestamp(self.now.0 - CHECK);
        if let Some(oldest) = self.confirm.fail(host, waiting, doubt, began, self.now) {
            self.give_back(oldest, Whose::Untold(oldest.lately));
        }
        if self.outage.fault().is_some() {
            self.outage
                .begin("faults in a row".to_owned(), Seen::Counted, self.now);
        }
        if self.outage.is_counted() {
            for waiting in self.confirm.give_up(|_| true) {
                self.give_back(waiting, Whose::Ours);
            }
        }
    }

    fn give_back(&mut self, waiting: Waiting, whose: Whose) {
        let soon = self.now.plus(REAL.again_soon(self.dice.jitter()));
        self.due_at(waiting.number, whose.due(Some(waiting.ordinary), soon));
    }

    fn due_at(&mut self, number: usize, due: Timestamp) {
        self.due.push(Reverse((due, number)));
    }

    /// The longest that an honest host was not asked for, up to now.
    fn longest_unasked(&self) -> Duration {
        let start = Timestamp(1_700_000_000_000);
        let gaps = self.asked[..self.honest].iter().flat_map(|asked| {
            let ends = asked.iter().copied().chain([self.now]);
            let begins = [start].into_iter().chain(asked.iter().copied());
            begins.zip(ends).map(|(begin, end)| end.since(begin))
        });
        gaps.max().unwrap()
    }

    /// How often one of the league was asked, on average.
    fn asks_in_league(&self) -> f64 {
        let league = &self.asked[self.honest..];
        let asks: u32 = league
            .iter()
            .map(|asked| u32::try_from(asked.len()).unwrap())
            .sum();
        f64::from(asks) / f64::from(u32::try_from(league.len()).unwrap())
    }
}

/// Half of all hosts, however many that is: the honest ones are asked daily all the same.
#[test]
fn hosts_in_league_whose_checks_all_fault_stop_nothing() {
    for count in [30, 300, 1_000, 10_000] {
        let mut census = Census::of(count, count);
        let days = 4;
        census.run(days * 29);
        let unasked = census.longest_unasked();
        let asks = census.asks_in_league() / 4.0;
        let stopped = census.seconds_stopped;
        eprintln!(
            "{count} and {count}: nobody honest unasked for longer than {} min, one in league asked {asks:.1} times a day, stopped for {stopped} s in {days} days",
            unasked.as_secs() / 60,
        );
        assert!(
            unasked <= REAL.day(census::time::Jitter(u32::MAX)) + Duration::from_secs(300),
            "{unasked:?}"
        );
        assert!(
            asks < 3.2,
            "those in league are asked {asks:.1} times a day"
        );
        assert!(stopped < days * 29 * 36, "stopped for {stopped} s");
    }
}
