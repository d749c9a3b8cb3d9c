//! A row of the table, and the table while it is built.

use protocol::Host;
use serde::{Deserialize, Serialize};

use super::shapes;
use crate::expectation::Expectation;
use crate::play::{Dns, Play};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Persona {
    pub host: Host,
    pub plays: String,
    /// The numbers of the facts about hostile and odd servers that it covers. Empty for ordinary
    /// software.
    pub facts: Vec<u8>,
    pub via: Via,
    /// What the census should find.
    pub expectation: Expectation,
    #[serde(skip)]
    pub play: Play,
}

/// Where a persona's name is published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    Start,
    Seed,
    /// By one other persona only.
    Host(Host),
    /// Only in ways that the census may not follow.
    Nobody,
}

#[expect(
    clippy::expect_used,
    reason = "the table's names are constants, and a test parses all of them"
)]
pub(crate) fn host(name: &str) -> Host {
    Host::parse(name).expect("invariant: the table's names are valid")
}

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) rows: Vec<Persona>,
}

impl Table {
    /// Adds a persona that the seed names.
    pub(super) fn add(
        &mut self,
        name: &str,
        plays: &str,
        facts: &[u8],
        expectation: Expectation,
        play: Play,
    ) -> &mut Persona {
        self.push(name, plays, facts, Via::Seed, expectation, play)
    }

    /// Adds a responding instance that only `via` names.
    pub(super) fn add_witness(&mut self, name: &str, via: &str) -> &mut Persona {
        let plays = format!("Lives, and is named by {via} alone");
        let play = shapes::living(name, "mastodon", "4.5.2")
            .route(shapes::PEERS_PATH, shapes::flat::<&str>(&[]));
        let via = Via::Host(host(via));
        self.push(name, &plays, &[], via, Expectation::alive(), play)
    }

    /// Adds a name without a server that only `via` names.
    pub(super) fn add_absent(&mut self, name: &str, via: &str) {
        let plays = format!("Is named by {via} alone, and DNS doesn't know it");
        let expectation = Expectation::dead(&[protocol::DeadReason::NoSuchName]);
        let via = Via::Host(host(via));
        let play = Play::dns_only(Dns::Absent);
        self.push(name, &plays, &[], via, expectation, play);
    }

    /// Adds a responding instance that may never be contacted.
    pub(super) fn add_untouchable(&mut self, name: &str, plays: &str, facts: &[u8]) {
        let play = shapes::living(name, "mastodon", "4.5.2");
        let expectation = Expectation::never();
        self.push(name, plays, facts, Via::Nobody, expectation, play);
    }

    pub(super) fn push(
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
