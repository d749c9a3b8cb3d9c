//! Public lists: what a checker in list mode is asked for, and how the reading of a list ended.
//!
//! Such a run is no check: none of its words is a verdict about the list's host. See decision record 0002.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::limits;

/// The list, or the proof, that is wanted of a host. With it in the order, nothing but robots.txt and this path is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListOrder {
    /// Where it lies on the host.
    pub path: ListPath,
    /// How it is written.
    pub format: ListFormat,
    /// Most names that are handed on; never more than [`limits::PEERS_MAX`]. The lines of a suffix list and of a proof have bounds of their
    /// own.
    pub names_max: u32,
}

/// How a public list is written, or that it is no list but a host's proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListFormat {
    /// A name a line; `#` and `//` begin a comment.
    Lines,
    /// An array of names or of objects that hold one, at the top or in an object.
    Json,
    /// A JSON value a line: a name, or an object that holds one.
    Ndjson,
    /// Comma-separated values: the column whose header says that it holds names, else the first.
    Csv,
    /// The list of public suffixes, whose text is handed on as it is.
    Suffixes,
    /// A host's proof of what it wants of the census, whose text is handed on as it is. No list: it is read when somebody says that it is there, never
    /// on a schedule.
    Proof,
}

impl ListFormat {
    /// All of them, as they are written in an order and on command lines.
    pub const ALL: [(&'static str, Self); 6] = [
        ("lines", Self::Lines),
        ("json", Self::Json),
        ("ndjson", Self::Ndjson),
        ("csv", Self::Csv),
        ("suffixes", Self::Suffixes),
        ("proof", Self::Proof),
    ];

    /// Its name in settings, on command lines and in an order.
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

/// The text names no format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("is no format: lines, json, ndjson, csv, suffixes or proof")]
pub struct UnknownFormat;

impl std::str::FromStr for ListFormat {
    type Err = UnknownFormat;
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let known = Self::ALL.iter().find(|(name, _)| *name == text);
        known.map(|(_, format)| *format).ok_or(UnknownFormat)
    }
}

/// A path on a host, perhaps with a query: `/list.csv`, `/list?format=json`.
///
/// Invariant: joined to an address of the host it stays on that host. So it begins with one slash, holds no backslash, which counts for a slash in
/// addresses, and no fragment, which is never sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ListPath(String);

/// Why a text is no path of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ListPathError {
    /// Too long.
    #[error("is longer than {} bytes", limits::LIST_PATH_BYTES_MAX)]
    TooLong,
    /// It does not begin with one slash.
    #[error("does not begin with one `/`")]
    NotAPath,
    /// It holds a character that may not stand there.
    #[error(
        "holds a character that has no place in a path: a space, a backslash, `#`, or one beyond ASCII (write it percent-encoded)"
    )]
    Character,
}

impl ListPath {
    /// The path in this text.
    ///
    /// # Errors
    /// When it is too long, does not begin with one slash, or holds a character that may not stand in it.
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

    /// The path.
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

/// How far a list was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListOutcome {
    /// To its end.
    Complete,
    /// Up to one of our bounds.
    Truncated,
}

/// Why there is no list this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnlistedReason {
    /// robots.txt asks us not to read it.
    Disallowed,
    /// robots.txt answered 429 or 5xx or broke off: nothing is asked this time (RFC 9309 §2.3.1.4).
    RobotsUnavailable,
    /// An HTTP status other than 200, or a challenge.
    Status,
    /// A redirect to another host, which `to` names: never followed.
    Elsewhere,
    /// A redirect whose target is missing or no valid address; `to` holds its text.
    BadRedirect,
    /// More than [`limits::REDIRECTS_MAX`] redirects, or one to itself.
    RedirectLoop,
    /// The TLS handshake failed.
    Tls,
    /// The answer was not HTTP, or broke off.
    Http,
    /// No answer in time.
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
