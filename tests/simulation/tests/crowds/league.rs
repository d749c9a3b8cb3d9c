//! Colluding hosts whose checks always fault (invariant I5).

use std::time::Duration;

use census::time::{Calendar, Jitter, Timestamp};

use crate::crowd::{Behaviour, Crowd, Elsewhere, Name};
use crate::paces::crowd;

const HOUR: Duration = Duration::from_secs(3600);

/// Time between two checks of a responding host.
const DAY: Duration = HOUR.saturating_mul(29);

const DAYS: u32 = 4;

const START: Timestamp = Timestamp(1_700_000_000_000);

/// Hosts due within a day, each at its own address in its own block.
fn hosts(honest: usize, in_league: usize) -> Vec<Name> {
    crowd("n", honest + in_league, |number, name| {
        let [part, whole] = [number % honest, honest].map(|part| u32::try_from(part).unwrap());
        name.due = START.plus(DAY * part / whole);
        name.responded = number < honest;
        name.behaviour = match name.responded {
            true => Behaviour::Responds,
            false => Behaviour::Faults,
        };
    })
}

/// The longest time for which an honest host was not checked.
fn longest_unchecked(crowd: &Crowd, honest: usize) -> Duration {
    let gaps = crowd.fates[..honest].iter().flat_map(|fate| {
        let ends = fate.visits.iter().copied().chain([crowd.now]);
        let begins = [START].into_iter().chain(fate.visits.iter().copied());
        begins.zip(ends).map(|(begin, end)| end.since(begin))
    });
    gaps.max().unwrap()
}

/// Half of all hosts, whatever their number: the honest ones are still checked daily.
#[test] // S54
fn hosts_in_league_whose_checks_all_fault_stop_nothing() {
    for count in [30, 300, 1_000, 10_000] {
        let mut crowd = Crowd::new(hosts(count, count), Elsewhere::Nothing, START);
        crowd.run_until(START.plus(DAY * DAYS));
        let unchecked = longest_unchecked(&crowd, count);
        let checks: usize = crowd.fates[count..]
            .iter()
            .map(|fate| fate.visits.len())
            .sum();
        let a_day = f64::from(u32::try_from(checks).unwrap())
            / f64::from(u32::try_from(count).unwrap())
            / f64::from(DAYS);
        let stopped = crowd.stopped_for;
        eprintln!(
            "{count} and {count}: no honest host unchecked for longer than {} min, one in league checked {a_day:.1} times a day, \
             stopped for {} s in {DAYS} days",
            unchecked.as_secs() / 60,
            stopped.as_secs(),
        );
        let most = Calendar::REAL.day(Jitter(u32::MAX)) + Duration::from_secs(300);
        assert!(unchecked <= most, "{unchecked:?}");
        assert!(
            a_day < 3.2,
            "those in league are checked {a_day:.1} times a day"
        );
        assert!(stopped < HOUR / 100 * 29 * DAYS, "stopped for {stopped:?}");
    }
}
