//! The facts about the whole census that the pages show.

use std::collections::BTreeMap;

use census::state::StateName;
use dump::Moment;

use crate::answers::answer::Salt;
use crate::fixes::VersionHistory;
use crate::history::Day;

/// Hosts by state; a state that is missing has none.
pub type ByState = BTreeMap<StateName, u64>;

/// The facts about the whole census that the pages show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    pub made: Moment,
    /// When the rows of the list were read. Earlier than `made` while a new list is held back.
    pub rows_read: Moment,
    /// The user agent sent to every checked host, including the contact.
    pub user_agent: String,
    /// The census's name, one line.
    pub title: String,
    /// The operator's name, one line.
    pub operator: Option<String>,
    /// Contact of the operator: a URL or a mail address.
    pub contact: String,
    /// The site's public address without a final slash: `https://census.example`. Examples contain
    /// it; without it, the reader fills it in.
    pub address: Option<String>,
    /// Licence of the data, an SPDX expression.
    pub licence: String,
    /// Whether owners can submit a host and opt out over HTTP.
    pub intake: Intake,
    /// Whether readers can be notified of changes.
    pub push: Push,
    /// What the census reads from instances.
    pub reading: Reading,
    /// Number of all known hosts by state.
    pub known: ByState,
    /// What the first round of checks has done and has left, in a sentence. `None` if none is under
    /// way.
    pub progress: Option<String>,
    /// What is wrong with the census, and what its operator should do, in a sentence.
    pub trouble: Option<String>,
    /// The salt of the answers' keys; different in each publication.
    pub salt: Salt,
    /// Daily counts, ascending by day.
    pub history: Vec<Day>,
    /// Daily counts of versions.
    pub versions: VersionHistory,
    /// The published files of the list from which the pages are made.
    pub published: dump::PublishedSet,
}

/// Whether owners can submit a host and opt out over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intake {
    /// `POST /submit`, `POST /opt-out` and `POST /proof` are answered.
    Open,
    Closed,
}

/// Whether readers can be notified of changes by Web Push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Push {
    Open,
    Closed,
}

/// What the census reads from instances in addition to NodeInfo and peers lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    Instances,
    /// Public posts, to find names of other servers (setting `walks_per_hour`).
    Conversations,
}

impl Facts {
    /// The contact as a link's target. `None` unless it is a web or mail address: other schemes
    /// could run scripts.
    pub(crate) fn contact_link(&self) -> Option<String> {
        let contact = self.contact.as_str();
        let is_web = ["https://", "http://"]
            .iter()
            .any(|scheme| contact.starts_with(scheme));
        if is_web || contact.starts_with("mailto:") {
            Some(contact.to_owned())
        } else if contact.contains('@') && !contact.contains([':', '/']) {
            Some(format!("mailto:{contact}"))
        } else {
            None
        }
    }

    /// The site's address as examples show it.
    pub(crate) fn address(&self) -> &str {
        self.address.as_deref().unwrap_or("https://census.example")
    }
}
