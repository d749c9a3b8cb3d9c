//! The public suffix list, which separates the names of different owners.
//!
//! It takes a name, and optionally the bytes of a file in the format of publicsuffix.org. It
//! returns the name's public suffix and whether the list contains it. Files that are too big or of
//! another format are rejected. A file that replaces the census's own list has to be complete:
//! without half of its rules, half of the census would be parked. Admission rules may use an
//! excerpt: names that it lacks are refused, or share a count.

mod table;

use std::fmt;
use std::path::{Path, PathBuf};

use protocol::{Host, escaped};
use psl::Psl;
use thiserror::Error;

use self::table::{Flaw, Table, lines, rules};
pub use self::table::{RULE_BYTES_MAX, RULES_MAX};
use crate::domain::DomainName;

/// Longest file. The list of 2026 has 0.33 MiB, so it may grow sixfold.
pub const FILE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Fewest rules in the section of ICANN's domains. There are over 1 400 top-level domains alone, so
/// a list with fewer than a thousand rules is incomplete.
pub const ICANN_RULES_MIN: usize = 1000;

/// The lines around the list's two sections, in this order. The last one proves that the file is
/// complete.
const MARKS: [&str; 4] = [
    "===BEGIN ICANN DOMAINS===",
    "===END ICANN DOMAINS===",
    "===BEGIN PRIVATE DOMAINS===",
    "===END PRIVATE DOMAINS===",
];

#[derive(PartialEq, Eq)]
pub struct Suffixes(List);

#[derive(PartialEq, Eq)]
enum List {
    /// The list in the crate `psl`, as code. Rejected: embedding the text, a copy of a file under
    /// another licence that would have to be updated by hand, whereas tools notice a dependency's
    /// new version. The crate ignores a wildcard if there is a longer rule next to it. In the list
    /// of 2026 this affects two dozen names of other people's machinery, which count as one
    /// owner's.
    Compiled,
    Loaded {
        all: Table,
        /// The rules before the private section. `None` if there are none.
        icann: Option<Table>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suffix<'name> {
    /// The suffix, without a leading dot.
    pub name: &'name str,
    /// Whether a rule of the list names it. Otherwise it is the last label, the best guess.
    pub is_known: bool,
}

/// Why a file is not a public suffix list.
#[derive(Debug, Error)]
pub enum SuffixError {
    #[error(
        "public suffix list {}: is larger than {FILE_BYTES_MAX} bytes; the list of publicsuffix.org is far smaller, is this the right file?",
        path.display()
    )]
    TooLarge { path: PathBuf },
    #[error(
        "public suffix list {}: the line `// {mark}` is missing or out of order; fetch the whole file from https://publicsuffix.org/list/ again",
        path.display()
    )]
    NoMark { path: PathBuf, mark: &'static str },
    #[error(
        "public suffix list {}: line {line} has a rule of more than {RULE_BYTES_MAX} bytes; fetch the file from https://publicsuffix.org/list/ again",
        path.display()
    )]
    RuleTooLong {
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
    },
    #[error(
        "public suffix list {}: has {found} ICANN rules, fewer than {ICANN_RULES_MIN}; fetch the whole file from https://publicsuffix.org/list/ again",
        path.display()
    )]
    TooFew {
        path: PathBuf,
        /// Number of rules in the section of ICANN's domains.
        found: usize,
    },
    #[error(
        "public suffix list {}: is not UTF-8; fetch the file from https://publicsuffix.org/list/ again",
        path.display()
    )]
    NotText { path: PathBuf },
    #[error(
        "public suffix list {}: line {line} is not a rule: `{}`; correct it, or fetch the file from https://publicsuffix.org/list/ again",
        path.display(), escaped(rule.as_bytes(), RULE_BYTES_MAX)
    )]
    BadRule {
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        rule: String,
    },
    #[error(
        "public suffix list {}: has more than {RULES_MAX} rules; the list of publicsuffix.org has far fewer, is this the right file?",
        path.display()
    )]
    TooMany { path: PathBuf },
    #[error("public suffix list {}: has no rule; is this the right file?", path.display())]
    Empty { path: PathBuf },
}

/// Why a name has no registered domain. The text is a sentence about the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NoRegisteredDomain {
    #[error("it is a public suffix, below which others register names")]
    PublicSuffix,
    #[error("no rule of the public suffix list covers it")]
    UnknownSuffix,
}

impl Suffixes {
    /// The compiled-in list. It needs no initialisation.
    pub fn compiled() -> Self {
        Self(List::Compiled)
    }

    /// Parses these bytes of the file at `path`, in the format of publicsuffix.org. They must be a
    /// complete list, which replaces the compiled-in one.
    ///
    /// # Errors
    /// Fails if there are more than [`FILE_BYTES_MAX`] bytes, or if the list is incomplete; see
    /// [`SuffixError`].
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self, SuffixError> {
        let text = text(bytes, path)?;
        inspect(text, path)?;
        loaded(text, path)
    }

    /// Parses these bytes of the file at `path`: an excerpt of publicsuffix.org's list, or an
    /// independent list.
    ///
    /// # Errors
    /// Fails if there are more than [`FILE_BYTES_MAX`] bytes, if a line is not a rule, or if there
    /// is no rule; see [`SuffixError`].
    pub fn from_excerpt(bytes: &[u8], path: &Path) -> Result<Self, SuffixError> {
        loaded(text(bytes, path)?, path)
    }

