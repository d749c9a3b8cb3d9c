//! The operator's lists of domains: those that are never admitted, and those that always have room.
//!
//! [`DomainList::parse`] takes the bytes of a file with one name per line. A lookup returns the
//! listed name that a host is or lies below, and its reason. A file over [`FILE_BYTES_MAX`] or
//! [`LINES_MAX`], or with any invalid line, is rejected as a whole.
//!
//! `#` begins a comment at any position. The comment after a name is its reason; lines with only a
//! comment are ignored. A name covers itself and all names below it, at label boundaries.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use protocol::escaped;
use thiserror::Error;

use crate::domain::{DomainName, DomainNameError};
use crate::rules::{FILE_BYTES_MAX, LINES_MAX};

/// Longest reason that is kept, in bytes: a sentence or two. The rest is cut off.
pub const REASON_BYTES_MAX: usize = 300;

/// Bytes of an invalid line that are shown.
const TEXT_BYTES_SHOWN: usize = 120;

/// A list of domains with reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DomainList(BTreeMap<DomainName, Box<str>>);

/// The entry that puts a host on a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The longest listed name that the host is or lies below.
    pub domain: DomainName,
    /// The entry's reason, which may be empty.
    pub reason: String,
}

/// Why a file is not a list of domains.
#[derive(Debug, Error)]
pub enum ListError {
    #[error("list {}: is larger than {FILE_BYTES_MAX} bytes or has more than {LINES_MAX} lines; is this the right file?", path.display())]
    TooLarge { path: PathBuf },
    #[error("{}", lines.join("\n"))]
    Malformed {
        /// `FILE:NUMBER: PROBLEM: "TEXT"` for each invalid line in order. Never empty.
        lines: Vec<String>,
    },
}

impl DomainList {
    /// Parses a list from these bytes of the file at `path`. If a name has two lines, the later
    /// reason applies.
    ///
    /// # Errors
    /// Fails if a bound is exceeded, or if any line is not a name.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, ListError> {
        if bytes.len() > FILE_BYTES_MAX {
            return Err(ListError::TooLarge {
                path: path.to_owned(),
            });
        }
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut list = BTreeMap::new();
        let mut wrong = Vec::new();
        for (number, line) in (1_usize..).zip(bytes.split(|&byte| byte == b'\n')) {
            if number > LINES_MAX.saturating_add(1) {
                return Err(ListError::TooLarge {
                    path: path.to_owned(),
                });
            }
            match entry(line) {
                Ok(Some((domain, reason))) => {
                    list.insert(domain, reason);
                }
                Ok(None) => {}
                Err(why) => {
                    let text = escaped(line, TEXT_BYTES_SHOWN);
                    wrong.push(format!("{}:{number}: {why}: \"{text}\"", path.display()));
                }
            }
        }
        if wrong.is_empty() {
            Ok(Self(list))
        } else {
            Err(ListError::Malformed { lines: wrong })
        }
    }

    /// The entry that covers `name`. `None` if `name` is not on the list.
    pub fn covers(&self, name: &DomainName) -> Option<Listed> {
        self.find(name.tails())
    }

    /// Like [`DomainList::covers`], for a name in canonical form.
    pub fn covers_text(&self, name: &str) -> Option<Listed> {
        self.find(crate::domain::tails(name))
    }

    /// The listed names.
    pub fn names(&self) -> impl Iterator<Item = &DomainName> {
        self.0.keys()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find<'name>(&self, mut tails: impl Iterator<Item = &'name str>) -> Option<Listed> {
        if self.0.is_empty() {
            return None;
        }
        tails
            .find_map(|tail| self.0.get_key_value(tail))
            .map(|(domain, reason)| Listed {
                domain: domain.clone(),
                reason: reason.to_string(),
            })
    }
}

fn entry(line: &[u8]) -> Result<Option<(DomainName, Box<str>)>, DomainNameError> {
    let (name, comment) = match line.iter().position(|&byte| byte == b'#') {
        Some(place) => line.split_at(place),
        None => (line, &[][..]),
    };
    let name = String::from_utf8_lossy(name);
    let name = name.trim();
    if name.is_empty() {
        return Ok(None);
    }
    let comment = String::from_utf8_lossy(comment);
    let mut reason = comment.trim_start_matches('#').trim().to_owned();
    reason.retain(|character| !character.is_control());
    reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
    Ok(Some((DomainName::parse(name)?, reason.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Result<DomainList, ListError> {
        DomainList::parse(text.as_bytes(), Path::new("deny"))
    }

    #[track_caller]
    fn check(list: &DomainList, name: &str, expect: Option<(&str, &str)>) {
        let found = list.covers(&DomainName::parse(name).unwrap());
        let found = found
            .as_ref()
            .map(|listed| (listed.domain.as_str(), listed.reason.as_str()));
        assert_eq!(found, expect, "{name}");
    }

    #[test]
    fn a_name_stands_for_itself_and_all_below_it_and_the_longest_one_is_told() {
        let list = list(
            "\u{feff}# a list\r\n\nFarm.Example. # ten thousand names\r\nb.farm.example#worse\n  bücher.example\n",
        )
        .unwrap();
        assert_eq!(list.len(), 3);
        check(
            &list,
            "farm.example",
            Some(("farm.example", "ten thousand names")),
        );
        check(
            &list,
            "a.farm.example",
            Some(("farm.example", "ten thousand names")),
        );
        check(&list, "x.b.farm.example", Some(("b.farm.example", "worse")));
        check(
            &list,
            "xn--bcher-kva.example",
            Some(("xn--bcher-kva.example", "")),
        );
        check(&list, "afarm.example", None);
        check(&list, "example", None);
    }

    #[test]
    fn every_line_that_is_no_name_is_told_and_nothing_is_taken() {
        let error = list("a.example\n*.b.example\nc.example d.example\n\u{1b}[2J # x\n127.0.0.1\n")
            .unwrap_err()
            .to_string();
        let numbers: Vec<_> = error
            .lines()
            .map(|line| line.split(':').nth(1).unwrap())
            .collect();
        assert_eq!(numbers, ["2", "3", "4", "5"], "{error}");
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }

    #[test]
    fn a_list_is_bounded_and_so_are_its_reasons() {
        assert_eq!(list(&"\n".repeat(LINES_MAX)).unwrap().len(), 0);
        list(&"\n".repeat(LINES_MAX + 1)).unwrap_err();
        list(&" ".repeat(FILE_BYTES_MAX + 1)).unwrap_err();
        let long = list(&format!("a.example # {}\u{7}", "ä".repeat(500))).unwrap();
        let listed = long.covers_text("a.example").unwrap();
        assert_eq!(listed.reason, "ä".repeat(REASON_BYTES_MAX / 2));
    }
}
