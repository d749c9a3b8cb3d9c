//! Public lists that are read on a schedule, by a container of the checker image in list mode.
//!
//! A reading gives names for the gate, or the text of a new list of public suffixes. A list that
//! grew tenfold at once is paused until an operator confirms it. A suffix list that shrank or is
//! malformed is rejected. No list decides anything about a host (invariant I3): its names are only
//! candidates.
//!
//! `census::source` defines what is remembered of a source between two readings, and how a reading
//! changes it.

pub mod file;
pub mod keep;
pub mod once;
pub mod suffix_list;

use std::fmt;
use std::time::Duration;

use protocol::{Host, ListFormat, ListOrder, ListPath};

/// A public list, as the operator's file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its name, which identifies it in the census.
    pub name: SourceName,
    pub host: Host,
    pub path: ListPath,
    pub format: ListFormat,
    pub interval: Duration,
    /// Most names taken from one reading. The admission rules limit how many of them enter.
    pub names_max: u32,
}

impl Source {
    /// Its URL, as in the operator's file.
    pub fn url(&self) -> String {
        format!("https://{}{}", self.host, self.path.as_str())
    }

    /// The container's order to read it.
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
    /// Longest name in bytes: tables and commands contain it.
    pub const BYTES_MAX: usize = 63;

    /// Parses a name; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_name = !text.is_empty() && text.len() <= Self::BYTES_MAX && text.bytes().all(fits);
        is_name.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