    /// The public suffix of `host`, which may be the host itself.
    pub fn suffix<'host>(&self, host: &'host Host) -> Suffix<'host> {
        self.suffix_of_name(host.as_str())
    }

    /// The public suffix of `domain`, which may be the domain itself.
    pub fn suffix_of_domain<'domain>(&self, domain: &'domain DomainName) -> Suffix<'domain> {
        self.suffix_of_name(domain.as_str())
    }

    /// The registered domain of `domain`: its public suffix plus one label.
    pub fn registered_domain<'domain>(
        &self,
        domain: &'domain DomainName,
    ) -> Result<&'domain str, NoRegisteredDomain> {
        let suffix = self.suffix_of_domain(domain);
        if !suffix.is_known {
            return Err(NoRegisteredDomain::UnknownSuffix);
        }
        // From the end, the first tail that is longer than the suffix.
        domain
            .tails()
            .take_while(|tail| tail.len() > suffix.name.len())
            .last()
            .ok_or(NoRegisteredDomain::PublicSuffix)
    }

    /// The shared suffix above `domain`, if its public suffix belongs to an owner who hands out
    /// names for free, such as `github.io`, and not to a registry. The result is that owner's
    /// registered domain by ICANN's rules alone. `None` for all other names.
    pub fn shared_suffix<'domain>(&self, domain: &'domain DomainName) -> Option<&'domain str> {
        let suffix = self.suffix_of_domain(domain);
        let icann = self.icann_suffix(domain.as_str())?;
        if !suffix.is_known || icann.len() >= suffix.name.len() {
            return None;
        }
        domain
            .tails()
            .take_while(|tail| tail.len() > icann.len())
            .last()
    }

    fn icann_suffix<'name>(&self, name: &'name str) -> Option<&'name str> {
        match &self.0 {
            List::Compiled => {
                // Each round continues with a shorter name.
                let mut rest = Some(name);
                while let Some(name) = rest {
                    let suffix = psl::List.suffix(name.as_bytes())?;
                    let text = str::from_utf8(suffix.as_bytes()).ok()?;
                    match suffix.typ() {
                        Some(psl::Type::Icann) => {
                            return name.get(name.len().checked_sub(text.len())?..);
                        }
                        Some(psl::Type::Private) => {
                            rest = name
                                .get(name.len().checked_sub(text.len())?..)
                                .and_then(|suffix| suffix.split_once('.'))
                                .map(|(_, parent)| parent);
                        }
                        None => return None,
                    }
                }
                None
            }
            List::Loaded { icann, .. } => icann.as_ref()?.suffix(name),
        }
    }

    fn suffix_of_name<'name>(&self, name: &'name str) -> Suffix<'name> {
        let known = match &self.0 {
            // The result is a tail of the input, so the text is valid.
            List::Compiled => psl::List
                .suffix(name.as_bytes())
                .filter(psl::Suffix::is_known)
                .and_then(|suffix| str::from_utf8(suffix.as_bytes()).ok()),
            List::Loaded { all, .. } => all.suffix(name),
        };
        Suffix {
            name: known.unwrap_or_else(|| name.rsplit_once('.').map_or(name, |(_, last)| last)),
            is_known: known.is_some(),
        }
    }
}

impl fmt::Debug for Suffixes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            List::Compiled => "Suffixes(compiled)",
            List::Loaded { .. } => "Suffixes(loaded)",
        })
    }
}

fn text<'bytes>(bytes: &'bytes [u8], path: &Path) -> Result<&'bytes str, SuffixError> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(SuffixError::TooLarge {
            path: path.to_owned(),
        });
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    str::from_utf8(bytes).map_err(|_position| SuffixError::NotText {
        path: path.to_owned(),
    })
}

fn loaded(text: &str, path: &Path) -> Result<Suffixes, SuffixError> {
    let path = || path.to_owned();
    let table = Table::parse(text).map_err(|flaw| match flaw {
        Flaw::RuleTooLong { line } => SuffixError::RuleTooLong { path: path(), line },
        Flaw::BadRule { line, rule } => SuffixError::BadRule {
            path: path(),
            line,
            rule,
        },
        Flaw::TooMany => SuffixError::TooMany { path: path() },
        Flaw::Empty => SuffixError::Empty { path: path() },
    })?;
    let private = lines(text).find(|(_, text)| is_mark(text, MARKS[2]));
    let icann = match private {
        // All of its rules were parsed before.
        Some((begin, _)) => Table::before(text, begin),
        None => None,
    };
    Ok(Suffixes(List::Loaded { all: table, icann }))
}

fn is_mark(line: &str, mark: &str) -> bool {
    line.trim_start()
        .strip_prefix("//")
        .is_some_and(|comment| comment.trim() == mark)
}

/// Checks that this is the complete list: it has the marks and enough rules.
fn inspect(text: &str, path: &Path) -> Result<(), SuffixError> {
    let path = || path.to_owned();
    let mut lines = lines(text);
    let mut line_of = |mark| {
        let found = lines.find_map(|(line, text)| is_mark(text, mark).then_some(line));
        found.ok_or_else(|| SuffixError::NoMark { path: path(), mark })
    };
    let [begin, end, ..]: [usize; 4] = [
        line_of(MARKS[0])?,
        line_of(MARKS[1])?,
        line_of(MARKS[2])?,
        line_of(MARKS[3])?,
    ];
    let found = rules(text)
        .filter(|(line, _)| (begin..end).contains(line))
        .count();
    if found < ICANN_RULES_MIN {
        return Err(SuffixError::TooFew {
            path: path(),
            found,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
