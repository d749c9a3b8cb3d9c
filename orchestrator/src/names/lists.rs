//! Public lists that are read on a schedule, by a container of the checker image in list mode.
//!
//! In: the operator's file of sources, the lines of such a run, what is remembered of a source.
//! Out: names for the gate, or the text of a new list of public suffixes. Refused: lists that grew
//! tenfold at once, until an operator says that it is well, and suffix lists that shrank or are
//! none. No list says anything about a host (invariant I3): its names are candidates and nothing
//! else.
//!
//! What is remembered of a source from one reading to the next, and what a reading changes of it: `census::source`.

pub mod file;
pub mod keep;
pub mod once;
pub mod run;
pub mod suffix_list;

use std::fmt;
use std::time::Duration;

use protocol::{Host, ListFormat, ListOrder, ListPath};

/// A public list, as the operator's file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// What it is called, by which the census remembers it.
    pub name: SourceName,
    /// The host that it lies on.
    pub host: Host,
    /// Where it lies there.
    pub path: ListPath,
    /// How it is written.
    pub format: ListFormat,
    /// From one reading to the next.
    pub interval: Duration,
    /// Most names that are taken from one reading. How many of them may enter is the admission rules' affair.
    pub names_max: u32,
}

impl Source {
    /// Where it lies, as the operator's file has it.
    pub fn url(&self) -> String {
        format!("https://{}{}", self.host, self.path.as_str())
    }

    /// What a container is asked for to read it.
    pub fn list(&self) -> ListOrder {
        ListOrder {
            path: self.path.clone(),
            format: self.format,
            names_max: self.names_max,
        }
    }
}

/// A source's name: 1 to [`SourceName::BYTES_MAX`] letters, digits, `-`, `_` or `.`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceName(String);

impl SourceName {
    /// Longest name in bytes: it stands in tables and commands.
    pub const BYTES_MAX: usize = 63;

    /// The name in this text, if it is one.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_name = !text.is_empty() && text.len() <= Self::BYTES_MAX && text.bytes().all(fits);
        is_name.then(|| Self(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
