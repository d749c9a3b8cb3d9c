//! Two ways out: a failure counts only if the host fails by both, and only while they work.

use super::*;
use crate::blame::blackout::Scope;

const WITNESS: u64 = 1_000;
const SICK: u64 = 1;

fn two() -> Rig {
    let mut settings = settings(Vec::new());
    settings.has_second_way = true;
    Rig {
        scheduler: Scheduler::new(settings, START),
        ..Rig::new()
    }
}

impl Rig {
    /// A check of this host, with an outcome that depends on the way it takes.
    fn by(
        &mut self,
        number: u64,
        outcome: impl FnOnce(Way, Timestamp) -> CheckOutcome,
    ) -> (Way, Vec<Command>) {
        let (check, began) = (self.taken(number, 0), self.now);
        let way = self.scheduler.checks[&check].way;
        self.pass(SECOND);
        let commands = self.ended(check, outcome(way, began));
        (way, commands)
    }

    /// Hosts that respond by either way, until one has responded by each. Returns the commands.
    fn witnesses(&mut self) -> Vec<Command> {
        let mut commands = Vec::new();
        let mut seen = [false; 2];
        for number in WITNESS.. {
            let (way, more) = self.by(number, |_, began| alive(began));
            seen[usize::from(way == Way::Second)] = true;
            commands.extend(more);
            if seen == [true, true] {
                break;
            }
        }
        commands
    }

    fn failing(&self) -> usize {
        let verdicts = commits(&self.commands);
        verdicts
            .iter()
            .filter(|verdict| verdict.is_failing())
            .count()
    }

    fn has(&self, is_wanted: impl Fn(&Notice) -> bool) -> bool {
        let notices = self.commands.iter();
        notices
            .filter_map(|command| match command {
                Command::Report(notice) => Some(notice),
                _ => None,
            })
            .any(is_wanted)
    }
}

#[test]
fn a_failure_counts_after_the_host_failed_by_both_ways() {
    let mut rig = two();
    rig.witnesses();
    let (first, _) = rig.by(SICK, |_, began| dead(began));
    rig.witnesses();
    assert_eq!(rig.failing(), 0, "the other way has not looked");
    let (second, _) = rig.by(SICK, |_, began| dead(began));
    assert_eq!(second, first.other());
    assert_eq!(rig.failing(), 0, "nobody has answered by it since");
    rig.witnesses();
    assert_eq!(rig.failing(), 1);
    let again = |rig: &mut Rig| rig.by(SICK, |_, began| dead(began));
    again(&mut rig);
    rig.witnesses();
    assert_eq!(rig.failing(), 1, "both have to look again");
}

#[test]
fn a_host_that_answers_by_one_way_is_up() {
    let mut rig = two();
    let only = Way::Second;
    let mut alone = 0;
    for _ in 0..30 {
        rig.witnesses();
        let lives = |way, began| {
            if way == only {
                alive(began)
            } else {
                dead(began)
            }
        };
        let (_, commands) = rig.by(SICK, lives);
        alone += commands
            .iter()
            .filter(|command| {
                matches!(command, Command::RememberWay { host: of, by, alone: true } if *of == host(SICK) && *by == only)
            })
            .count();
    }
    assert_eq!(rig.failing(), 0);
    assert!(alone >= 9, "{alone}");
}

#[test]
fn failures_by_a_way_without_success_do_not_count() {
    let mut rig = two();
    rig.witnesses();
    let broken = Way::First;
    let mut by_broken = 0;
    for number in 1..=2000 {
        rig.pass(SECOND);
        rig.on(Event::Tick);
        let lives = |way, began| {
            if way == broken {
                dead(began)
            } else {
                alive(began)
            }
        };
        let (way, _) = rig.by(number % 60, lives);
        by_broken += u64::from(way == broken);
    }
    assert_eq!(rig.failing(), 0);
    assert!(rig.has(|notice| matches!(notice, Notice::WayIll { way, .. } if *way == broken)));
    assert!(by_broken < 100, "{by_broken}");
    assert_eq!(rig.scheduler.snapshot().blackout, None, "one way works");
    let states = rig.scheduler.snapshot().ways;
    assert!(states[0].ill.is_some() && states[1].ill.is_none());
    rig.pass(5 * 60 * SECOND);
    for number in 0..40 {
        rig.by(WITNESS + number, |_, began| alive(began));
    }
    rig.on(Event::Tick);
    assert!(rig.has(|notice| matches!(notice, Notice::WayWell { way, .. } if *way == broken)));
}

#[test]
fn a_gateway_with_trouble_is_not_asked_until_it_answers() {
    let mut rig = two();
    let status = |way, what: &str| Event::WayStatus {
        way,
        status: if what.is_empty() {
            Ok(())
        } else {
            Err(what.to_owned())
        },
    };
    // Two checks that its gateway does not answer: one takes each way.
    let hanging = [rig.taken(1, 0), rig.taken(2, 0)];
    let commands = rig.on(status(Way::Second, "it does not answer"));
    let aborted = commands
        .iter()
        .filter(|command| matches!(command, Command::Abort { check } if hanging.contains(check)));
    assert_eq!(aborted.count(), 1);
    for number in 3..9 {
        let (way, _) = rig.by(number, |_, began| alive(began));
        assert_eq!(way, Way::First);
    }
    assert_eq!(rig.scheduler.outage(), None);
    rig.on(status(Way::First, "nor does it"));
    assert!(rig.scheduler.outage().is_some(), "there is no way out");
    rig.on(Event::PartStatus(Ok(())));
    assert!(rig.scheduler.outage().is_some(), "both still have trouble");
    rig.on(status(Way::Second, ""));
    rig.on(Event::PartStatus(Ok(())));
    assert_eq!(rig.scheduler.outage(), None);
    let (way, _) = rig.by(20, |_, began| alive(began));
    assert_eq!(way, Way::Second);
}

#[test]
fn a_host_of_a_family_that_one_way_lacks_is_judged_by_the_other() {
    let mut rig = two();
    let blind = Way::Second;
    let looks = |way, began| {
        if way == blind {
            CheckOutcome::Deferred {
                why: Deferral::NoFamily,
                retry_after: SECOND * 3600,
            }
        } else {
            dead(began)
        }
    };
    let mut by_blind = 0;
    for _ in 0..6 {
        rig.witnesses();
        by_blind += u32::from(rig.by(SICK, looks).0 == blind);
    }
    rig.witnesses();
    assert!(by_blind <= 1, "{by_blind}");
    assert!(rig.failing() >= 1);
}

#[test]
fn no_success_by_either_way_is_a_blackout() {
    let mut rig = two();
    rig.witnesses();
    for number in 1..=60 {
        rig.pass(SECOND);
        rig.on(Event::Tick);
        rig.by(number, |_, began| dead(began));
    }
    let blackout = rig.scheduler.snapshot().blackout;
    assert_eq!(blackout.map(|it| it.scope), Some(Scope::Anywhere));
    assert!(rig.has(|notice| matches!(notice, Notice::BlackoutBegan(_))));
    rig.pass(SECOND * 600);
    rig.on(Event::Tick);
    rig.witnesses();
    rig.on(Event::Tick);
    assert_eq!(rig.failing(), 0);
    assert_eq!(rig.scheduler.snapshot().blackout, None);
}
