//! The one table of personas: what each plays, which fact it answers, and what the census should make of it.
//!
//! Nearly all are named by the peers list of `seed.lab.test`. The others are named by one persona alone, so that finding them proves that this
//! persona was understood; and some must never be found at all.

mod bodies;
mod bytes;
pub mod lists;
mod names;
mod nodeinfo;
mod peers;
mod redirects;
mod robots;
pub mod shapes;
mod software;

use std::collections::BTreeSet;

use protocol::Host;
use serde::{Deserialize, Serialize};

use crate::expectation::Expectation;
use crate::play::{Dns, Play};

/// The persona that a census begins with.
pub const SEED: &str = "seed.lab.test";

/// One instance that the lab plays.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Persona {
    /// Its name.
    pub host: Host,
    /// What it plays, for people.
    pub plays: String,
    /// The numbers of the facts about hostile and odd servers that it stands for; none for ordinary software.
    pub facts: Vec<u8>,
    /// Who names it.
    pub via: Via,
    /// What the census should make of it.
    pub expectation: Expectation,
    /// How it behaves.
    #[serde(skip)]
    pub play: Play,
}

/// Who names a persona.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// The operator: it is the seed itself.
    Start,
    /// The peers list of the seed.
    Seed,
    /// Another persona alone.
    Host(Host),
    /// Somebody, but never in a way that the census may follow.
    Nobody,
}

/// All personas, the seed first. Without a crowd.
pub fn personas() -> Vec<Persona> {
    personas_and(&[])
}

/// All personas, whose seed names `further` hosts as well.
pub fn personas_and(further: &[String]) -> Vec<Persona> {
    with_seed(table(), further)
}

/// The seed, these personas (all if `chosen` is empty) and the personas that they lead to: the
/// names that become candidates because of them. Other names that they list are in no DNS.
///
/// # Errors
/// The first name that no persona has.
pub fn chosen_personas(chosen: &[String], further: &[String]) -> Result<Vec<Persona>, String> {
    if chosen.is_empty() {
        return Ok(personas_and(further));
    }
    let mut rows = table();
    let mut kept = BTreeSet::new();
    let mut led_to: Vec<Host> = Vec::new();
    for name in chosen.iter().filter(|name| *name != SEED) {
        let row = rows.iter().find(|row| row.host.as_str() == name);
        led_to.push(row.ok_or_else(|| name.clone())?.host.clone());
    }
    while let Some(host) = led_to.pop() {
        // Each is followed once: some name each other.
        if kept.insert(host.clone())
            && let Some(row) = rows.iter().find(|row| row.host == host)
        {
            led_to.extend_from_slice(&row.expectation.learns);
        }
    }
    rows.retain(|row| kept.contains(&row.host));
    Ok(with_seed(rows, further))
}

fn table() -> Vec<Persona> {
    let mut table = Table::default();
    software::add(&mut table);
    robots::add(&mut table);
    nodeinfo::add(&mut table);
    bodies::add(&mut table);
    redirects::add(&mut table);
    peers::add(&mut table);
    bytes::add(&mut table);
    names::add(&mut table);
    lists::add(&mut table);
    table.rows
}

fn with_seed(mut rows: Vec<Persona>, further: &[String]) -> Vec<Persona> {
    let mut listed: Vec<String> = rows
        .iter()
        .filter(|row| row.via == Via::Seed)
        .map(|row| row.host.to_string())
        .collect();
    listed.extend_from_slice(further);
    let seed = Persona {
        host: host(SEED),
        plays: "A Mastodon whose peers list names nearly all others".to_owned(),
        facts: Vec::new(),
        via: Via::Start,
        expectation: Expectation::alive().running("mastodon"),
        play: shapes::living(SEED, "mastodon", "4.5.2")
            .route(shapes::PEERS_PATH, shapes::flat(&listed)),
    };
    rows.insert(0, seed);
    rows
}

/// A name of the table.
#[expect(
    clippy::expect_used,
    reason = "the table's names are constants, and a test parses all of them"
)]
pub(crate) fn host(name: &str) -> Host {
    Host::parse(name).expect("invariant: the table's names are valid")
}

/// The table while it is being filled.
#[derive(Debug, Default)]
struct Table {
    rows: Vec<Persona>,
}

impl Table {
    /// Adds a persona that the seed names.
    fn add(
        &mut self,
        name: &str,
        plays: &str,
        facts: &[u8],
        expectation: Expectation,
        play: Play,
    ) -> &mut Persona {
        self.push(name, plays, facts, Via::Seed, expectation, play)
    }

    /// Adds a living instance that `via` alone names.
    fn add_witness(&mut self, name: &str, via: &str) -> &mut Persona {
        let plays = format!("Lives, and is named by {via} alone");
        let play = shapes::living(name, "mastodon", "4.5.2")
            .route(shapes::PEERS_PATH, shapes::flat::<&str>(&[]));
        let via = Via::Host(host(via));
        self.push(name, &plays, &[], via, Expectation::alive(), play)
    }

    /// Adds a name without a server that `via` alone names.
    fn add_absent(&mut self, name: &str, via: &str) {
        let plays = format!("Is named by {via} alone, and DNS doesn't know it");
        let expectation = Expectation::dead(&[protocol::DeadReason::NoSuchName]);
        let via = Via::Host(host(via));
        let play = Play::dns_only(Dns::Absent);
        self.push(name, &plays, &[], via, expectation, play);
    }

    /// Adds a living instance that nobody may ever ask.
    fn add_untouchable(&mut self, name: &str, plays: &str, facts: &[u8]) {
        let play = shapes::living(name, "mastodon", "4.5.2");
        let expectation = Expectation::never();
        self.push(name, plays, facts, Via::Nobody, expectation, play);
    }

    fn push(
        &mut self,
        name: &str,
        plays: &str,
        facts: &[u8],
        via: Via,
        expectation: Expectation,
        play: Play,
    ) -> &mut Persona {
        let row = Persona {
            host: host(name),
            plays: plays.to_owned(),
            facts: facts.to_vec(),
            via,
            expectation,
            play,
        };
        self.rows.push(row);
        let last = self.rows.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "the row was pushed one line above")]
        &mut self.rows[last]
    }
}

#[cfg(test)]
mod tests;
