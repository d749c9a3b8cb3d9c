//! The newest section of the published changes (`changes/DAY.ndjson`).

use std::io::{self, BufRead, Read as _};

use serde::Deserialize;
use thiserror::Error;

/// Bytes of a line: a row with the longest texts takes some kilobytes.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// Most lines of a section: more than a day's file may hold.
const LINES_MAX: usize = 1_000_000;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    Appeared(Row),
    Returned(Row),
    Changed(Row),
    Died {
        host: String,
    },
    Moved {
        host: String,
        /// The other host, if it is listed.
        #[serde(default)]
        to: Option<String>,
    },
    /// It left the list for another reason.
    Left {
        /// SHA-256 of its name in hexadecimal digits. No other field may identify it.
        host_sha256: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Row {
    pub host: String,
    #[serde(default)]
    pub software: Option<String>,
    #[serde(default)]
    pub version: Option<String>,
    /// `alive`, or another state in which it is listed.
    #[serde(default)]
    pub state: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub sha256: String,
    pub listed: u64,
    /// All changes in the files, as they are published now: those of a day or two.
    recent: Vec<Change>,
    new_from: usize,
}

#[derive(Deserialize)]
struct Head {
    hosts: u64,
    section_sha256: String,
}

#[derive(Deserialize)]
struct Kind {
    change: String,
}

#[derive(Debug, Error)]
pub enum SectionError {
    #[error("it can't be read: {0}")]
    Io(#[from] io::Error),
    #[error("line {line} is not a change: {source}")]
    Line {
        line: usize,
        source: serde_json::Error,
    },
    #[error("line {0} is beyond what a file of changes may hold")]
    TooMuch(usize),
}

impl Section {
    #[cfg(test)]
    pub(super) fn of(sha256: &str, listed: u64, changes: Vec<Change>) -> Self {
        Self {
            sha256: sha256.to_owned(),
            listed,
            recent: changes,
            new_from: 0,
        }
    }

    /// The changes since the given section; none if there were more than a file may hold.
    pub fn changes(&self) -> &[Change] {
        self.recent.get(self.new_from..).unwrap_or_default()
    }

    /// All changes of at least a day. Hosts that left since are not named in them.
    pub fn recent(&self) -> &[Change] {
        &self.recent
    }

    /// All changes after the section `since`, as one section with the digest of the last; the last
    /// section alone if `since` is not in the file. `None` if the file holds no section.
    pub fn after(since: Option<&str>, file: impl BufRead) -> Result<Option<Self>, SectionError> {
        let mut section: Option<Self> = None;
        let mut is_later = false;
        let mut file = file;
        for line in 1_usize.. {
            if line > LINES_MAX {
                return Err(SectionError::TooMuch(line));
            }
            let mut bytes = Vec::new();
            file.by_ref()
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut bytes)?;
            if bytes.is_empty() {
                break;
            }
            let is_whole = bytes.ends_with(b"\n");
            if !is_whole && u64::try_from(bytes.len()).is_ok_and(|read| read >= LINE_BYTES_MAX) {
                return Err(SectionError::TooMuch(line));
            }
            let failed = |source| SectionError::Line { line, source };
            let Kind { change } = serde_json::from_slice(&bytes).map_err(failed)?;
            if change == "dump" {
                let head: Head = serde_json::from_slice(&bytes).map_err(failed)?;
                let is_since = |section: &Self| since == Some(section.sha256.as_str());
                let (recent, new_from) = section.take().map_or_else(Default::default, |former| {
                    let was_missed = is_later && !is_since(&former);
                    let seen = former.recent.len();
                    (
                        former.recent,
                        if was_missed { former.new_from } else { seen },
                    )
                });
                let next = Self {
                    sha256: head.section_sha256,
                    listed: head.hosts,
                    recent,
                    new_from,
                };
                is_later |= is_since(&next);
                section = Some(next);
            } else if let Some(section) = &mut section {
                let change = serde_json::from_slice(&bytes).map_err(failed)?;
                section.recent.push(change);
            }
        }
        Ok(section)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{"change":"dump","time":"2026-11-22T06:00:00Z","hosts":9,"section_sha256":"aa","lines":1}
{"change":"died","time":"2026-11-22T06:00:00Z","host":"old.example"}
{"change":"dump","time":"2026-11-22T12:00:00Z","hosts":10,"section_sha256":"bb","lines":3}
{"change":"appeared","host":"a.example","software":"mastodon","version":"4.5.0","state":"alive","open_registrations":true}
{"change":"moved","host":"d.example","to":"a.example"}
{"change":"left","host_sha256":"cc"}
"#;

    #[test]
    fn the_last_section_counts() {
        let section = Section::after(None, FILE.as_bytes()).unwrap().unwrap();
        assert_eq!((section.sha256.as_str(), section.listed), ("bb", 10));
        let appeared = Change::Appeared(Row {
            host: "a.example".to_owned(),
            software: Some("mastodon".to_owned()),
            version: Some("4.5.0".to_owned()),
            state: "alive".to_owned(),
        });
        let moved = Change::Moved {
            host: "d.example".to_owned(),
            to: Some("a.example".to_owned()),
        };
        let left = Change::Left {
            host_sha256: "cc".to_owned(),
        };
        assert_eq!(section.changes(), [appeared, moved, left]);
        assert_eq!(section.recent().len(), 4);
    }

    #[test]
    fn lists_that_were_missed_count_as_one() {
        let third = r#"{"change":"dump","time":"2026-11-22T18:00:00Z","hosts":11,"section_sha256":"dd","lines":1}
{"change":"died","time":"2026-11-22T18:00:00Z","host":"b.example"}
"#;
        let file = format!("{FILE}{third}");
        let changes = |since: &str| {
            let section = Section::after(Some(since), file.as_bytes())
                .unwrap()
                .unwrap();
            assert_eq!((section.sha256.as_str(), section.listed), ("dd", 11));
            assert_eq!(section.recent().len(), 5);
            section.changes().len()
        };
        assert_eq!(changes("aa"), 4, "those of two sections");
        assert_eq!(changes("bb"), 1);
        assert_eq!(
            changes("dd"),
            1,
            "nothing is new, and the last section is whole"
        );
        assert_eq!(changes("of another file"), 1, "the last one alone");
    }

    #[test]
    fn a_file_without_a_section_or_with_rubbish_says_so() {
        assert_eq!(Section::after(None, &b""[..]).unwrap(), None);
        let rubbish = format!("{FILE}rubbish\n");
        let failed = Section::after(None, rubbish.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(failed.starts_with("line 7 "), "{failed}");
        let long = vec![b'x'; 100_000];
        assert!(matches!(
            Section::after(None, &long[..]),
            Err(SectionError::TooMuch(1))
        ));
    }
}
