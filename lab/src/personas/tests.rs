use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::expectation::ExpectedVerdict;
use crate::play::Dns;

/// The facts that one server, or its name, can play. The others belong to the orchestrator, the
/// gateway or a test image.
const FACTS: [u8; 29] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 27,
    29, 30, 32,
];

/// Longest table that a person can look through after `lab/up`.
const PERSONAS_MAX: usize = 700;

#[test]
fn every_name_stands_once() {
    let all = personas();
    let names: BTreeSet<&Host> = all.iter().map(|persona| &persona.host).collect();
    assert_eq!(names.len(), all.len());
    assert!(all.len() < PERSONAS_MAX, "{}", all.len());
    assert_eq!(all.first().map(|seed| seed.host.as_str()), Some(SEED));
}

/// Otherwise the lab's census holds their hosts.
#[test]
fn large_domains_of_the_lab_are_hosters() {
    let hosters = include_str!("../../hosters.txt");
    let mut sizes = BTreeMap::<String, usize>::new();
    for name in personas().iter().map(|persona| persona.host.as_str()) {
        let mut labels = name.rsplitn(3, '.');
        let (last, before) = (labels.next().unwrap(), labels.next().unwrap());
        *sizes.entry(format!("{before}.{last}")).or_default() += 1;
    }
    sizes.insert("hoster.test".to_owned(), 200);
    for (domain, size) in sizes {
        let is_large = size > 10;
        assert!(
            !is_large || hosters.lines().any(|line| line == domain),
            "{domain}: {size}"
        );
    }
}

#[test]
fn every_fact_that_one_server_can_play_has_a_persona() {
    let mut played: BTreeMap<u8, usize> = BTreeMap::new();
    for persona in personas() {
        for fact in persona.facts {
            *played.entry(fact).or_default() += 1;
        }
    }
    for fact in FACTS {
        assert!(played.contains_key(&fact), "fact {fact} has no persona");
    }
}

#[test]
fn every_expectation_agrees_with_itself() {
    for persona in personas() {
        let wanted = &persona.expectation;
        let host = &persona.host;
        let state = match &wanted.verdict {
            ExpectedVerdict::Alive => "alive",
            ExpectedVerdict::Moved { .. } => "moving",
            ExpectedVerdict::OptedOut => "opted_out",
            ExpectedVerdict::Gone | ExpectedVerdict::Dead { .. } => "dying",
            ExpectedVerdict::Refused => "discovered",
            ExpectedVerdict::NeverChecked => "unknown",
        };
        assert_eq!(wanted.state, state, "{host}");
        let lives = wanted.verdict == ExpectedVerdict::Alive;
        assert_eq!(wanted.listed, lives && !wanted.hidden, "{host}");
        let untouched = wanted.verdict == ExpectedVerdict::NeverChecked;
        assert_eq!(wanted.never_contacted, untouched, "{host}");
        assert_eq!(persona.via == Via::Nobody, untouched, "{host}");
        if let ExpectedVerdict::Dead { reasons } = &wanted.verdict {
            assert!(!reasons.is_empty(), "{host}");
        }
        if persona.play.dns == Dns::Served && !untouched {
            assert!(
                !persona.play.routes.is_empty()
                    || persona.play.otherwise.is_some()
                    || host.as_str() == "no-nodeinfo.lab.test",
                "{host}"
            );
        }
    }
}

#[test]
fn whoever_is_named_by_one_alone_is_learned_from_it() {
    let all = personas();
    let by_name: BTreeMap<&Host, &Persona> = all.iter().map(|row| (&row.host, row)).collect();
    for persona in &all {
        if let Via::Host(via) = &persona.via {
            let learns = &by_name[via].expectation.learns;
            assert!(learns.contains(&persona.host), "{}", persona.host);
        }
        for learned in &persona.expectation.learns {
            assert!(by_name.contains_key(learned), "{learned}");
        }
        // A secret in the seed's list would prove nothing.
        let seeded = matches!(persona.via, Via::Seed);
        assert!(!seeded || !persona.host.as_str().contains("-shapes."));
    }
}

#[test]
fn the_seed_names_all_that_it_should_and_no_others() {
    let all = personas_and(&["n00001.crowd-1.test".to_owned()]);
    let request = crate::play::Request {
        path: shapes::PEERS_PATH.to_owned(),
        ..Default::default()
    };
    let crate::play::Answer::Reply(reply) = all[0].play.answer(&request) else {
        panic!("a reply");
    };
    let told: BTreeSet<String> = serde_json::from_slice(&reply.body).unwrap();
    assert!(told.contains("n00001.crowd-1.test"));
    for persona in &all {
        let should = persona.via == Via::Seed;
        assert_eq!(
            told.contains(persona.host.as_str()),
            should,
            "{}",
            persona.host
        );
    }
}

#[test]
fn every_family_with_a_peers_list_has_a_witness() {
    let witnesses = personas()
        .iter()
        .filter(|row| row.host.is_within("lab-shapes.test") && row.expectation.listed)
        .count();
    // Four of them are of hostile lists.
    assert_eq!(witnesses, 36, "a persona with a list raises this number");
}

#[test]
fn whom_the_public_list_names_lives() {
    let all = personas();
    for name in lists::PODS {
        let row = all.iter().find(|row| row.host.as_str() == name);
        assert!(row.is_some_and(|row| row.expectation.listed), "{name}");
        assert!(name.ends_with(lists::SUFFIX));
    }
}

#[test]
fn a_choice_of_personas_brings_whom_they_lead_to_and_nobody_else() {
    let chosen = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let rows = chosen_personas(&names, &[])?;
        let names = rows.iter().map(|row| row.host.to_string());
        Ok::<_, String>(names.collect::<BTreeSet<_>>())
    };
    let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(chosen(&[SEED]), Ok(set(&[SEED])));
    assert_eq!(
        chosen(&["injection.lab.test", "no-nodeinfo.lab.test"]),
        Ok(set(&[
            SEED,
            "injection.lab.test",
            "no-nodeinfo.lab.test",
            "by-injection.lab-shapes.test"
        ]))
    );
    assert_eq!(chosen(&["flood.lab.test"]).unwrap().len(), 202);
    assert_eq!(
        chosen(&["injection.lab.test", "nobody.test"]),
        Err("nobody.test".to_owned())
    );
    // Choosing all gives the same result for each.
    let all: Vec<String> = personas().iter().map(|row| row.host.to_string()).collect();
    assert_eq!(chosen_personas(&all, &[]).unwrap().len(), all.len());
}
