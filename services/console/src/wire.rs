//! The wire format between the console and the daemon: one request per connection as a line of
//! JSON, and one line as answer.
//!
//! The daemon's socket for the console accepts only these requests. Both ends limit a line's length
//! before they parse it, and the daemon validates every field again. A compromised console can
//! decide in the name of any moderator, and do nothing more.

use std::time::Duration;

use local_socket::{Ask, Client};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub const DOMAINS_MAX: usize = 100;

pub const ROWS_MAX: u32 = 100;

/// Held groups of a page that are shown with their facts.
pub const CARDS_MAX: usize = 10;

/// Most lines of a text, such as `status`.
pub const LINES_MAX: usize = 500;

/// Longest wait for an answer that is read from the database.
const READ_TIME_MAX: Duration = Duration::from_secs(20);

/// Longest wait for a check of a host, or a publication.
pub const WORK_TIME_MAX: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    Status {},
    Groups {
        which: Which,
        skip: u32,
    },
    /// One group with its hosts and decisions.
    Group {
        domain: String,
    },
    /// A page of names that wait for room.
    Waiting {
        /// The last name of the previous page. Empty for the first page.
        after: String,
    },
    Sources {},
    /// The published list, and why the next one is held back.
    Publication {},
    /// The site's answer for a host, and a moderator's facts.
    Host {
        host: String,
    },
    Decisions {
        /// Where the page begins. `None` for the newest decisions.
        cursor: Option<Cursor>,
    },
    Act(Act),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Act {
    pub moderator: String,
    pub order: Order,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    Decide {
        /// Their registered domains, at most [`DOMAINS_MAX`].
        domains: Vec<String>,
        verb: Verb,
        reason: String,
    },
    Undo {
        /// Their ids, at most [`DOMAINS_MAX`].
        decisions: Vec<DecisionId>,
    },
    /// Read a paused source again.
    ResumeSource {
        name: String,
    },
    /// Publish the list although it lost too many names.
    PublishByForce {},
    Check {
        host: String,
    },
    /// Take a host out, or put it back.
    DecideHost {
        host: String,
        decision: HostVerb,
        reason: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    Held,
    /// Groups with a decision in force.
    Decided,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Its hosts are checked and listed like any others.
    Allow,
    /// None of its hosts is checked or listed.
    Deny,
    /// At most this many of its hosts are checked a day.
    Limit(u32),
    /// Remove the decision: the threshold applies again.
    Forget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostVerb {
    /// It is neither checked nor listed.
    TakeOut,
    /// It is checked and listed again.
    PutBack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionId {
    Group(i64),
    Host(i64),
}

/// The start of a page of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    /// Decisions about groups have lower ids than this.
    pub group_id: i64,
    /// Decisions about hosts have lower ids than this.
    pub host_id: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    Status {
        lines: Vec<String>,
        groups_held: u64,
        names_waiting: u64,
        sources_paused: u64,
        /// Why the list is held back, or was not published. `None` if neither.
        publication_trouble: Option<String>,
    },
    Groups(GroupList),
    Group(Box<GroupPage>),
    Waiting {
        rows: Vec<WaitingName>,
        has_more: bool,
    },
    Sources(Vec<Source>),
    Publication(Publication),
    Host(HostPage),
    Decisions {
        /// The rows of the page, the newest first.
        rows: Vec<Decision>,
        /// The start of the next page. `None` for the last page.
        next: Option<Cursor>,
    },
    /// Answers [`Request::Act`]: what happened, line by line.
    Done(Vec<Outcome>),
    Failed(String),
}

/// The outcome of one part of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    pub is_done: bool,
    pub text: String,
    /// The decision that was made, if it can be undone.
    pub undo: Option<DecisionId>,
}

/// A page of groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupList {
    pub rows: Vec<GroupRow>,
    /// Those of the first [`CARDS_MAX`] rows, if they are held.
    pub facts: Vec<GroupFacts>,
    pub has_more: bool,
}

/// A text and its label.
pub type Labelled = (String, String);

