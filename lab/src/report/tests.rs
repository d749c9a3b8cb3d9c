use super::*;
use crate::crowd::Crowd;
use crate::farm::Farm;
use crate::personas;

/// The findings of a faultless census after one check of each.
fn faultless(table: &Table) -> (Vec<Found>, Vec<String>) {
    let of = |persona: &Persona| Found {
        host: persona.host.to_string(),
        state: persona.expectation.state.clone(),
        verdict: persona.expectation.verdict.name().map(str::to_owned),
        reason: match &persona.expectation.verdict {
            ExpectedVerdict::Dead { reasons } => reasons.last().map(reason),
            _ => None,
        },
        software: persona.expectation.software.clone(),
        open_registrations: match persona.expectation.registrations {
            Some(Registrations::Open) => Some(true),
            Some(Registrations::Closed) => Some(false),
            Some(Registrations::NotSaid) | None => None,
        },
        hidden: Some(persona.expectation.hidden),
    };
    let known = |persona: &&Persona| persona.expectation.state != "unknown";
    let mut found: Vec<Found> = table.personas.iter().filter(known).map(of).collect();
    let mut nodes: Vec<String> = table
        .personas
        .iter()
        .filter(|persona| persona.expectation.listed)
        .map(|persona| persona.host.to_string())
        .collect();
    nodes.extend_from_slice(&table.crowd);
    for host in table.crowd.iter().chain(&table.farm).cloned() {
        found.push(Found {
            host,
            state: "alive".to_owned(),
            verdict: Some("alive".to_owned()),
            reason: None,
            software: None,
            open_registrations: None,
            hidden: Some(false),
        });
    }
    nodes.sort();
    (found, nodes)
}

fn table() -> Table {
    Table::new(
        &personas(),
        Crowd::new(30, 1),
        Farm::new(50),
        "# by hand\nReal.example 127.0.0.1 443\n*.all.example 127.0.0.1 443\n",
    )
}

#[track_caller]
fn check(change: impl FnOnce(&mut Vec<Found>, &mut Vec<String>, &mut Asked), expect: &[&str]) {
    let table = table();
    let (mut found, mut nodes) = faultless(&table);
    let mut asked = Asked::new();
    change(&mut found, &mut nodes, &mut asked);
    let report = compare(&table, &found, &nodes, Some(&asked));
    assert_eq!(report.differences, expect);
}

fn row<'a>(found: &'a mut [Found], host: &str) -> &'a mut Found {
    found.iter_mut().find(|row| row.host == host).unwrap()
}

#[test]
fn a_faultless_census_has_no_differences() {
    check(|_, _, _| {}, &[]);
}

#[test]
fn what_was_put_beside_the_personas_by_hand_is_no_difference() {
    let end = |nodes: &mut Vec<String>| {
        nodes.push("real.example".to_owned());
        nodes.sort();
    };
    check(|_, nodes, _| end(nodes), &[]);
}

#[test]
fn further_checks_are_no_difference() {
    check(
        |found, _, _| row(found, "pointer-404.lab.test").state = "dead".to_owned(),
        &[],
    );
}

#[test]
fn every_kind_of_difference_is_told() {
    check(
        |found, _, _| row(found, "pointer-404.lab.test").state = "alive".to_owned(),
        &["pointer-404.lab.test: its state is alive"],
    );
    check(
        |found, _, _| row(found, "tls-none.lab.test").reason = Some("http".to_owned()),
        &["tls-none.lab.test: it is dead by http"],
    );
    check(
        |found, _, _| row(found, "mastodon.lab.test").software = Some("forged".to_owned()),
        &["mastodon.lab.test: its software is forged"],
    );
    check(
        |found, _, _| row(found, "mastodon.lab.test").open_registrations = Some(false),
        &["mastodon.lab.test: its registrations are closed"],
    );
    check(
        |found, _, _| row(found, "numbers-as-text.lab.test").open_registrations = Some(true),
        &["numbers-as-text.lab.test: its registrations are open"],
    );
    check(
        |found, _, _| row(found, "gone.lab.test").verdict = Some("dead".to_owned()),
        &["gone.lab.test: its verdict is dead"],
    );
    check(
        |found, _, _| row(found, "red-one.lab.test").hidden = Some(false),
        &["red-one.lab.test: it is not hidden"],
    );
    check(
        |_, nodes, _| nodes.retain(|name| name != "mastodon.lab.test"),
        &["mastodon.lab.test: it is not in nodes.json"],
    );
    check(
        |_, nodes, _| nodes.retain(|name| name != "n00007.crowd-1.test"),
        &["n00007.crowd-1.test of the crowd: alive: alive"],
    );
    for name in ["zzz.test", "h00000003.farm-of-names.test"] {
        check(
            |_, nodes, _| {
                nodes.push(name.to_owned());
                nodes.sort();
            },
            &[&format!("{name} is in nodes.json and is nobody's")],
        );
    }
    check(
        |found, _, _| row(found, "h00000003.farm-of-names.test").state = "unknown".to_owned(),
        &["h00000003.farm-of-names.test of the farm is not known"],
    );
    check(
        |_, nodes, _| nodes.push("mastodon.lab.test".to_owned()),
        &["nodes.json is not sorted, or doubled, after xn--bcher-kva.lab.test"],
    );
}

#[test]
fn requests_that_should_not_be_are_told() {
    let paths = |paths: &[&str]| paths.iter().map(|&path| path.to_owned()).collect();
    check(
        |_, _, asked| {
            asked.insert("victim.invalid".to_owned(), paths(&[]));
            asked.insert(
                "robots-all.lab.test".to_owned(),
                paths(&["/robots.txt", "/x"]),
            );
            asked.insert(
                "victim.lab-victim.test".to_owned(),
                paths(&["/claimed", "/robots.txt"]),
            );
        },
        &[
            "robots-all.lab.test: it was asked for /x",
            "victim.lab-victim.test: it was asked for /claimed",
            "victim.invalid: it was contacted",
        ],
    );
}
