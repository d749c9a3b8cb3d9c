//! The benefit of each controller of the scheduler and of the gateway's paces ([decision
//! 0011](../../../../docs/decisions/0011-each-controller-shows-what-it-buys.md)): each story runs
//! with the controller and without it.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use census::time::Timestamp;
use scheduler::slots::concurrency::Bounds;

use crate::crowd::{Behaviour, Crowd, Elsewhere, Name, Off};
use crate::machine::{self, Machine};
use crate::paces::crowd;

const START: Timestamp = Timestamp(0);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

const SHARED: IpAddr = IpAddr::V4(Ipv4Addr::new(8, 8, 8, 8));

fn run(names: Vec<Name>, off: Off, span: Duration) -> Crowd {
    let mut census = Crowd::new(names, Elsewhere::Responds, START).without(off);
    census.run_until(START.plus(span));
    census
}

/// The longest wait of the first `count` names for a check. A name without a check still waits.
fn longest_wait(census: &Crowd, count: usize) -> Duration {
    let waits = census.fates[..count].iter().zip(&census.names);
    let waits = waits.map(|(fate, name)| match fate.visits.is_empty() {
        true => census.now.since(name.due),
        false => fate.wait_max,
    });
    waits.max().unwrap()
}

/// Prints the story's figures, and fails unless the controller makes them smaller by `factor`.
fn check(story: &str, with: f64, without: f64, factor: f64) {
    eprintln!("{story}: {with:.0} with, {without:.0} without");
    assert!(
        with * factor <= without,
        "{story}: {with} with and {without} without is no gain of {factor}"
    );
}

#[test]
fn a_proven_address_serves_its_instances_though_strangers_are_pointed_at_it() {
    let (tenants, strangers) = (300, 900);
    let wait = |off| {
        let mut names = crowd("tenant", tenants, |number, name| {
            (name.address, name.behaviour, name.responded) = (SHARED, Behaviour::Responds, true);
            name.due = START.plus(SECOND * 12 * u32::try_from(number).unwrap());
        });
        names.extend(crowd("stranger", strangers, |number, name| {
            name.address = SHARED;
            name.due = START.plus(SECOND * 4 * u32::try_from(number).unwrap());
        }));
        let census = run(names, off, HOUR * 3);
        longest_wait(&census, tenants).as_secs_f64()
    };
    let (with, without) = (wait(Off::Nothing), wait(Off::Proofs));
    check("seconds that a tenant waits", with, without, 10.0);
}

#[test]
fn a_responding_host_asks_early_and_is_not_held_up_by_junk_below_its_domain() {
    let wait = |off| {
        let mut names = crowd("instance", 1, |_, name| {
            name.group = "shared.example".to_owned();
            (name.behaviour, name.responded) = (Behaviour::Responds, true);
            name.due = START.plus(HOUR);
        });
        names.extend(crowd("junk", 1_500, |_, name| {
            (name.group, name.due) = ("shared.example".to_owned(), START);
        }));
        let census = run(names, off, HOUR * 8);
        longest_wait(&census, 1).as_secs_f64()
    };
    let (with, without) = (wait(Off::Nothing), wait(Off::EarlyAsks));
    check("seconds that an instance waits", with, without, 5.0);
}

#[test]
fn early_asks_grow_rarer_the_more_hosts_ask_early() {
    let opens = |off| {
        let names = crowd("farm", 10_000, |_, name| {
            name.group = "farm.example".to_owned();
            (name.behaviour, name.responded, name.due) = (Behaviour::Responds, true, START);
        });
        let census = run(names, off, HOUR / 2);
        f64::from(u32::try_from(census.opens).unwrap())
    };
    let (with, without) = (opens(Off::Nothing), opens(Off::Stretch));
    check("opens in half an hour", with, without, 2.0);
}

#[test]
fn no_more_hosts_are_looked_up_than_the_gateway_can_dial() {
    let look_ups = |off| {
        // Sixty come due a second, and the gateway dials twenty.
        let names = crowd("silent", 36_000, |number, name| {
            name.due = START.plus(SECOND * u32::try_from(number).unwrap() / 60);
        });
        let census = run(names, off, HOUR / 30);
        let count: usize = census.look_ups.values().map(Vec::len).sum();
        f64::from(u32::try_from(count).unwrap())
    };
    let (with, without) = (look_ups(Off::Nothing), look_ups(Off::SustainableRate));
    check("look-ups in two minutes", with, without, 2.0);
}

/// Faults and checks within twenty minutes, with an engine that has memory for sixteen containers.
fn faults_and_checks(bounds: Bounds, off: machine::Off) -> (f64, f64) {
    let mut machine = Machine::new(32, 16, bounds, off);
    machine.run(HOUR / 3);
    (f64::from(machine.faults), f64::from(machine.checks))
}

/// With equal bounds the number does not change.
#[test]
fn the_number_of_containers_falls_when_the_engine_fails() {
    let bounds = |least| Bounds { least, most: 64 };
    let (with, checks) = faults_and_checks(bounds(2), machine::Off::Pressure);
    let (without, checks_without) = faults_and_checks(bounds(64), machine::Off::Pressure);
    check("faults of the engine", with, without, 2.0);
    assert!(
        checks > checks_without,
        "{checks} checks with, {checks_without} without"
    );
}

/// Without it only failures of the engine show that there are too many, each time that one more is
/// tried.
#[test]
fn pressure_on_the_machine_keeps_the_engine_from_failing() {
    let bounds = Bounds { least: 2, most: 64 };
    let (with, checks) = faults_and_checks(bounds, machine::Off::Nothing);
    let (without, checks_without) = faults_and_checks(bounds, machine::Off::Pressure);
    check("faults of the engine", with, without, 10.0);
    assert!(
        checks > checks_without * 0.8,
        "{checks} checks with, {checks_without} without"
    );
}

#[test]
fn a_list_is_out_sooner_because_checks_are_throttled() {
    let took = |off| {
        let bounds = Bounds {
            least: 16,
            most: 16,
        };
        let mut machine = Machine::new(2, 64, bounds, off);
        machine.run(HOUR / 6);
        machine.list_took.unwrap().as_secs_f64()
    };
    let (with, without) = (took(machine::Off::Nothing), took(machine::Off::Throttle));
    check("seconds that a list takes", with, without, 2.0);
}
