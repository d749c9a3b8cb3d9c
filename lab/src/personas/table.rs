//! A row of the table, and the table while it is built.

use protocol::{DeadReason, Host};
use serde::{Deserialize, Serialize};

use super::shapes;
use crate::expectation::Expectation;
use crate::play::{Answer, Dns, Play};

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
    /// Adds a responding Mastodon that the seed names. A name without a dot is below `lab.test`.
    pub(super) fn add(&mut self, name: &str, plays: &str, facts: &[u8]) -> &mut Persona {
        let host = match name.contains('.') {
            true => name.to_owned(),
            false => format!("{name}.lab.test"),
        };
        self.push(&host, plays, facts, Via::Seed)
    }

    /// Adds a responding instance that only `via` names.
    pub(super) fn add_witness(&mut self, name: &str, via: &str) -> &mut Persona {
        let plays = format!("Lives, and is named by {via} alone");
        self.push(name, &plays, &[], Via::Host(host(via)))
            .route(shapes::PEERS_PATH, shapes::flat::<&str>(&[]))
    }

    /// Adds a name without a server that only `via` names.
    pub(super) fn add_absent(&mut self, name: &str, via: &str) {
        let plays = format!("Is named by {via} alone, and DNS doesn't know it");
        self.push(name, &plays, &[], Via::Host(host(via)))
            .dead(&[DeadReason::NoSuchName])
            .acting(Play::dns_only(Dns::Absent));
    }

    /// Adds a responding instance that may never be contacted.
    pub(super) fn add_untouchable(
        &mut self,
        name: &str,
        plays: &str,
        facts: &[u8],
    ) -> &mut Persona {
        self.push(name, plays, facts, Via::Nobody)
            .expecting(Expectation::never())
    }

    fn push(&mut self, name: &str, plays: &str, facts: &[u8], via: Via) -> &mut Persona {
        self.rows.push(Persona {
            host: host(name),
            plays: plays.to_owned(),
            facts: facts.to_vec(),
            via,
            expectation: Expectation::alive(),
            play: shapes::living(name, "mastodon", "4.5.2"),
        });
        let last = self.rows.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "the row was pushed above")]
        &mut self.rows[last]
    }
}

impl Persona {
    /// Replaces all that is expected of it.
    pub(super) fn expecting(&mut self, expectation: Expectation) -> &mut Self {
        self.expectation = expectation;
        self
    }

    pub(super) fn dead(&mut self, reasons: &[DeadReason]) -> &mut Self {
        self.expecting(Expectation::dead(reasons))
    }

    pub(super) fn learning(&mut self, hosts: &[&str]) -> &mut Self {
        self.expecting(self.expectation.clone().learning(hosts))
    }

    pub(super) fn never_asking(&mut self, path: &str) -> &mut Self {
        self.expecting(self.expectation.clone().never_asking(path))
    }

    pub(super) fn noting(&mut self, note: &str) -> &mut Self {
        self.expecting(self.expectation.clone().noting(note))
    }

    /// Replaces its behaviour.
    pub(super) fn acting(&mut self, play: Play) -> &mut Self {
        self.play = play;
        self
    }

    pub(super) fn route(&mut self, path: &str, answer: Answer) -> &mut Self {
        self.acting(self.play.clone().route(path, answer))
    }
}
