//! Half of all hosts belong to an attacker. They respond, fail, stall and act as witnesses exactly
//! when it suits; our own outages come at random (I5).
//!
//! [`Story::witnesses`] shows what the attacker can't do: no host responds to us while we have no
//! network.

use super::*;

const SECONDS: i64 = 2400;

/// Least time from the end of an outage to the beginning of the next, so that no two hit the same
/// failure. A failure waits for two minutes at most, and its host is checked again within twenty
/// seconds.
const BETWEEN: i64 = 150;

/// A failure that was not confirmed in time is checked again after this. The product takes longer.
const DROPPED_FOR: i64 = 60;

const CANARY_TAKES: i64 = 1;

/// While we have a network, a waiting failure meets a witness within this: a canary is checked
/// after a minute, or a minute after the last canary.
const WITNESSED_WITHIN: i64 = 60 + CANARY_TAKES + 1;

/// A host is checked again within this after others have responded, and that check has ended.
const ASKED_AGAIN_WITHIN: i64 = 20 + 9;

/// A host that fails for good while we have a network is counted within this: it is checked in its
/// turn, fails, is checked again and fails again.
const COUNTED_WITHIN: i64 = 200 + 2 * 9 + WITNESSED_WITHIN + ASKED_AGAIN_WITHIN + WITNESSED_WITHIN;

/// What an outage costs in addition to its own time: a failure that waited through it for too long
/// is dropped, checked again, and then meets a witness.
const SET_BACK_BY: i64 = 120 + DROPPED_FOR + 9 + WITNESSED_WITHIN;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attack {
    Steadily,
    /// Responds only in the seconds after an outage.
    RightAfter,
    /// Responds only in the seconds before an outage, and late.
    RightBefore,
    Never,
    Flapping,
}

#[derive(Debug, Clone)]
struct Story {
    outages: Vec<(i64, i64)>,
    attack: Attack,
    /// Random numbers, one per second.
    chance: Vec<u8>,
    /// Honest hosts: how often each is checked, and how long its checks take.
    honest: Vec<(i64, i64)>,
    /// When the first honest host fails for good.
    dies: i64,
    /// Whether the operator named a canary. Without one, a handful of hosts may wait for each other
    /// after each outage, and the failed host is found at some time.
    canary: bool,
}

fn stories() -> impl Strategy<Value = Story> {
    let attack = prop_oneof![
        Just(Attack::Steadily),
        Just(Attack::RightAfter),
        Just(Attack::RightBefore),
        Just(Attack::Never),
        Just(Attack::Flapping),
    ];
    (
        prop::collection::vec((BETWEEN..600, 7i64..150), 0..6),
        attack,
        prop::collection::vec(any::<u8>(), usize::try_from(SECONDS).unwrap()),
        prop::collection::vec((40i64..200, 0i64..9), 4..14),
        400i64..900,
        any::<bool>(),
    )
        .prop_map(|(outages, attack, chance, honest, dies, canary)| {
            let mut end = 0;
            let outages = outages
                .into_iter()
                .map(|(pause, lasts)| {
                    let began = end + pause;
                    end = began + lasts;
                    (began, end)
                })
                .collect();
            Story {
                outages,
                attack,
                chance,
                honest,
                dies,
                canary,
            }
        })
}

impl Story {
    fn is_out(&self, second: i64) -> bool {
        self.outages
            .iter()
            .any(|(from, until)| (*from..*until).contains(&second))
    }

    fn overlaps(&self, from: i64, until: i64) -> bool {
        self.outages
            .iter()
            .any(|(began, end)| from < *end && until >= *began)
    }

    fn out_of(&self, from: i64, until: i64) -> i64 {
        (from..until)
            .filter(|second| self.is_out(*second))
            .count()
            .try_into()
            .unwrap()
    }

    fn outages_within(&self, from: i64, until: i64) -> i64 {
        self.outages
            .iter()
            .filter(|(began, end)| *began < until && *end > from)
            .count()
            .try_into()
            .unwrap()
    }

    /// When a check of one of the attacker's hosts that begins in this second reports alive. `None`
    /// if it fails.
    fn witnesses(&self, second: i64) -> Option<i64> {
        let chance = i64::from(self.chance[usize::try_from(second).unwrap()]);
        let wants = match self.attack {
            Attack::Steadily => true,
            Attack::RightAfter => self.overlaps(second - 3, second),
            Attack::RightBefore => self.overlaps(second, second + 3),
            Attack::Never => false,
            Attack::Flapping => chance % 3 == 0,
        };
        let lived = second
            + match self.attack {
                Attack::Steadily | Attack::RightAfter => 1,
                Attack::RightBefore | Attack::Flapping | Attack::Never => chance % 59,
            };
        (wants && !self.is_out(second) && !self.is_out(lived)).then_some(lived)
    }
}

/// The course of a story, second by second.
#[derive(Debug)]
struct Play<'a> {
    story: &'a Story,
    doubts: Doubts<usize>,
    next: Vec<i64>,
    /// Running checks: when each ends, its host, and when it began.
    running: Vec<(i64, Who, i64)>,
    counted: Vec<(usize, i64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Honest(usize),
    Hostile { alive: bool },
    Canary,
}

