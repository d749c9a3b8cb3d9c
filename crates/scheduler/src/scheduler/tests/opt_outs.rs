//! Hosts that opt out.

use census::state::State;

use super::*;

#[test]
fn an_owner_who_opts_out_ends_the_check() {
    let mut rig = Rig::new();
    let check = rig.taken(1, 0);
    let commands = rig.on(Event::OptedOut { host: host(1) });
    assert!(commands.contains(&Command::Abort { check }));
    assert_eq!(rig.releases(), [(&host(1), &Released::OptedOut)]);
    assert_eq!(rig.ended(check, alive(rig.now)), [], "it was on its way");
}

/// Invariant I7.
#[test] // S66
fn a_check_that_finds_an_opt_out_of_a_listed_host_brings_a_list() {
    for (last_alive, verdict, minutes) in [
        (Some(START), Verdict::OptedOut, 10),
        (Some(START), Verdict::Moved { to: host(2) }, 360),
        (None, Verdict::OptedOut, 360),
    ] {
        let mut rig = Rig::new();
        let mut record = Record::discovered(host(1), START, START);
        (record.state, record.last_alive) = (State::Alive, last_alive);
        rig.scheduler.commit(Box::new(record), verdict, START);
        let next = rig.scheduler.publication.next();
        assert_eq!(next, START.plus(SECOND * 60 * minutes));
    }
}

/// The store takes a host in one transaction and opts it out in the next; its answers may arrive in
/// the other order (I7).
#[test]
fn a_host_whose_owner_opted_out_while_it_was_taken_is_not_checked() {
    let mut rig = Rig::new();
    rig.on(Event::OptedOut { host: host(1) });
    let taken = || Taken {
        record: Box::new(Record::discovered(host(1), START, START)),
        class: Class::New,
        faults: 0,
    };
    rig.on(Event::Taken {
        hosts: vec![taken()],
        not_admitted: Vec::new(),
    });
    assert_eq!(rig.releases(), [(&host(1), &Released::OptedOut)]);
    assert!(!rig.commands.iter().any(|c| matches!(c, Command::Start(_))));
    // The owner may withdraw the opt-out.
    rig.pass(TAKE_MAX);
    rig.tick();
    rig.taken(1, 0);
}
