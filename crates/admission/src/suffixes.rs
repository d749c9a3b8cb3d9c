//! The list of public suffixes: where one owner's names end and the next one's begin.
//!
//! In: a host; at start perhaps a file in the format of publicsuffix.org. Out: the host's public suffix and whether the list names it.
//! Refused: a file that is too big, cut off, of another format, or too short to be the whole list. A list that lacks half of its rules would
//! park half of the census.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use protocol::Host;
use psl::Psl;
use thiserror::Error;

/// Longest file. The list of 2026 has 0.33 MiB, so it may grow sixfold.
pub const FILE_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// Longest rule in bytes: a host name's length. It bounds the labels of a rule too, and with them the depth of the tree made of the rules.
pub const RULE_BYTES_MAX: usize = 253;

/// Fewest rules in the section of ICANN's domains. There are over 1 400 top-level domains alone; fewer than a thousand rules are a piece of the list.
pub const ICANN_RULES_MIN: usize = 1000;

/// The lines that the list's two sections stand between, in this order. The last of them proves that the file was not cut off.
const MARKS: [&str; 4] = [
    "===BEGIN ICANN DOMAINS===",
    "===END ICANN DOMAINS===",
    "===BEGIN PRIVATE DOMAINS===",
    "===END PRIVATE DOMAINS===",
];

/// A list of public suffixes.
pub struct Suffixes(List);

enum List {
    /// The one of the crate `psl`, as code. Embedding the text instead would mean a copy of a file under another licence in this tree that
    /// somebody has to remember to renew, where a dependency's new version is noticed by tools.
    Compiled,
    /// The operator's.
    Loaded(publicsuffix::List),
}

/// A host's public suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suffix<'host> {
    /// The suffix, without a leading dot.
    pub name: &'host str,
    /// A rule of the list names it. Otherwise the last label was taken, since there is no better guess.
    pub is_known: bool,
}

/// Why a file can't replace the compiled-in list.
#[derive(Debug, Error)]
pub enum SuffixError {
    /// The file can't be opened or read.
    #[error(
        "public suffix list {}: can't be read ({source}); check the path and its permissions, or leave the setting empty to use the built-in list",
        path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A folder, a pipe or a device.
    #[error("public suffix list {}: is not a regular file; name the list's file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// More than [`FILE_BYTES_MAX`].
    #[error(
        "public suffix list {}: is larger than {FILE_BYTES_MAX} bytes; the list of publicsuffix.org is far smaller, is this the right file?",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A line that marks a section is missing or out of order.
    #[error(
        "public suffix list {}: the line `// {mark}` is missing or out of order; fetch the whole file from https://publicsuffix.org/list/ again",
        path.display()
    )]
    NoMark {
        /// The file.
        path: PathBuf,
        /// The mark.
        mark: &'static str,
    },
    /// A rule longer than [`RULE_BYTES_MAX`].
    #[error(
        "public suffix list {}: line {line} holds a rule of more than {RULE_BYTES_MAX} bytes; fetch the file from https://publicsuffix.org/list/ again",
        path.display()
    )]
    RuleTooLong {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// Fewer than [`ICANN_RULES_MIN`] rules.
    #[error(
        "public suffix list {}: holds {found} ICANN rules, fewer than {ICANN_RULES_MIN}; fetch the whole file from https://publicsuffix.org/list/ again",
        path.display()
    )]
    TooFew {
        /// The file.
        path: PathBuf,
        /// Rules in the section of ICANN's domains.
        found: usize,
    },
    /// Not UTF-8, or a rule that is none.
    #[error(
        "public suffix list {}: {source}; fetch the file from https://publicsuffix.org/list/ again",
        path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What was wrong.
        source: publicsuffix::Error,
    },
}

impl Suffixes {
    /// The compiled-in list. Costs nothing: it is code.
    pub fn compiled() -> Self {
        Self(List::Compiled)
    }

