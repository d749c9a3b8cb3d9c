//! What the pages say of the census as a whole.

use std::collections::BTreeMap;

use census::state::StateName;
use dump::Moment;

use crate::answers::answer::Salt;
use crate::history::Day;

/// Hosts by state; a state that is missing has none.
pub type ByState = BTreeMap<StateName, u64>;

/// What the pages say of the census as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// When the pages were made.
    pub made: Moment,
    /// When the rows of the list were read: earlier, while a new one is held back.
    pub rows_read: Moment,
    /// The user agent that every checked host reads, contact included.
    pub user_agent: String,
    /// The census's name, one line.
    pub title: String,
    /// Who runs it, one line.
    pub operator: Option<String>,
    /// Where to write to: a URL or a mail address.
    pub contact: String,
    /// Where the site is read, without a slash at its end: `https://census.example`. Examples name it; without it they let the reader fill it in.
    pub address: Option<String>,
    /// Licence of the data, an SPDX expression.
    pub licence: String,
    /// Whether owners can submit a host and opt out over HTTP.
    pub intake: Intake,
    /// Whether readers can be notified of changes.
    pub push: Push,
    /// What is read of instances.
    pub reading: Reading,
    /// All hosts that the census knows.
    pub known: ByState,
    /// What the keys of the answers are made with; another one for each publication.
    pub salt: Salt,
    /// Daily counts, ascending by day.
    pub history: Vec<Day>,
    /// The files of the list that the pages are made of.
    pub published: dump::PublishedSet,
}

/// Whether owners can submit a host and opt out over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intake {
    /// `POST /submit` and `POST /opt-out` are answered.
    Open,
    /// They are not.
    Closed,
}

/// Whether readers can be notified of changes by Web Push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Push {
    /// `/subscribe` is answered.
    Open,
    /// It is not.
    Closed,
}

/// What is read of instances beyond NodeInfo and peers lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Nothing.
    Instances,
    /// Public posts, for the names of other servers (setting `walks_per_hour`).
    Conversations,
}

impl Facts {
    /// The contact as a link's target; nothing when it is neither a web nor a mail address, for other schemes could run scripts.
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

    /// Where the site is read, as it stands in examples.
    pub(crate) fn address(&self) -> &str {
        self.address.as_deref().unwrap_or("https://census.example")
    }
}
