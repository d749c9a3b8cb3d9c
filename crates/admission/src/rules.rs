//! The language of admission rules: how many new names submitters may add per day.
//!
//! [`Rules::parse`] takes the bytes of a rules file. It returns [`Rules`], or every invalid line
//! with its number and text. A file over [`FILE_BYTES_MAX`] or [`LINES_MAX`], or with any invalid
//! line, is rejected as a whole.
//!
//! ```text
//! key    HEX  LIMIT     # SHA-256 of a submitter's raw Ed25519 public key
//! domain NAME LIMIT     # NAME and all names below it, together
//! public FILE LIMIT     # each registered domain, by the public suffixes in FILE
//! ```
//!
//! White space separates fields, `#` begins a comment at any position, and the order of lines has
//! no meaning. The number of fields, the keyword, the limit and the item of a line are checked in
//! this order, and the first problem is reported. The rules are those of Sigsum's log server, which
//! limits submitters by them (sigsum/log-go, `doc/rate-limit.md`).

mod key_hash;
mod limit;
mod line;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

pub use self::key_hash::KeyHash;
pub use self::limit::Limit;
pub use self::line::Problem;
use self::line::Rule;
use crate::domain::DomainName;

/// Longest file: [`LINES_MAX`] lines of over eighty bytes. A list of ten thousand banned domains
/// has a third of a MiB.
pub const FILE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Most lines. The longest lists of banned domains that instances share have a tenth of it. It also
/// bounds the number of errors in a file.
pub const LINES_MAX: usize = 100_000;

/// Bytes of a line that an error shows: a key's line with its comment.
const TEXT_BYTES_SHOWN: usize = 120;

/// The content of a rules file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// The limits of the `key` lines.
    pub keys: BTreeMap<KeyHash, Limit>,
    /// The limits of the `domain` lines.
    pub domains: BTreeMap<DomainName, Limit>,
    /// The `public` line, if there is one.
    pub public: Option<Public>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Public {
    /// The source of its public suffixes.
    pub list: ListPlace,
    /// Admissions per window for each registered domain; 0 is off.
    pub limit: Limit,
}

/// The source of the public suffixes for a `public` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListPlace {
    /// `default`, the only word that is not a file: the census's own list. A file of that name is
    /// written as `./default`.
    Default,
    /// A file in the format of publicsuffix.org.
    File(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineError {
    /// Its number, from 1.
    pub line: usize,
    /// Its text; a long one ends in `…`.
    pub text: String,
    pub problem: Problem,
}

/// Why a file is not a rules file.
#[derive(Debug, Error)]
pub enum RulesError {
    #[error(
        "admission rules {}: is larger than {FILE_BYTES_MAX} bytes; is this the right file?",
        path.display()
    )]
    TooLarge { path: PathBuf },
    #[error(
        "admission rules {}: has more than {LINES_MAX} lines; is this the right file?",
        path.display()
    )]
    TooManyLines { path: PathBuf },
    #[error("{}", in_lines(path, lines))]
    Malformed {
        path: PathBuf,
        /// All invalid lines in order. Never empty.
        lines: Vec<LineError>,
    },
}

impl Rules {
    /// Parses the rules in these bytes of the file at `path`. Does not read the files that they
    /// name.
    ///
    /// # Errors
    /// Fails if a bound is exceeded, or if any line is not a rule; see [`RulesError`].
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, RulesError> {
        let path = || path.to_owned();
        if bytes.len() > FILE_BYTES_MAX {
            return Err(RulesError::TooLarge { path: path() });
        }
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        // An empty text after the last LF is not a line.
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        if bytes.split(|&byte| byte == b'\n').nth(LINES_MAX).is_some() {
            return Err(RulesError::TooManyLines { path: path() });
        }
        let mut draft = Draft::default();
        let mut wrong = Vec::new();
        for (line, text) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
            let added = Rule::parse(text).and_then(|rule| draft.add(rule, line));
            if let Err(problem) = added {
                let text = shown(text);
                wrong.push(LineError {
                    line,
                    text,
                    problem,
                });
            }
        }
        if wrong.is_empty() {
            Ok(draft.rules())
        } else {
            Err(RulesError::Malformed {
                path: path(),
                lines: wrong,
            })
        }
    }

    /// The file of public suffixes that must be read before the rules can be in force. `None` if
    /// the `public` line is off, missing, or says `default`.
    pub fn list_file(&self) -> Option<&Path> {
        let public = self.public.as_ref()?;
        match &public.list {
            ListPlace::File(path) if public.limit > Limit::ZERO => Some(path),
            ListPlace::File(_) | ListPlace::Default => None,
        }
    }
}

/// Rules, with the numbers of their lines.
#[derive(Default)]
struct Draft {
    keys: BTreeMap<KeyHash, (Limit, usize)>,
    domains: BTreeMap<DomainName, (Limit, usize)>,
    public: Option<(Public, usize)>,
}

impl Draft {
    fn add(&mut self, rule: Option<Rule>, line: usize) -> Result<(), Problem> {
        match rule {
            None => Ok(()),
            Some(Rule::Key(key, limit)) => insert(self.keys.entry(key), limit, line),
            Some(Rule::Domain(domain, limit)) => insert(self.domains.entry(domain), limit, line),
            Some(Rule::Public(public)) => match &self.public {
                Some((_, first)) => Err(Problem::SecondPublic { first: *first }),
                None => {
                    self.public = Some((public, line));
                    Ok(())
                }
            },
        }
    }

    fn rules(self) -> Rules {
        Rules {
            keys: without_lines(self.keys),
            domains: without_lines(self.domains),
            public: self.public.map(|(public, _)| public),
        }
    }
}

fn insert<K: Ord>(
    entry: Entry<'_, K, (Limit, usize)>,
    limit: Limit,
    line: usize,
) -> Result<(), Problem> {
    match entry {
        Entry::Occupied(there) => Err(Problem::Twice {
            first: there.get().1,
        }),
        Entry::Vacant(place) => {
            place.insert((limit, line));
            Ok(())
        }
    }
}

fn without_lines<K: Ord>(map: BTreeMap<K, (Limit, usize)>) -> BTreeMap<K, Limit> {
    map.into_iter()
        .map(|(item, (limit, _))| (item, limit))
        .collect()
}

fn shown(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let text = String::from_utf8_lossy(line.get(..TEXT_BYTES_SHOWN).unwrap_or(line));
    if line.len() > TEXT_BYTES_SHOWN {
        format!("{}…", text.trim_end_matches(char::REPLACEMENT_CHARACTER))
    } else {
        text.into_owned()
    }
}

fn in_lines(path: &Path, lines: &[LineError]) -> String {
    let lines: Vec<_> = lines
        .iter()
        .map(|line| format!("{}:{line}", path.display()))
        .collect();
    lines.join("\n")
}

/// `NUMBER: PROBLEM: "TEXT"`, to follow the file's name and a colon. Characters that could control
/// a terminal are escaped.
impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {:?}", self.line, self.problem, self.text)
    }
}

impl fmt::Display for ListPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str(line::DEFAULT_LIST),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