    /// The list in the file at `path`, in the format of publicsuffix.org, instead of the compiled-in one.
    ///
    /// # Errors
    /// When the file can't be read, is larger than [`FILE_BYTES_MAX`], or is not the whole list; see [`SuffixError`].
    pub fn from_file(path: &Path) -> Result<Self, SuffixError> {
        Self::from_bytes(&read(path)?, path)
    }

    /// The list in these bytes, which were read from the file at `path`.
    ///
    /// # Errors
    /// When they are not the whole list; see [`SuffixError`].
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self, SuffixError> {
        let malformed = |source| SuffixError::Malformed {
            path: path.to_owned(),
            source,
        };
        let text = str::from_utf8(bytes)
            .map_err(|_position| malformed(publicsuffix::Error::ListNotUtf8Encoded))?;
        inspect(text, path)?;
        let list = text.parse().map_err(malformed)?;
        Ok(Self(List::Loaded(list)))
    }

    /// The public suffix of `host`, which may be the host itself.
    pub fn suffix<'host>(&self, host: &'host Host) -> Suffix<'host> {
        let name = host.as_str();
        let found = match &self.0 {
            List::Compiled => psl::List.suffix(name.as_bytes()),
            List::Loaded(list) => list.suffix(name.as_bytes()),
        };
        // Both lists hand back a tail of what they were given, so the text is there; the last label is what they guess as well.
        found
            .and_then(|suffix| {
                Some(Suffix {
                    name: str::from_utf8(suffix.as_bytes()).ok()?,
                    is_known: suffix.is_known(),
                })
            })
            .unwrap_or(Suffix {
                name: host.top_level(),
                is_known: false,
            })
    }
}

impl fmt::Debug for Suffixes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            List::Compiled => "Suffixes(compiled)",
            List::Loaded(_) => "Suffixes(loaded)",
        })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, SuffixError> {
    let unreadable = |source| SuffixError::Unreadable {
        path: path.to_owned(),
        source,
    };
    // Before it is opened: opening a pipe would wait for its writer.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(SuffixError::NotAFile {
            path: path.to_owned(),
        });
    }
    let mut bytes = Vec::new();
    let read = File::open(path)
        .and_then(|file| {
            file.take(FILE_BYTES_MAX.saturating_add(1))
                .read_to_end(&mut bytes)
        })
        .map_err(unreadable)?;
    if u64::try_from(read).is_ok_and(|read| read <= FILE_BYTES_MAX) {
        Ok(bytes)
    } else {
        Err(SuffixError::TooLarge {
            path: path.to_owned(),
        })
    }
}

