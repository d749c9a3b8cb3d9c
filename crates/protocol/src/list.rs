//! Public lists: what a checker in list mode requests, and how the reading of a list ended.
//!
//! Such a run is no check: nothing in it is a verdict about the list's host. See decision record
//! 0002.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::limits;

/// The list or proof to read from a host. With it in the order, only robots.txt and this path are
/// requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListOrder {
    pub path: ListPath,
    pub format: ListFormat,
    /// Most names that are reported, at most [`limits::PEERS_MAX`]. The lines of a suffix list or a
    /// proof have other bounds.
    pub names_max: u32,
}

/// The format of a public list. A host's proof counts as a format too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListFormat {
    /// A name a line; `#` and `//` begin a comment.
    Lines,
    /// An array of names or of objects that hold one, at the top or in an object.
    Json,
    /// A JSON value a line: a name, or an object that holds one.
    Ndjson,
    /// Comma-separated values: the column whose header promises names, otherwise the first.
    Csv,
    /// The list of public suffixes. Its text is passed on unchanged.
    Suffixes,
    /// A host's proof of its wishes for the census. Its text is passed on unchanged. A proof is no
    /// list: it is read when somebody announces it, never on a schedule.
    Proof,
}

impl ListFormat {
    /// All formats, as they are written in an order and on command lines.
    pub const ALL: [(&'static str, Self); 6] = [
        ("lines", Self::Lines),
        ("json", Self::Json),
        ("ndjson", Self::Ndjson),
        ("csv", Self::Csv),
        ("suffixes", Self::Suffixes),
        ("proof", Self::Proof),
    ];

    /// The format's name in settings, on command lines and in an order.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Csv => "csv",
            Self::Suffixes => "suffixes",
            Self::Proof => "proof",
        }
    }
}

impl fmt::Display for ListFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("is not a format: use lines, json, ndjson, csv, suffixes or proof")]
pub struct UnknownFormat;

impl std::str::FromStr for ListFormat {
    type Err = UnknownFormat;
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let known = Self::ALL.iter().find(|(name, _)| *name == text);
        known.map(|(_, format)| *format).ok_or(UnknownFormat)
    }
}

/// A path on a host, optionally with a query: `/list.csv`, `/list?format=json`.
///
/// Invariant: joined to an address of the host, it stays on that host. So it begins with one slash
/// and has no backslash, which counts as a slash in addresses. It has no fragment either, because
/// fragments are never sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ListPath(String);

/// Why a text is no path of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ListPathError {
    #[error("is longer than {} bytes", limits::LIST_PATH_BYTES_MAX)]
    TooLong,
    #[error("does not begin with a single `/`")]
    NotAPath,
    #[error(
        "contains a character that a path can't have: a space, a backslash, `#`, or one beyond ASCII (write it percent-encoded)"
    )]
    Character,
}

impl ListPath {
    /// Parses a path.
    ///
    /// # Errors
    /// When it is too long, does not begin with one slash, or holds a forbidden character.
    pub fn parse(text: &str) -> Result<Self, ListPathError> {
        if text.len() > limits::LIST_PATH_BYTES_MAX {
            return Err(ListPathError::TooLong);
        }
        if !text.starts_with('/') || text.starts_with("//") {
            return Err(ListPathError::NotAPath);
        }
        let fits = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'#');
        if !text.bytes().all(fits) {
            return Err(ListPathError::Character);
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ListPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ListPath {
    type Error = ListPathError;
    fn try_from(text: String) -> Result<Self, ListPathError> {
        Self::parse(&text)
    }
}

impl std::str::FromStr for ListPath {
    type Err = ListPathError;
    fn from_str(text: &str) -> Result<Self, ListPathError> {
        Self::parse(text)
    }
}

impl From<ListPath> for String {
    fn from(path: ListPath) -> Self {
        path.0
    }
}

/// Whether a list was read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListOutcome {
    Complete,
    /// It was read up to one of our bounds.
    Truncated,
}

/// Why there is no list this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnlistedReason {
    Disallowed,
    /// robots.txt answered 429 or 5xx or broke off, so nothing is requested this time (RFC 9309
    /// §2.3.1.4).
    RobotsUnavailable,
    /// An HTTP status other than 200, or a wall.
    Status,
    /// A redirect to another host, which `to` names. It is never followed.
    Elsewhere,
    /// A redirect whose target is missing or no valid address; `to` holds its text.
    BadRedirect,
    /// More than [`limits::REDIRECTS_MAX`] redirects, or one to itself.
    RedirectLoop,
    Tls,
    /// The answer was not HTTP, or broke off.
    Http,
    Timeout,
    /// A content encoding that was not offered, or several.
    Encoding,
    /// Something answered, but not with a list of this format.
    NotAList,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_on_its_host() {
        for path in ["/", "/a/b.csv", "/a?x=y&z=%23", "/a//b", "/~x/[1]"] {
            assert_eq!(ListPath::parse(path).unwrap().as_str(), path);
        }
        for path in ["", "a", "//evil.example/x", "https://evil.example/"] {
            assert_eq!(ListPath::parse(path), Err(ListPathError::NotAPath));
        }
        for path in [
            "/a#b",
            "/\\evil.example/x",
            "/a b",
            "/\u{e9}",
            "/\t/evil.example",
            "/\n",
            "/a\u{7f}",
        ] {
            assert_eq!(ListPath::parse(path), Err(ListPathError::Character));
        }
        let longest = format!("/{}", "x".repeat(limits::LIST_PATH_BYTES_MAX - 1));
        assert!(ListPath::parse(&longest).is_ok());
        let longer = format!("{longest}x");
        assert_eq!(ListPath::parse(&longer), Err(ListPathError::TooLong));
    }

    #[test]
    fn a_format_has_one_name_everywhere() {
        for (name, format) in ListFormat::ALL {
            assert_eq!(name.parse(), Ok(format));
            assert_eq!(format.to_string(), name);
            assert_eq!(serde_json::to_value(format).unwrap(), name);
        }
        assert_eq!("CSV".parse::<ListFormat>(), Err(UnknownFormat));
    }
}