/// All that a decision about a group needs, in words. `fedicensus groups show` prints the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupFacts {
    pub lines: Vec<Labelled>,
    /// Five of its hosts, responding ones first.
    pub names: Vec<String>,
    /// What each decision does, by its word.
    pub effects: Vec<Labelled>,
    /// A decision's word and the evidence for it. `None` without evidence.
    pub suggestion: Option<Labelled>,
    /// The reason of a decision if the moderator writes no other.
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupRow {
    pub domain: String,
    pub hosts: u64,
    pub held_back: u64,
    /// The decision in force, with its time.
    pub decision: Option<String>,
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupPage {
    pub row: GroupRow,
    pub facts: GroupFacts,
    pub newest: Vec<Member>,
    pub software: Vec<(String, u64)>,
    /// Decisions about it, the newest first.
    pub decisions: Vec<PastDecision>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    pub name: String,
    pub state: String,
    /// When it was added (RFC 3339).
    pub first_seen: String,
    pub software: Option<String>,
    pub held_back: bool,
}

/// An earlier decision about a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PastDecision {
    /// When it was made (RFC 3339).
    pub at: String,
    pub decision: String,
    pub reason: String,
    pub who: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitingName {
    pub name: String,
    pub why: String,
    /// When it was first named (RFC 3339).
    pub first_named: String,
    /// When it was last named (RFC 3339).
    pub last_named: String,
    /// Approximate number of independent sources that named it.
    pub named_by: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    pub name: String,
    /// The output of `fedicensus sources list` for it.
    pub text: String,
    pub is_paused: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publication {
    /// When it was published (RFC 3339), and its number of names.
    pub last: Option<(String, u64)>,
    /// Why the next one is held back, or was not published. `None` if neither.
    pub trouble: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPage {
    /// Its name in canonical form.
    pub host: String,
    /// Its registered domain. `None` if the census does not know the host.
    pub group: Option<String>,
    pub is_listed: bool,
    /// Whether it is listed, and failing or moving.
    pub verdict: String,
    /// The site's sentence.
    pub says: String,
    /// The site's advice to the owner. Empty if there is none, or only to write to the moderators.
    pub advice: String,
    /// What moderators may read in addition.
    pub facts: Vec<Labelled>,
    /// Former checks with their times (RFC 3339), the newest first.
    pub past: Vec<Labelled>,
    /// Whether a moderator took it out.
    pub is_taken_out: bool,
}

/// A line of the log of decisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    pub id: DecisionId,
    /// The domain or the host.
    pub subject: String,
    /// When it was made (RFC 3339).
    pub at: String,
    pub decision: String,
    pub reason: String,
    pub who: String,
    /// Whether it can be undone: there is no later decision about the same subject.
    pub can_be_undone: bool,
}

impl Ask for Request {
    type Answer = Answer;

    /// [`DOMAINS_MAX`] names of 253 bytes, and a reason.
    const BYTES_MAX: usize = 64 * 1024;

    /// A page of [`ROWS_MAX`] rows, each with a few texts of up to 1 KiB.
    const ANSWER_BYTES_MAX: usize = 1024 * 1024;

    fn answer_time_max(&self) -> Duration {
        match self {
            Self::Act(_) => WORK_TIME_MAX,
            Self::Status {}
            | Self::Groups { .. }
            | Self::Group { .. }
            | Self::Waiting { .. }
            | Self::Sources {}
            | Self::Publication {}
            | Self::Host { .. }
            | Self::Decisions { .. } => READ_TIME_MAX,
        }
    }

    fn parse<T: DeserializeOwned>(line: &[u8]) -> serde_json::Result<T> {
        serde_json::from_slice(line)
    }

    fn failed(why: String) -> Answer {
        Answer::Failed(why)
    }
}

/// The daemon's socket for the console.
pub type Census = Client<Request>;

#[cfg(test)]
mod tests {
    use super::*;

    /// A compromised console can't request anything more: other messages don't parse.
    #[test] // S24
    fn wire_has_these_requests_only() {
        let good = [
            r#"{"status":{}}"#,
            r#"{"groups":{"which":"held","skip":0}}"#,
            r#"{"group":{"domain":"a.example"}}"#,
            r#"{"waiting":{"after":""}}"#,
            r#"{"sources":{}}"#,
            r#"{"publication":{}}"#,
            r#"{"host":{"host":"a.example"}}"#,
            r#"{"decisions":{"cursor":null}}"#,
            r#"{"act":{"moderator":"ada","order":{"decide":{"domains":["a.example"],"verb":{"limit":3},"reason":"r"}}}}"#,
            r#"{"act":{"moderator":"ada","order":{"undo":{"decisions":[{"group":1},{"host":2}]}}}}"#,
            r#"{"act":{"moderator":"ada","order":{"resume_source":{"name":"a"}}}}"#,
            r#"{"act":{"moderator":"ada","order":{"publish_by_force":{}}}}"#,
            r#"{"act":{"moderator":"ada","order":{"check":{"host":"a.example"}}}}"#,
            r#"{"act":{"moderator":"ada","order":{"decide_host":{"host":"a.example","decision":"take_out","reason":"r"}}}}"#,
        ];
        for line in good {
            let request = Request::parse::<Request>(line.as_bytes()).unwrap();
            assert_eq!(serde_json::to_string(&request).unwrap(), line);
        }
        for line in [
            "",
            "{}",
            "null",
            r#"{"status":{"x":1}}"#,
            r#"{"live":{}}"#,
            r#"{"add":{"names":["a.example"]}}"#,
            r#"{"opt_out":{"host":"a.example","by":"owner","undo":false}}"#,
            r#"{"reload_admission":{}}"#,
            r#"{"dump":{"force":true}}"#,
            r#"{"act":{"order":{"publish_by_force":{}}}}"#,
            r#"{"act":{"moderator":"ada","order":{"publish_by_force":{}},"by":"owner"}}"#,
            r#"{"act":{"moderator":"ada","order":{"decide":{"domains":[],"verb":{"limit":-1},"reason":"r"}}}}"#,
            r#"{"groups":{"which":"all","skip":0}}"#,
        ] {
            assert!(
                Request::parse::<Request>(line.as_bytes()).is_err(),
                "{line}"
            );
        }
    }
}