/// Sees to the marks, the rules' lengths and their number before a tree is made of them.
fn inspect(text: &str, path: &Path) -> Result<(), SuffixError> {
    let mut marks = MARKS.into_iter();
    let mut next_mark = marks.next();
    let mut icann_rules = 0_usize;
    for (index, line) in text.lines().enumerate() {
        if let Some(comment) = line.strip_prefix("//") {
            if next_mark == Some(comment.trim()) {
                next_mark = marks.next();
            }
            continue;
        }
        let rule = line.split_whitespace().next().unwrap_or_default();
        if rule.len() > RULE_BYTES_MAX {
            return Err(SuffixError::RuleTooLong {
                path: path.to_owned(),
                line: index.saturating_add(1),
            });
        }
        // Between the first mark and the second.
        if !rule.is_empty() && next_mark == Some(MARKS[1]) {
            icann_rules = icann_rules.saturating_add(1);
        }
    }
    if let Some(mark) = next_mark {
        return Err(SuffixError::NoMark {
            path: path.to_owned(),
            mark,
        });
    }
    if icann_rules < ICANN_RULES_MIN {
        return Err(SuffixError::TooFew {
            path: path.to_owned(),
            found: icann_rules,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A list in the right format with as many invented top-level rules, and a few true ones.
    fn list(icann_rules: usize) -> String {
        let mut text =
            "// a comment\n// ===BEGIN ICANN DOMAINS===\ncom\nuk\nco.uk\n*.ck\n!www.ck\nрф\n"
                .to_owned();
        for index in 6..icann_rules {
            text.push_str(&format!("tld{index}\n"));
        }
        text.push_str("// ===END ICANN DOMAINS===\n// ===BEGIN PRIVATE DOMAINS===\ngithub.io\n// ===END PRIVATE DOMAINS===\n");
        text
    }

    fn load(bytes: &[u8]) -> Result<Suffixes, SuffixError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        Suffixes::from_file(file.path())
    }

    fn check(suffixes: &Suffixes, host: &str, name: &str, is_known: bool) {
        assert_eq!(
            suffixes.suffix(&Host::parse(host).unwrap()),
            Suffix { name, is_known },
            "{host}"
        );
    }

    #[test]
    fn both_kinds_of_list_find_the_same_suffixes() {
        for suffixes in [
            Suffixes::compiled(),
            load(list(ICANN_RULES_MIN).as_bytes()).unwrap(),
        ] {
            check(&suffixes, "a.b.com", "com", true);
            check(&suffixes, "a.co.uk", "co.uk", true);
            check(&suffixes, "co.uk", "co.uk", true);
            check(&suffixes, "a.b.ck", "b.ck", true);
            check(&suffixes, "www.ck", "ck", true);
            check(&suffixes, "me.github.io", "github.io", true);
            check(&suffixes, "пример.рф", "xn--p1ai", true);
            check(
                &suffixes,
                "a.b.no-such-top-level",
                "no-such-top-level",
                false,
            );
        }
    }

    #[test]
    fn a_list_that_is_not_whole_is_refused() {
        assert!(matches!(
            load(list(ICANN_RULES_MIN - 1).as_bytes()),
            Err(SuffixError::TooFew { found: 999, .. })
        ));
        for mark in MARKS {
            let text = list(ICANN_RULES_MIN).replace(mark, "");
            match load(text.as_bytes()) {
                Err(SuffixError::NoMark { mark: missing, .. }) => assert_eq!(missing, mark),
                other => panic!("without {mark}: {other:?}"),
            }
        }
        let whole = list(ICANN_RULES_MIN);
        assert!(matches!(
            load(&whole.as_bytes()[..whole.len() - 30]),
            Err(SuffixError::NoMark { .. })
        ));
        assert!(matches!(load(b""), Err(SuffixError::NoMark { .. })));
    }

    #[test]
    fn a_rule_of_a_million_labels_never_becomes_a_tree() {
        let text = list(ICANN_RULES_MIN).replace("github.io", &"a.".repeat(500_000));
        assert!(matches!(
            load(text.as_bytes()),
            Err(SuffixError::RuleTooLong { line: 1005, .. })
        ));
    }

    #[test]
    fn what_is_no_text_or_no_rule_is_refused() {
        assert!(matches!(load(b"\xff"), Err(SuffixError::Malformed { .. })));
        let text = list(ICANN_RULES_MIN).replace("github.io", "github..io");
        assert!(matches!(
            load(text.as_bytes()),
            Err(SuffixError::Malformed { .. })
        ));
        let huge = vec![b'\n'; usize::try_from(FILE_BYTES_MAX).unwrap() + 1];
        assert!(matches!(load(&huge), Err(SuffixError::TooLarge { .. })));
    }

    #[test]
    fn a_path_that_is_no_file_is_named_in_the_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(
            Suffixes::from_file(folder.path()),
            Err(SuffixError::NotAFile { .. })
        ));
        let missing = folder.path().join("none.dat");
        let error = Suffixes::from_file(&missing).unwrap_err().to_string();
        assert!(error.contains(missing.to_str().unwrap()), "{error}");
        assert!(error.contains("built-in list"), "{error}");
    }
}
