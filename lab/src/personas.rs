//! The table of personas: what each plays, which fact it covers, and what the census should find.
//!
//! The peers list of `seed.lab.test` names most of them. Each of the others is named by only one
//! persona, so that finding it proves that this persona was understood. Some must never be found at
//! all.

mod bodies;
pub mod conversations;
pub mod lists;
mod names;
mod nodeinfo;
mod peers;
mod redirects;
mod robots;
pub mod shapes;
mod software;
pub(crate) mod table;

use std::collections::BTreeSet;

use protocol::Host;

pub use self::table::{Persona, Via};
use self::table::{Table, host};
use crate::expectation::Expectation;

/// The persona with which a census begins.
pub const SEED: &str = "seed.lab.test";

/// All personas, the seed first. Without a crowd.
pub fn personas() -> Vec<Persona> {
    personas_and(&[])
}

/// All personas, with a seed that also names `further` hosts.
pub fn personas_and(further: &[String]) -> Vec<Persona> {
    with_seed(table(), further)
}

/// The seed, these personas (all if `chosen` is empty) and the personas that they lead to: the
/// names that become candidates because of them. Their lists' other names are not in DNS.
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
        // Each is followed once, because some name each other.
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
    conversations::add(&mut table);
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

#[cfg(test)]
mod tests;