impl Play<'_> {
    fn is_dead(&self, who: usize, second: i64) -> bool {
        who == 0 && second >= self.story.dies
    }

    fn begin(&mut self, second: i64) {
        for (who, (every, takes)) in self.story.honest.iter().enumerate() {
            if self.next[who] == second {
                self.running
                    .push((second + takes, Who::Honest(who), second));
                // The check's outcome moves this time.
                self.next[who] = second + takes + every;
            }
        }
        let lived = self.story.witnesses(second);
        self.running
            .extend(lived.map(|at| (at, Who::Hostile { alive: true }, second)));
        // One that fails at the same time, or holds its check for a minute.
        let chance = i64::from(self.story.chance[usize::try_from(second).unwrap()]);
        self.running
            .push((second + chance % 60, Who::Hostile { alive: false }, second));
    }

    fn end(&mut self, second: i64) {
        let (ended, running): (Vec<_>, Vec<_>) =
            self.running.drain(..).partition(|(at, ..)| *at <= second);
        self.running = running;
        for (_, who, began) in ended {
            match who {
                Who::Honest(n) if self.story.overlaps(began, second) || self.is_dead(n, second) => {
                    let doubt = Doubt {
                        families: vec![V4],
                        dns: Dns::Fresh(Some(place(who))),
                    };
                    assert_eq!(
                        self.doubts
                            .fail(name_of(who, began), n, doubt, at(began), at(second)),
                        None
                    );
                    // In flight until it is decided.
                    self.next[n] = i64::MAX;
                }
                Who::Canary if self.story.overlaps(began, second) => {}
                Who::Honest(_) | Who::Hostile { alive: true } | Who::Canary => {
                    self.alive(who, began, second);
                }
                Who::Hostile { alive: false } => {
                    let doubt = Doubt {
                        families: vec![V4],
                        dns: Dns::Sound,
                    };
                    self.doubts.fail(
                        name_of(who, began),
                        usize::MAX,
                        doubt,
                        at(began),
                        at(second),
                    );
                }
            }
        }
        for dropped in self.doubts.expire(at(second)) {
            self.ask(dropped, second + DROPPED_FOR);
        }
        let wanted = !self.doubts.wants_canaries(at(second)).is_empty();
        if wanted && self.story.canary {
            self.running
                .push((second + CANARY_TAKES, Who::Canary, second));
        }
    }

    fn alive(&mut self, who: Who, began: i64, second: i64) {
        let witness = Witness {
            began: at(began),
            lived: at(second),
            address: place(who),
            fresh: true,
        };
        for (n, outcome) in self
            .doubts
            .alive(&name_of(who, began), witness, None, at(second))
        {
            match outcome {
                AskAgain => self.ask(n, second + 10 + i64::try_from(n % 10).unwrap()),
                Counts if n == usize::MAX => {}
                Counts => {
                    self.counted.push((n, second));
                    self.ask(n, second + DROPPED_FOR);
                }
            }
        }
    }

    fn ask(&mut self, who: usize, second: i64) {
        if let Some(next) = self.next.get_mut(who) {
            *next = second;
        }
    }
}

fn place(who: Who) -> IpAddr {
    match who {
        Who::Honest(n) => address(V4, 10 + u8::try_from(n).unwrap()),
        Who::Hostile { .. } => address(V4, 1),
        Who::Canary => address(V4, 2),
    }
}

fn name_of(who: Who, began: i64) -> Host {
    match who {
        Who::Honest(n) => labelled(&format!("honest{n}")),
        Who::Hostile { .. } => labelled(&format!("hostile{}", began % 14)),
        Who::Canary => labelled("canary"),
    }
}

fn played(story: &Story) -> Vec<(usize, i64)> {
    let mut play = Play {
        story,
        doubts: Doubts::new(at(0), RandomState::new()),
        next: (0..story.honest.len())
            .map(|n| i64::try_from(n).unwrap() * 7)
            .collect(),
        running: Vec::new(),
        counted: Vec::new(),
    };
    for second in 0..SECONDS {
        play.end(second);
        play.begin(second);
    }
    play.counted
}

proptest! {
    // A story is long: each takes tens of milliseconds.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test] // S53
    fn half_of_all_hosts_neither_wrong_nor_shield_others(story in stories()) {
        let counted = played(&story);
        for (who, second) in &counted {
            prop_assert!(*who == 0 && *second >= story.dies, "honest host {who} counted at {second}");
        }
        prop_assert!(!counted.is_empty(), "the dead one was never found");
        let first = counted.first().map_or(SECONDS, |(_, second)| *second);
        let took = first - story.dies - story.out_of(story.dies, first);
        let outages = story.outages_within(story.dies, first);
        prop_assert!(
            !story.canary || took <= COUNTED_WITHIN + outages * SET_BACK_BY,
            "found dead only after {took} s and {outages} outages"
        );
    }

    /// One responding host is enough, whatever others fail, even if it is the attacker's only one.
    #[test]
    fn one_living_host_in_the_world_is_enough(
        dead in 1usize..40,
        every in 1i64..60,
        takes in 0i64..60,
        hostile in any::<bool>(),
    ) {
        let mut doubts = Doubts::new(at(0), RandomState::new());
        let mut next: Vec<_> = (0..dead).map(|n| i64::try_from(n).unwrap()).collect();
        let mut counted = std::collections::BTreeSet::new();
        for second in 0..600 {
            for (n, next) in next.iter_mut().enumerate().filter(|(_, next)| **next + takes == second) {
                let doubt = Doubt { families: vec![V4], dns: Dns::Fresh(Some(place(Who::Honest(n)))) };
                doubts.fail(name_of(Who::Honest(n), 0), n, doubt, at(*next), at(second));
            }
            if second % every == 0 {
                let who = if hostile { Who::Hostile { alive: true } } else { Who::Honest(50) };
                let witness = Witness { began: at(second), lived: at(second + 1), address: place(who), fresh: true };
                for (n, outcome) in doubts.alive(&name_of(who, 0), witness, None, at(second + 1)) {
                    match outcome {
                        Counts => { counted.insert(n); }
                        AskAgain => next[n] = second + 12,
                    }
                }
            }
        }
        prop_assert_eq!(counted.len(), dead);
    }
}
